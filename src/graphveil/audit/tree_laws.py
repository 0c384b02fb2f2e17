"""Every tree over a handful of nodes, and what the Markov chain over them does: exactly, without its compiled loops.

A tree is the set of its clusters, a cluster the set of leaves below one inner node, a bit for each leaf. A step picks
one of the n - 2 inner nodes X = A + B below the root, with sibling C, and proposes to exchange X for A + C or B + C; it
is taken with probability min(1, exp(change)). So from the score of every tree follow

    the limit      exp(score) over its sum,
    k steps        a first law times the k-th power of the matrix of one step.

A graph is a row of true and false, one for each pair of nodes in the order of `pairs_of`.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from graphveil.errors import InputError
from graphveil.hierarchy import Dendrogram, balanced_dendrogram, log_likelihood

Table = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Clusters = frozenset[int]

#: (2n - 3)!! trees: 105 of 5 leaves, 945 of 6.
_MAX_LEAVES: Final = 6


@dataclass(frozen=True)
class Trees:
    """All trees over `leaves` leaves, in a fixed order.

    Raises:
        InputError: fewer than 3 leaves, or more than 6.
    """

    leaves: int

    def __post_init__(self) -> None:
        if not 3 <= self.leaves <= _MAX_LEAVES:
            raise InputError(f"all trees over {self.leaves} leaves", allowed=f"3 to {_MAX_LEAVES}")

    @property
    def clusters(self) -> tuple[Clusters, ...]:
        """Each tree's clusters of two leaves and more."""
        return _all_clusters(self.leaves)

    def number(self, tree: Dendrogram) -> int:
        """Return a tree's number in the order of `clusters`."""
        below = [1 << leaf for leaf in range(self.leaves)]
        for left, right in zip(tree.left.tolist(), tree.right.tolist(), strict=True):
            # A tree is told by its clusters alone: the chain's numbering of inner nodes and of sides plays no part.
            below.append(below[left] | below[right])
        return _numbers(self.leaves)[frozenset(below[self.leaves :])]

    def scores(self, graphs: Bools, members: Bools) -> Table:
        """Return the log-likelihood of each graph's edges in each tree, [graphs, trees], in nats.

        Args:
            graphs: [graphs, pairs].
            members: [graphs, leaves], among whom pairs are counted.
        """
        nats, pairs = _node_scores(self.leaves), pairs_of(self.leaves)
        scores = np.zeros((len(graphs), len(self.clusters)))
        for tree, clusters in enumerate(self.clusters):
            for left, right in (_halves(cluster, clusters) for cluster in clusters):
                sides = [[leaf for leaf in range(self.leaves) if half >> leaf & 1] for half in (left, right)]
                crossing = [(u in sides[0] and v in sides[1]) or (u in sides[1] and v in sides[0]) for u, v in pairs]
                ends = [members[:, side].sum(axis=1) for side in sides]
                scores[:, tree] += nats[ends[0] * ends[1], graphs[:, crossing].sum(axis=1)]
        return scores

    def law(self, scores: Table) -> Table:
        """Return the log of the chain's limit, [graphs, trees], from its scores."""
        law: Table = scores - logsumexp(scores, axis=1, keepdims=True)
        return law

    def steps(self, scores: Table, steps: int) -> Table:
        """Return the probabilities of ending in each tree from each after some steps, [graphs, trees, trees].

        Args:
            scores: [graphs, trees], the log-weight of each tree, in nats.
            steps: how many.
        """
        moves = _moves(self.leaves)
        with np.errstate(over="ignore"):
            odds = np.minimum(1.0, np.exp(scores[:, None, :] - scores[:, :, None]))
        step = odds * moves / moves[0].sum()
        places = np.arange(len(moves))
        # What is not accepted stays: the rows of a chain add up to 1.
        step[:, places, places] += 1.0 - step.sum(axis=2)
        return np.linalg.matrix_power(step, steps)

    def balanced(self) -> Table:
        """Return how likely a random row of leaves, joined in pairs, is to give each tree, [trees]."""
        rows = [self.number(balanced_dendrogram(row)) for row in itertools.permutations(range(self.leaves))]
        return np.bincount(rows, minlength=len(self.clusters)) / len(rows)


def pairs_of(leaves: int) -> list[tuple[int, int]]:
    """Return the pairs u < v of all leaves, in order."""
    return list(itertools.combinations(range(leaves), 2))


def neighbouring_graphs(leaves: int) -> tuple[Bools, list[tuple[int, int]]]:
    """Return graphs [graphs, pairs] and the numbers of two that differ in one edge, {0, 1}: leaves can be renamed."""
    pairs = pairs_of(leaves)
    place = {pair: k for k, pair in enumerate(pairs)}
    renamed = [(*ends, *rest) for ends in ((0, 1), (1, 0)) for rest in itertools.permutations(range(2, leaves))]
    moved = np.array([[place[min(to[u], to[v]), max(to[u], to[v])] for u, v in pairs] for to in renamed])
    without = np.array(list(itertools.product((False, True), repeat=len(pairs) - 1)))
    without = np.insert(without, 0, False, axis=1)
    numbers = (without[:, moved] << np.arange(len(pairs))).sum(axis=2)
    # One graph for each class of renamings that keep the toggled edge: the laws of all others are the same, renamed.
    chosen = without[numbers.min(axis=1) == numbers[:, 0]]
    graphs = np.concatenate([chosen, chosen])
    graphs[len(chosen) :, 0] = True
    return graphs, [(g, len(chosen) + g) for g in range(len(chosen))]


@lru_cache(maxsize=4)
def _all_clusters(leaves: int) -> tuple[Clusters, ...]:
    return tuple(_trees_over((1 << leaves) - 1))


@lru_cache(maxsize=4)
def _numbers(leaves: int) -> dict[Clusters, int]:
    return {clusters: number for number, clusters in enumerate(_all_clusters(leaves))}


@lru_cache(maxsize=4)
def _moves(leaves: int) -> npt.NDArray[np.int64]:
    """Return in how many of its 2 (n - 2) proposals a step leads from one tree to another, [trees, trees]."""
    numbers = _numbers(leaves)
    moves = np.zeros((len(numbers), len(numbers)), np.int64)
    for clusters, number in numbers.items():
        for outer in clusters:
            for inner, sibling in itertools.permutations(_halves(outer, clusters)):
                if inner in clusters:
                    for half in _halves(inner, clusters):
                        moves[number, numbers[clusters - {inner} | {half | sibling}]] += 1
    return moves


@lru_cache(maxsize=4)
def _node_scores(leaves: int) -> Table:
    """The log-likelihood of e edges among N pairs at one inner node, [N, e]."""
    most = leaves**2 // 4
    return np.array([[log_likelihood([min(e, pairs)], [pairs]) for e in range(most + 1)] for pairs in range(most + 1)])


def _trees_over(cluster: int) -> list[Clusters]:
    if cluster & (cluster - 1) == 0:
        return [frozenset()]
    lowest = cluster & -cluster
    trees, rest = [], cluster ^ lowest
    part = rest
    while part:  # every part of the rest but none; the lowest leaf is in the other half
        trees += [
            frozenset({cluster}) | left | right for left in _trees_over(cluster ^ part) for right in _trees_over(part)
        ]
        part = (part - 1) & rest
    return trees


def _halves(cluster: int, clusters: Clusters) -> tuple[int, int]:
    """The two children of a cluster: the largest cluster inside it (or, without any, one leaf) and what it leaves."""
    inside = [other for other in clusters if other != cluster and other & cluster == other]
    largest = max(inside, key=int.bit_count) if inside else cluster & -cluster
    return largest, cluster ^ largest
