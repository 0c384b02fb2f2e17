"""A release rehearsed in made worlds before anything private is read: what it may be expected to buy.

    world      public features, labels and edges as they are; private edges made anew: as many as are assumed, each
               between two classes as often as public edges are                            `posterior.block_prior`
    release    by the same mechanism at the same price, of the world's private edges
    lift       what is read with it, less what the public part alone says, on labels held out of both

The interval is over the held-out people of all worlds.  It covers neither that private edges may lie otherwise than
public ones, nor that there may be fewer of them: a promise would need the private edges.
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
#: Fewer labels or public edges say too little of how edges and classes go together.
LEAST: Final = 50
#: More people, or more of assumed and false edges together, take many minutes.
MOST_PEOPLE: Final = 25_000
MOST_EDGES: Final = 1_500_000
#: Ways to publish pairs, of which as many may be false as noise makes.
PAIRS: Final = ("edge-rand", "lap-graph")


@dataclass(frozen=True)
class Rehearsal:
    """What a mechanism bought in made worlds: its lift over the public part alone, as a share of held-out people."""

    edges: str
    lift: Interval

    @property
    def sentence(self) -> str:
        """The expectation in words."""
        mean, low, high = (f"{100 * value:+.1f}" for value in (self.lift.mean, self.lift.low, self.lift.high))
        return f"{mean} points ({low} to {high})"


def rehearsable(privacy: ReleasePrivacy, graph: Graph) -> bool:
    """Whether a release can be rehearsed: edges alone are private, enough is public, and a world is no great work.

    Args:
        privacy, graph: of which schema, public edges and who has a label are looked at.
    """
    return _is_of_edges(privacy, graph) and _is_no_great_work(privacy, graph, domain_of(graph))


def alternatives(privacy: ReleasePrivacy, graph: Graph) -> tuple[str, ...]:
    """Return other ways to publish the same edges that `outlook_of` expects something of."""
    domain, classes = domain_of(graph), len(graph.schema.classes)
    choices = [replace(privacy, edges=edges) for edges in (CLASS_COUNTS, *PAIRS) if edges != privacy.edges]
    hopeful = [choice for choice in choices if outlook_of(choice, domain, classes).lift and _is_of_edges(choice, graph)]
    return tuple(choice.edges for choice in hopeful if _is_no_great_work(choice, graph, domain))


def rehearse(
    privacy: ReleasePrivacy, graph: Graph, rivals: Sequence[str] = (), *, share: float | None = None
) -> tuple[Rehearsal, ...]:
    """Return what a release may be expected to buy, and what `rivals` would at the same price.

    Args:
        privacy, rivals: edges alone are protected; other ways to publish edges.
        graph: features, labels and public edges are read, and nothing else.
        share: of the edges that are private, where that is declared.
    """
    domain, names = domain_of(graph), (privacy.edges, *rivals)
    whole = public_part_of(graph, None, domain)
    gains: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for number in range(WORLDS):
        split = random_split(graph, number)
        private = made_private(whole, domain, share, np.random.default_rng(number))
        part = public_part_of(graph, split, domain, seed=number)
        alone = hits(read_public(part), graph, split)
        for name in names:
            scores = _read(replace(privacy, edges=name), part, domain, private, number)
            gains[name].append(hits(scores, graph, split) - alone)
    return tuple(Rehearsal(name, interval([np.concatenate(worlds)], difference=True)) for name, worlds in gains.items())


def made_private(part: PublicPart, domain: PairDomain, share: float | None, rng: np.random.Generator) -> Tensor:
    """Return private edges made from public facts, int64 [2, m], u < v, distinct and protected.

    Args:
        part, domain, rng: the public part, all labels known; the protected pairs, and the public edges.
        share: of the edges that are private, where that is declared.
    """
    total = assumed_neighbours(domain, share) * len(domain.ids) / 2
    groups = part.groups()
    prior = block_prior(part, groups, total)
    ids, member = domain.ids, groups.numpy()[domain.ids]
    order, size = np.argsort(member, kind="stable"), np.bincount(member, minlength=len(prior))
    rate = prior.numpy() * np.outer(size, size)
    # Each pair of classes is two cells; what is drawn twice is one edge.
    cells = rng.poisson(rate * (total / rate.sum())).ravel()
    first = np.cumsum(size) - size
    drawn = [first[g] + rng.integers(0, size[g]) for g in np.divmod(np.repeat(np.arange(cells.size), cells), len(size))]
    low, high = np.sort(ids[order[np.stack(drawn)]], axis=0)
    public = np.zeros((2, 0), np.int64) if domain.public is None else domain.public.numpy()
    keys = distinct((low * domain.nodes + high)[low < high])
    keys = keys[~contains(np.sort(public[0] * domain.nodes + public[1]), keys)]
    return torch.from_numpy(np.stack(np.divmod(keys, domain.nodes)).astype(np.int64))


def _read(privacy: ReleasePrivacy, part: PublicPart, domain: PairDomain, private: Tensor, seed: int) -> Tensor:
    """Return what is read with a release of a world's private edges, scores [n, c]."""
    # Of a made world: nobody is in it whom secure noise could hide.
    randomness = SeededRandomness(seed)
    if privacy.edges == CLASS_COUNTS:
        classes = part.people.classes
        counts = count_neighbours(privacy, domain, private, part.groups(), classes, randomness=randomness)
        return read_counts(part, counts, count_noise(privacy.epsilon_a).rate).scores
    features = part.people.features
    public_rows = features.numpy() if isinstance(features, torch.Tensor) else features
    synthetic = make_edges(privacy, domain, private, chains=Chains(), randomness=randomness, features=public_rows)
    return part.network(synthetic.pairs)


def _is_of_edges(privacy: ReleasePrivacy, graph: Graph) -> bool:
    with suppress(InputError):
        require_one_label(graph)
        # Features behind noise are private: a world would have to make them up as well.
        return privacy.protected == ("edges",) and privacy.edges not in CHAINS
    return False


def _is_no_great_work(privacy: ReleasePrivacy, graph: Graph, domain: PairDomain) -> bool:
    public = 0 if domain.public is None else domain.public.shape[1]
    false = EdgeRand(epsilon=privacy.epsilon_a, domain=domain).expected_false if privacy.edges in PAIRS else 0
    edges = domain.nodes * assumed_neighbours(domain) + false
    enough = min(public, int(known_labels(graph).sum())) >= LEAST and len(domain.ids) > 1
    return enough and domain.nodes <= MOST_PEOPLE and edges <= MOST_EDGES
