"""Audits of mechanisms that hide edges: all graphs of three users or four nodes, and samples of larger ones."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from graphveil.audit import sampled
from graphveil.audit.cases import Case
from graphveil.audit.exact import Pair, Table, graph_table, subset_neighbours
from graphveil.mechanisms import (
    AdjacencyRR,
    ClassCounts,
    DegreePreservingReports,
    DegreePreservingRR,
    DegreeReports,
    EdgeRand,
    EdgeReports,
    LapGraph,
    NoisyCounts,
    NoisyDegree,
    PairDomain,
)
from graphveil.privacy import Randomness

A = TypeVar("A")


class _Lists(Protocol[A]):
    @property
    def mode(self) -> str: ...

    def randomize(self, lists: Tensor, /, *, randomness: Randomness) -> A: ...

    def log_likelihood(self, reports: A, lists: Tensor, /) -> Tensor: ...


L = TypeVar("L", bound=_Lists[Any])
P = TypeVar("P", bound=EdgeRand | LapGraph)
_USERS: Final = 3
#: Users of the sampled graphs, in which everybody knows the next one, or nobody anybody.
_MANY: Final = 400
_PAIRS: Final = list(itertools.combinations(range(_USERS), 2))


def edge_cases() -> tuple[Case, ...]:
    """Return the audits of all mechanisms on neighbour lists and on a curator's pairs."""
    return (
        _lists("adjacency-rr", AdjacencyRR, 1.0, "lower", _all_lists, independent=False),
        _lists("adjacency-rr, both ends", AdjacencyRR, 1.0, "both", _all_lists, independent=False),
        _lists("degree-preserving-rr", DegreePreservingRR, 4.0, "lower", _levels_and_lists, degree_share=0.5),
        _degrees(),
        _pairs("edge-rand", EdgeRand, _independent_pairs, samples=50_000),
        _pairs("lap-graph", LapGraph, _whole_releases, samples=3_000),
        _class_counts(),
        _counts(),
    )


def all_graphs() -> list[Tensor]:
    """Return every graph of three users, int64 [2, E]; number g has pair k exactly if bit k of g is 1."""
    return [_both([pair for k, pair in enumerate(_PAIRS) if g >> k & 1]) for g in range(1 << len(_PAIRS))]


def _both(pairs: Sequence[tuple[int, int]]) -> Tensor:
    links = [link for i, j in pairs for link in ((i, j), (j, i))]
    return torch.tensor(links, dtype=torch.int64).reshape(-1, 2).T.contiguous()


def _lists(
    name: str,
    kind: Callable[..., L],
    epsilon: float,
    mode: str,
    outputs: Callable[[L], Sequence[EdgeReports] | Sequence[DegreePreservingReports]],
    *,
    independent: bool = True,
    **options: Any,
) -> Case:
    def table(mechanism: L) -> Table:
        probabilities = graph_table(mechanism.log_likelihood, all_graphs(), outputs(mechanism))
        return probabilities if independent else np.asarray(probabilities.sum(axis=2))

    return Case(
        name=name,
        epsilon=epsilon,
        small=lambda epsilon: kind(epsilon=epsilon, nodes=_USERS, mode=mode, **options),
        table=table,
        large=lambda epsilon: kind(epsilon=epsilon, nodes=_MANY, mode=mode, **options),
        draw=lambda mechanism: _list_scores(mechanism, _chain(), _both([])),
        samples=20_000,
        neighbours=lambda _: subset_neighbours(1 << len(_PAIRS)),
        independent=independent,
        complete=not independent,
    )


def _degrees() -> Case:
    def build(epsilon: float, nodes: int) -> NoisyDegree:
        return NoisyDegree(epsilon=epsilon, nodes=nodes, mode="lower")

    def table(mechanism: NoisyDegree) -> Table:
        counts = [mechanism.count(edges) for edges in all_graphs()]
        return graph_table(mechanism.log_likelihood, counts, [_same_level(level) for level in _range(mechanism)])

    def draw(mechanism: NoisyDegree) -> sampled.Draw:
        return _list_scores(mechanism, mechanism.count(_chain()), mechanism.count(_both([])))

    return Case(
        name="noisy-degree",
        epsilon=1.0,
        small=lambda epsilon: build(epsilon, _USERS),
        table=table,
        large=lambda epsilon: build(epsilon, _MANY),
        draw=draw,
        neighbours=lambda _: subset_neighbours(1 << len(_PAIRS)),
        independent=True,
        complete=False,
    )


def _chain() -> Tensor:
    """Everybody knows the next one: where the lower id reports, one entry in every list but the last."""
    return _both([(i, i + 1) for i in range(_MANY - 1)])


def _list_scores(mechanism: _Lists[A], first: Tensor, second: Tensor) -> sampled.Draw:
    """Log-likelihood ratios of relationships, as many as users in one collection: each is one pair of neighbours. With
    "both" a relationship stands in two lists; the ends of every other link of the chain are scored together.
    """
    both = mechanism.mode == "both"
    # One score a relationship: what is audited is 2 epsilon for the pair, which one list alone cannot show.
    if both:
        # Every other link, so that no user stands in two pairs: the scores of one collection are then independent.
        first = _both([(i, i + 1) for i in range(0, _MANY - 1, 2)])

    def draw(is_first: bool, count: int, randomness: Randomness) -> sampled.Scores:
        scores: list[sampled.Scores] = []
        while sum(map(len, scores)) < count:
            reports = mechanism.randomize(first if is_first else second, randomness=randomness)
            change = mechanism.log_likelihood(reports, first) - mechanism.log_likelihood(reports, second)
            scores.append(change.reshape(-1, 2).sum(dim=1).numpy() if both else change[:-1].numpy())
        return np.concatenate(scores)[:count]

    return draw


def _lists_of(user: int, mode: str) -> list[tuple[int, ...]]:
    candidates = [j for j in range(_USERS) if j > user or (j != user and mode != "lower")]
    return [named for size in range(len(candidates) + 1) for named in itertools.combinations(candidates, size)]


def _reports(lists: Sequence[Sequence[int]]) -> EdgeReports:
    starts = torch.tensor([0, *itertools.accumulate(map(len, lists))])
    return EdgeReports(starts, torch.tensor([j for named in lists for j in named], dtype=torch.int32))


def _all_lists(mechanism: AdjacencyRR) -> list[EdgeReports]:
    return [_reports(lists) for lists in itertools.product(*(_lists_of(u, mechanism.mode) for u in range(_USERS)))]


def _levels_and_lists(mechanism: DegreePreservingRR) -> list[DegreePreservingReports]:
    """Every level with every list of each user; lists repeat where a user has fewer than another."""
    # Users report independently, so each one's lists are enumerated beside the others' and not in all combinations.
    lists = [_lists_of(user, mechanism.mode) for user in range(_USERS)]
    return [
        DegreePreservingReports(_same_level(level), _reports([own[k % len(own)] for own in lists]))
        for level in _range(mechanism.degree)
        for k in range(max(map(len, lists)))
    ]


def _same_level(level: int) -> DegreeReports:
    return DegreeReports(torch.full((_USERS,), level, dtype=torch.int32))


def _range(mechanism: NoisyDegree) -> range:
    lowest, highest = mechanism.ends
    return range(lowest, highest + 1)


def _pairs(name: str, kind: Callable[..., P], draw: Callable[[P], sampled.Draw], *, samples: int) -> Case:
    """Five protected pairs of four nodes (the sixth is a public edge): 32 graphs, 32 releases."""
    # A public edge among the pairs, so that ranks and positions differ: one taken for the other would show.
    domain = PairDomain(4, None, torch.tensor([[0], [2]]))
    wide = PairDomain(_MANY) if draw is _independent_pairs else domain

    def table(mechanism: P) -> Table:
        sets = _all_sets(domain)
        return graph_table(mechanism.log_likelihood, sets, sets)

    return Case(
        name=name,
        epsilon=1.0,
        small=lambda epsilon: kind(epsilon=epsilon, domain=domain),
        table=table,
        large=lambda epsilon: kind(epsilon=epsilon, domain=wide),
        draw=draw,
        samples=samples,
        neighbours=lambda _: subset_neighbours(1 << domain.size),
    )


def _all_sets(domain: PairDomain) -> list[Tensor]:
    ranks = [[k for k in range(domain.size) if g >> k & 1] for g in range(1 << domain.size)]
    return [domain.unrank(torch.tensor(chosen, dtype=torch.int64)) for chosen in ranks]


def _independent_pairs(mechanism: EdgeRand) -> sampled.Draw:
    """Whether each pair is released, when every pair or none is an edge: the pairs' coins are independent."""
    size = mechanism.domain.size

    def draw(is_first: bool, count: int, randomness: Randomness) -> sampled.Scores:
        true = mechanism.domain.unrank(torch.arange(size if is_first else 0))
        scores = np.zeros(size)
        scores[mechanism.domain.rank(mechanism.randomize(true, randomness=randomness)).numpy()] = 1.0
        return scores[:count]

    return draw


def _whole_releases(mechanism: LapGraph) -> sampled.Draw:
    """Log-likelihood ratios of releases of a graph of one edge and one of none."""
    # Half of epsilon for the number: with the default share no single event of few samples says much.
    mechanism = replace(mechanism, count_share=0.5)
    sets = _all_sets(mechanism.domain)
    graphs: Pair = (1, 0)
    ratios = [
        float(mechanism.log_likelihood(sent, sets[graphs[0]]) - mechanism.log_likelihood(sent, sets[graphs[1]]))
        for sent in sets
    ]

    def draw(is_first: bool, count: int, randomness: Randomness) -> sampled.Scores:
        true = sets[graphs[0 if is_first else 1]]
        releases = (mechanism.randomize(true, randomness=randomness) for _ in range(count))
        return np.array([ratios[sum(1 << k for k in mechanism.domain.rank(sent).tolist())] for sent in releases])

    return draw


def _class_counts() -> Case:
    """Every table of three counts' worth of noise around those of 32 graphs; a chain of pairs, sampled."""
    domain, groups = PairDomain(4, None, torch.tensor([[0], [2]])), torch.tensor([0, 1, 1, 0])

    def small(epsilon: float) -> ClassCounts:
        return ClassCounts(epsilon=epsilon, domain=domain, groups=groups, classes=2)

    def table(mechanism: ClassCounts) -> Table:
        sets = _all_sets(domain)
        tables = [torch.from_numpy(mechanism.count(edges)) + away for edges in sets for away in (-1, 0, 1)]
        return graph_table(mechanism.log_likelihood, sets, tables)

    def large(epsilon: float) -> ClassCounts:
        return ClassCounts(epsilon=epsilon, domain=PairDomain(2 * _MANY), groups=torch.arange(2 * _MANY) % 2, classes=2)

    def draw(mechanism: ClassCounts) -> sampled.Draw:
        """How many counts of two partners name each other, when all partners are related or none; disjoint pairs."""
        partners = torch.arange(2 * _MANY).view(-1, 2).T

        def scores(is_first: bool, count: int, randomness: Randomness) -> sampled.Scores:
            batches: list[sampled.Scores] = []
            while sum(map(len, batches)) < count:
                sent = mechanism.randomize(partners if is_first else partners[:, :0], randomness=randomness)
                batches.append((sent[0::2, 1] + sent[1::2, 0]).numpy().astype(np.float64))
            return np.concatenate(batches)[:count]

        return scores

    return Case(
        name="class-counts",
        epsilon=1.0,
        small=small,
        table=table,
        large=large,
        draw=draw,
        neighbours=lambda _: subset_neighbours(1 << domain.size),
        complete=False,
    )


def _counts() -> Case:
    # e^-40 of the noise lies beyond, which no float64 table can tell from nothing.
    levels = torch.arange(-40, 44)

    def table(mechanism: NoisyCounts) -> Table:
        return np.stack([mechanism.log_likelihood(levels, torch.full_like(levels, c)).numpy() for c in range(4)])

    def draw(mechanism: NoisyCounts) -> sampled.Draw:
        def scores(is_first: bool, count: int, randomness: Randomness) -> sampled.Scores:
            true = torch.full((count,), 3 if is_first else 2)
            return mechanism.randomize(true, randomness=randomness).numpy().astype(np.float64)

        return scores

    return Case(
        name="noisy-counts",
        epsilon=1.0,
        small=lambda epsilon: NoisyCounts(epsilon=epsilon),
        table=table,
        large=lambda epsilon: NoisyCounts(epsilon=epsilon),
        draw=draw,
        neighbours=lambda _: [(c, c + 1) for c in range(3)],
    )
