"""Audits of releases by trees: noisy counts of blocks, and trees that private edges helped to draw.

A drawn tree is epsilon-private in the limit of its Markov chain alone. On four and five nodes the limit and what the
chain has done after its number of steps are known exactly: if the latter is within t of the former in total variation,
the tree is (epsilon, (1 + e^epsilon) t)-private. What larger graphs' chains leave over, nobody can enumerate.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch

from graphveil import hierarchy
from graphveil.audit import exact, sampled
from graphveil.audit.cases import Case
from graphveil.audit.tree_laws import Bools, Table, Trees, neighbouring_graphs, pairs_of
from graphveil.audit.verdict import Audit, judge, timed
from graphveil.mechanisms import NoisyCounts, PairDomain
from graphveil.mechanisms.base.guarantees import pair_guarantee
from graphveil.methods.release.edges import STEPS_A_NODE, noisy_blocks
from graphveil.privacy import Guarantee, Randomness

#: What a total variation of float64 probabilities cannot be told from.
_ROUNDING: Final = 1e-14
#: People of the release whose blocks are sampled.
_MANY: Final = 4096
_SAMPLES: Final = 3000


def block_case() -> Case:
    """Return the audit of block counts: every graph on five nodes with two public edges; one edge in each of many."""
    public = np.array([[0, 2], [1, 3]])
    domain = PairDomain(5, None, torch.from_numpy(public))

    def table(mechanism: NoisyCounts) -> exact.Table:
        tree = hierarchy.pair_tree(hierarchy.public_tree(domain.nodes, public), public=public)
        # The finest blocks that there are: all others are sums of these.
        blocks = hierarchy.choose_blocks(tree, np.zeros(domain.nodes - 1, np.bool_))
        ranks = [[k for k in range(domain.size) if g >> k & 1] for g in range(1 << domain.size)]
        edges = (domain.unrank(torch.tensor(own, dtype=torch.int64)) for own in ranks)
        counts = np.array([blocks.counts(own.numpy()) for own in edges])  # private edges, [graphs, blocks]
        levels = torch.arange(-40, 41 + int(counts.max()))
        each = [mechanism.log_likelihood(levels, torch.full_like(levels, c)).numpy() for c in range(counts.max() + 1)]
        probabilities: exact.Table = np.stack(each)[counts].transpose(0, 2, 1)
        return probabilities

    return Case(
        name="edge-rr, block counts",
        epsilon=1.0,
        small=lambda epsilon: NoisyCounts(epsilon=epsilon),
        table=table,
        large=lambda epsilon: NoisyCounts(epsilon=epsilon),
        draw=_block_scores,
        neighbours=lambda _: exact.subset_neighbours(1 << domain.size),
        independent=True,
        complete=False,
    )


def _block_scores(mechanism: NoisyCounts) -> sampled.Draw:
    """Noisy counts of all blocks of a release with one private edge in each block, or in none: each is one pair."""
    tree, domain = hierarchy.balanced_dendrogram(np.arange(_MANY)), PairDomain(_MANY)

    def draw(is_first: bool, count: int, randomness: Randomness) -> sampled.Scores:
        def release(private: npt.NDArray[np.int64]) -> Any:
            return noisy_blocks(tree, domain, private, mechanism.epsilon, randomness, informed=False)

        edges = np.zeros((2, 0), np.int64)
        if is_first:
            blocks = release(edges).blocks
            edges = np.stack([blocks.sorted_pairs.row[place] for place in (blocks.start, blocks.middle)])
        counts = [release(edges).noisy]
        while sum(map(len, counts)) < count:
            counts.append(release(edges).noisy)
        return np.concatenate(counts)[:count]

    return draw


@dataclass(frozen=True)
class TreeCase:
    """A tree over a few nodes, drawn at `epsilon` from private edges and, if `public`, others that everybody knows.

    Attributes:
        nodes: 4 or 5; with public edges 4, where each of the 6 pairs is public, private or no edge.
    """

    name: str
    nodes: int
    public: bool
    epsilon: float = 2.0

    @property
    def steps(self) -> int:
        """The number of steps that the release takes by default."""
        return STEPS_A_NODE * self.nodes

    @property
    def claim(self) -> Guarantee:
        return pair_guarantee(self.epsilon, PairDomain(self.nodes))

    @cached_property
    def world(self) -> World:
        if self.public:
            return _with_public(self.nodes)
        private, neighbours = neighbouring_graphs(self.nodes)
        nobody = np.zeros((len(private), self.nodes), np.bool_)
        return World(np.zeros_like(private), private, nobody, [None] * len(private), neighbours)

    def scores(self, epsilon: float | None = None) -> Table:
        """Return the chain's log-weights of trees, [graphs, trees].

        Args:
            epsilon: what the tree may cost; None: the claimed one.
        """
        world, trees = self.world, Trees(self.nodes)
        weight = hierarchy.private_weight(self.epsilon if epsilon is None else epsilon, self.nodes)
        # All nodes are declared private: how many have a private edge is what the law may not depend on.
        everybody = np.ones((len(world.private), self.nodes), np.bool_)
        return trees.scores(world.public, world.touched) + weight * trees.scores(world.private, everybody)

    def draw(self, graph: int, epsilon: float, randomness: Randomness) -> int:
        """Run the shipped chain on a graph and return which tree came out.

        Args:
            randomness: where the steps come from.
        """
        world = self.world
        public, private = (np.array(pairs_of(self.nodes)).T[:, own[graph]] for own in (world.public, world.private))
        options: dict[str, Any] = {"steps": self.steps, "chains": 1, "start": world.starts[graph]}
        fitted = hierarchy.fit_markov(
            self.nodes, None, public, private, epsilon=epsilon, randomness=randomness, **options
        )
        return Trees(self.nodes).number(fitted.dendrogram)


@dataclass(frozen=True, eq=False)
class World:
    """Graphs, and which are neighbours.

    Attributes:
        public, private: bool [graphs, pairs]; touched: bool [graphs, nodes], who has a public edge.
        starts: each chain's first tree; None: a random balanced one.
        neighbours: numbers of graphs that differ in one private edge.
    """

    public: Bools
    private: Bools
    touched: Bools
    starts: Sequence[hierarchy.Dendrogram | None]
    neighbours: list[exact.Pair]


def tree_cases() -> tuple[TreeCase, ...]:
    """Return the releases whose tree private edges help to draw."""
    return (TreeCase("priv-hrg", 5, public=False), TreeCase("edge-rr, mcmc", 4, public=True))


@timed
def audit_limit(case: TreeCase, *, actual: float | None = None) -> Audit:
    """Audit the law that the chain walks towards, on every pair of neighbouring graphs; see `cases.audit_exactly`.

    Args:
        actual: the epsilon that the chain really gets; None: the claimed one.
    """
    table = Trees(case.nodes).law(case.scores(actual))
    return exact.audit_table(f"{case.name}, limit of the tree", case.claim, table, neighbours=case.world.neighbours)


@timed
def audit_steps(case: TreeCase, *, steps: int | None = None, actual: float | None = None) -> Audit:
    """Audit the tree after so many steps; its delta is what convergence leaves over, measured.

    Args:
        case, actual: as of `audit_limit`.
        steps: how many; None: the case's.
    """
    trees, scores, count = Trees(case.nodes), case.scores(actual), case.steps if steps is None else steps
    # The claim is made of the limit and of how far the chain is from it, so both are enumerated.
    limit, identity, anywhere = np.exp(trees.law(scores)), np.eye(len(trees.clusters)), trees.balanced()
    starts = [anywhere if start is None else identity[trees.number(start)] for start in case.world.starts]
    moments = sorted({1, max(1, count // 100), max(1, count // 10), count})
    tables = {k: _law_after(trees, scores, np.stack(starts), k) for k in moments}
    moved = {k: float(np.abs(np.exp(table) - limit).sum(axis=1).max()) for k, table in tables.items()}
    far = {k: max(distance / 2, _ROUNDING) for k, distance in moved.items()}
    # Both laws may be off by t: once in the probability itself, and once e^epsilon-fold in the neighbour's.
    delta = (1.0 + math.exp(case.epsilon)) * far[count]
    worst = [exact.worst_ratio(table, case.world.neighbours) for table in tables.values()]
    claim = (
        f"from the limit in total variation after {_joined(moments, ',')} steps: {_joined(far.values(), '.1g')}",
        f"worst ratio of any tree then: {_joined(worst, '.3g')}",
    )
    target = f"{case.name}, tree after {count:,} steps (exact)"
    if delta >= 1.0:
        finding = f"the chain is {far[count]:.1g} from its limit: nothing is promised"
        return judge(target, case.epsilon, 0.0, math.inf, 0.0, notes=claim, findings=(finding,))
    ordered_pairs = [pair for g, h in case.world.neighbours for pair in ((g, h), (h, g))]
    bound = exact.least_epsilon(tables[count], delta, ordered_pairs)
    return judge(target, case.epsilon, delta, bound, 0.0, notes=claim)


@timed
def audit_walks(
    case: TreeCase,
    *,
    samples: int = _SAMPLES,
    actual: float | None = None,
    false_alarm: float = sampled.FALSE_ALARM,
    seed: int = 0,
) -> Audit:
    """Audit trees that the shipped chain draws for the two neighbouring graphs that it tells apart best.

    Args:
        case, actual: as of `audit_limit`.
        false_alarm: the probability that a true claim is called broken.
    """
    law = Trees(case.nodes).law(case.scores())
    first, second = np.array(case.world.neighbours).T
    # The pair of graphs whose laws lie furthest apart: samples of any other would prove less.
    best = int(np.abs(np.exp(law[first]) - np.exp(law[second])).sum(axis=1).argmax())
    graphs = first[best], second[best]
    # The log ratio of the limit is the best score for telling the two graphs by one tree (Neyman and Pearson).
    ratio = law[graphs[0]] - law[graphs[1]]
    epsilon = case.epsilon if actual is None else actual

    def draw(is_first: bool, count: int, randomness: Randomness) -> sampled.Scores:
        graph = int(graphs[0 if is_first else 1])
        scores: sampled.Scores = ratio[[case.draw(graph, epsilon, randomness) for _ in range(count)]]
        return scores

    options: dict[str, Any] = {"samples": samples, "false_alarm": false_alarm, "seed": seed}
    return sampled.audit_events(f"{case.name}, tree", case.claim, draw, **options)


def _law_after(trees: Trees, scores: Table, first: Table, steps: int) -> Table:
    law: Table = np.matmul(first[:, None, :], trees.steps(scores, steps))[:, 0, :]
    with np.errstate(divide="ignore"):
        logs: Table = np.log(law)
    return logs


def _joined(numbers: Iterable[float], spec: str) -> str:
    return "; ".join(format(number, spec) for number in numbers)


def _with_public(nodes: int) -> World:
    pairs = np.array(pairs_of(nodes))
    kinds = list(itertools.product(range(3), repeat=len(pairs)))
    number = {kind: place for place, kind in enumerate(kinds)}
    neighbours = [
        (place, number[(*kind[:k], 2, *kind[k + 1 :])])
        for kind, place in number.items()
        for k in range(len(pairs))
        if kind[k] == 0
    ]
    public, private = (np.array(kinds) == kind for kind in (1, 2))
    touched = np.stack([(public[:, (pairs == node).any(axis=1)]).any(axis=1) for node in range(nodes)], axis=1)
    trees = {
        key: hierarchy.public_tree(nodes, pairs[list(key)].T)
        for key in {tuple(np.flatnonzero(row)) for row in public}
        if key
    }
    starts = [trees.get(tuple(np.flatnonzero(row))) for row in public]
    return World(public, private, touched, starts, neighbours)
