"""A release rehearsed in synthetic worlds, before anything private is read: its expected lift.

    world      public features, labels and edges as they are; synthetic private edges: as many as are assumed, between
               two classes as often as public edges                                        `posterior.block_prior`
    release    by the same mechanism at the same price, of the world's private edges
    lift       accuracy with it minus that of the public part alone, on labels held out of both

The interval is over the held-out people of all worlds.  It does not cover that private edges may be distributed unlike
public ones, or be fewer: a promise would need the private edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from graphveil.errors import InputError
from graphveil.graphs import Graph, random_split
from graphveil.graphs.value.checks import require_one_label
from graphveil.graphs.value.splits import known_labels
from graphveil.mechanisms import EdgeRand, PairDomain
from graphveil.mechanisms.edges.noisy_counts import count_noise
from graphveil.methods.local.controls import hits
from graphveil.methods.release.counts.count_readings import read_counts, read_public
from graphveil.methods.release.counts.posterior import block_prior
from graphveil.methods.release.edges import Chains, count_neighbours, make_edges
from graphveil.methods.release.entries import CHAINS, CLASS_COUNTS
from graphveil.methods.release.plan import assumed_neighbours, outlook_of
from graphveil.methods.release.privacy import ReleasePrivacy
from graphveil.methods.release.public_part import PublicPart, public_part_of
from graphveil.methods.release.published import domain_of
from graphveil.methods.runs.intervals import Interval, interval
from graphveil.privacy import SeededRandomness
from graphveil.runtime.late import Tensor, torch
from graphveil.runtime.sorted_arrays import contains, distinct

WORLDS: Final = 2
#: The least labels and public edges: fewer do not show how edges follow classes.
LEAST: Final = 50
#: The most people, and the most assumed and false edges: more take many minutes.
MOST_PEOPLE: Final = 25_000
MOST_EDGES: Final = 1_500_000
#: Mechanisms that publish pairs, of which noise makes many false.
PAIRS: Final = ("edge-rand", "lap-graph")


@dataclass(frozen=True)
class Rehearsal:
    """The lift of a mechanism over the public part alone in synthetic worlds, as a share of held-out people."""

    edges: str
    lift: Interval

    @property
    def sentence(self) -> str:
        """The lift and its interval, for people."""
        mean, low, high = (f"{100 * value:+.1f}" for value in (self.lift.mean, self.lift.low, self.lift.high))
        return f"{mean} points ({low} to {high})"


def rehearsable(privacy: ReleasePrivacy, graph: Graph) -> bool:
    """Whether a release can be rehearsed: edges alone are private, enough is public, and worlds are small enough.

    Args:
        privacy, graph: the graph's schema, public edges and who has a label are read.
    """
    return _protects_edges_alone(privacy, graph) and _is_small_enough(privacy, graph, domain_of(graph))


def alternatives(privacy: ReleasePrivacy, graph: Graph) -> tuple[str, ...]:
    """Return other mechanisms for the same edges from which `outlook_of` expects lift."""
    domain, classes = domain_of(graph), len(graph.schema.classes)
    choices = [replace(privacy, edges=edges) for edges in (CLASS_COUNTS, *PAIRS) if edges != privacy.edges]
    promising = [choice for choice in choices if outlook_of(choice, domain, classes).lift]
    possible = [choice for choice in promising if _protects_edges_alone(choice, graph)]
    return tuple(choice.edges for choice in possible if _is_small_enough(choice, graph, domain))


def rehearse(
    privacy: ReleasePrivacy, graph: Graph, rivals: Sequence[str] = (), *, share: float | None = None
) -> tuple[Rehearsal, ...]:
    """Return the rehearsals of a release and of `rivals` at the same price.

    Args:
        privacy, rivals: edges alone are protected; other mechanisms for edges.
        graph: features, labels and public edges are read, and nothing else.
        share: the declared share of edges that are private, or None.
    """
    domain, names = domain_of(graph), (privacy.edges, *rivals)
    whole = public_part_of(graph, None, domain)
    gains: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for number in range(WORLDS):
        split = random_split(graph, number)
        private = made_private(whole, domain, share, np.random.default_rng(number))
        part = public_part_of(graph, split, domain, seed=number)
        public_hits = hits(read_public(part), graph, split)
        for name in names:
            scores = _read(replace(privacy, edges=name), part, domain, private, number)
            gains[name].append(hits(scores, graph, split) - public_hits)
    return tuple(Rehearsal(name, interval([np.concatenate(worlds)], difference=True)) for name, worlds in gains.items())


def made_private(part: PublicPart, domain: PairDomain, share: float | None, rng: np.random.Generator) -> Tensor:
    """Return synthetic private edges from public facts, int64 [2, m], u < v, distinct and protected.

    Args:
        part, domain, rng: the public part, all labels known; the protected pairs, and the public edges.
        share: the declared share of edges that are private, or None.
    """
    total = assumed_neighbours(domain, share) * len(domain.ids) / 2
    groups = part.groups()
    prior = block_prior(part, groups, total)
    ids, member = domain.ids, groups.numpy()[domain.ids]
    order, size = np.argsort(member, kind="stable"), np.bincount(member, minlength=len(prior))
    rate = prior.numpy() * np.outer(size, size)
    # Each pair of classes is two cells; a pair that is drawn twice is one edge.
    cells = rng.poisson(rate * (total / rate.sum())).ravel()
    first = np.cumsum(size) - size
    drawn = [first[g] + rng.integers(0, size[g]) for g in np.divmod(np.repeat(np.arange(cells.size), cells), len(size))]
    low, high = np.sort(ids[order[np.stack(drawn)]], axis=0)
    public = np.zeros((2, 0), np.int64) if domain.public is None else domain.public.numpy()
    keys = distinct((low * domain.nodes + high)[low < high])
    keys = keys[~contains(np.sort(public[0] * domain.nodes + public[1]), keys)]
    return torch.from_numpy(np.stack(np.divmod(keys, domain.nodes)).astype(np.int64))


def _read(privacy: ReleasePrivacy, part: PublicPart, domain: PairDomain, private: Tensor, seed: int) -> Tensor:
    """Return the scores [n, c] of reading a release of a world's private edges."""
    # Seeded: the world is synthetic, so there is nobody to protect.
    randomness = SeededRandomness(seed)
    if privacy.edges == CLASS_COUNTS:
        classes = part.people.classes
        counts = count_neighbours(privacy, domain, private, part.groups(), classes, randomness=randomness)
        return read_counts(part, counts, count_noise(privacy.epsilon_a).rate).scores
    features = part.people.features
    public_rows = features.numpy() if isinstance(features, torch.Tensor) else features
    synthetic = make_edges(privacy, domain, private, chains=Chains(), randomness=randomness, features=public_rows)
    return part.network(synthetic.pairs)


def _protects_edges_alone(privacy: ReleasePrivacy, graph: Graph) -> bool:
    with suppress(InputError):
        require_one_label(graph)
        # Noisy features are private: a world would need synthetic ones as well.
        return privacy.protected == ("edges",) and privacy.edges not in CHAINS
    return False


def _is_small_enough(privacy: ReleasePrivacy, graph: Graph, domain: PairDomain) -> bool:
    public = 0 if domain.public is None else domain.public.shape[1]
    false = EdgeRand(epsilon=privacy.epsilon_a, domain=domain).expected_false if privacy.edges in PAIRS else 0
    edges = domain.nodes * assumed_neighbours(domain) + false
    enough = min(public, int(known_labels(graph).sum())) >= LEAST and len(domain.ids) > 1
    return enough and domain.nodes <= MOST_PEOPLE and edges <= MOST_EDGES
