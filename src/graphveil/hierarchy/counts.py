"""Pairs and edges by their lowest common ancestor, an inner node of a dendrogram, and how well a tree explains them.

Laid out in a row, the leaves have n - 1 gaps between them, and each inner node owns the gap between its two halves.
The lowest common ancestor of two leaves owns the highest-numbered gap between them, because children are numbered below
their parents: a range maximum, of the ends of two blocks of gaps and of the blocks between them, which a table of all
ranges of 2^k blocks answers with two looks.

The log-likelihood of A. Clauset, C. Moore, M. Newman, "Hierarchical structure and the prediction of missing links in
networks", Nature 2008, eq. 2, at the densities that fit best, with e edges among the N pairs of an inner node:

    L(D) = sum over inner nodes of N chi(e / N),    chi(t) = t ln t + (1 - t) ln(1 - t) <= 0
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from graphveil.errors import InputError
from graphveil.hierarchy.dendrogram import Dendrogram
from graphveil.runtime.sorted_arrays import BoolArray, IntArray


@dataclass(frozen=True, eq=False)
class PairTree:
    """A tree, and the public facts about pairs by its inner nodes."""

    tree: Dendrogram  # the dendrogram over all n nodes
    row: IntArray  # [k] the private nodes in the order of the tree's leaves
    place: IntArray  # [n] the index of each private node in `row`; for all other nodes that of the next private leaf
    start: IntArray  # with middle, stop: [2n-1] the interval of `row` under each node, as in `Layout`
    middle: IntArray
    stop: IntArray
    public: IntArray  # int64 [2, m] the public edges among the private nodes
    public_counts: IntArray  # int64 [n-1], public edges by lowest common ancestor, inner node n + row
    pairs: IntArray  # int64 [n-1], protected pairs in the same way

    @cached_property
    def pairs_below(self) -> IntArray:
        """[n-1] protected pairs inside each subtree."""
        return sums_below(self.tree, self.pairs)


def pair_tree(
    tree: Dendrogram, *, members: npt.ArrayLike | None = None, public: npt.ArrayLike | None = None
) -> PairTree:
    """Sort the protected pairs, among private nodes and not public, by lowest common ancestor; InputError for bad ids.

    Args:
        tree: a dendrogram over all n nodes.
        members: [k] declared private nodes, each once. None: all.
        public: integers [2, m], public edges, each once; those with an end outside `members` do not matter. None: none.
    """
    inside = member_mask(members, tree.leaves)
    public_pairs = read_pairs(np.zeros((2, 0), np.int64) if public is None else public, tree.leaves, "the public edges")
    # Public edges elsewhere are no protected pairs: subtracting them too would make some counts negative.
    public_pairs = public_pairs[:, inside[public_pairs[0]] & inside[public_pairs[1]]]
    layout = tree.layout
    # Declared members, not nodes with private edges: else who gets synthetic edges would reveal who has private ones.
    ranks = np.concatenate([[0], np.cumsum(inside[layout.order])])
    start, middle, stop = (ranks[ends] for ends in (layout.start, layout.middle, layout.stop))
    crossing = ((middle - start) * (stop - middle))[tree.leaves :]
    counts = count_edges(tree, public_pairs)
    # There would be fewer than 0 protected pairs: an edge that is listed twice must not reduce what is protected.
    if (counts > crossing).any():
        what = "a public edge is listed twice"
        raise InputError(what, where="the public edges", allowed="each edge once, either way")
    row = layout.order[inside[layout.order]]
    return PairTree(tree, row, start[: tree.leaves], start, middle, stop, public_pairs, counts, crossing - counts)


def count_edges(tree: Dendrogram, pairs: npt.ArrayLike) -> IntArray:
    """Return how many pairs have their lowest common ancestor at each inner node n + row: int64 [n-1], E_r. Raises
    InputError as `lowest_common_ancestors` does.

    Adding or removing one pair changes one count, by one.

    Args:
        tree, pairs: as of `lowest_common_ancestors`.
    """
    counts = np.bincount(lowest_common_ancestors(tree, pairs) - tree.leaves, minlength=tree.leaves - 1)
    return counts.astype(np.int64, copy=False)


def lowest_common_ancestors(tree: Dendrogram, pairs: npt.ArrayLike) -> IntArray:
    """Return the lowest common ancestor of each pair of leaves, int64 [S], in time n log n + S; InputError for no pair.

    Args:
        pairs: integers [2, S], 0 to n - 1.
    """
    from graphveil.hierarchy.kernels import highest_owners

    ends = read_pairs(pairs, tree.leaves, "pairs")
    if not ends.size:
        return np.empty(0, np.int64)
    return highest_owners(*_gaps(tree), tree.layout.place, ends)


def sums_below(tree: Dendrogram, values: IntArray) -> IntArray:
    """Return the sum over each inner node and all inner nodes below it, int64 [n-1].

    Args:
        values: int64 [n-1], what each inner node holds.
    """
    from graphveil.hierarchy.kernels import add_subtrees_up

    total: IntArray = np.ascontiguousarray(values, np.int64).copy()
    add_subtrees_up(tree.left, tree.right, total)
    return total


def read_pairs(pairs: npt.ArrayLike, nodes: int, where: str) -> IntArray:
    """Return pairs of different nodes as int64 [2, S]. Raises InputError where a column is no such pair; names the
    column, never the ids.

    Args:
        where: what the pairs are, for the error.
    """
    array = np.asarray(pairs)
    if array.ndim != 2 or array.shape[0] != 2 or array.dtype.kind not in "iu":
        raise InputError(f"pairs are {array.dtype} with shape {array.shape}", where=where, allowed="integers, two rows")
    if array.size and (array.min() < 0 or array.max() >= nodes or (array[0] == array[1]).any()):
        wrong = np.flatnonzero((array < 0).any(0) | (array >= nodes).any(0) | (array[0] == array[1]))
        allowed = f"ids 0 to {nodes - 1}, two different ones"
        raise InputError("not a pair of nodes", where=f"{where}, column {int(wrong[0])}", allowed=allowed)
    return array.astype(np.int64, copy=False)


def member_mask(members: npt.ArrayLike | None, nodes: int) -> BoolArray:
    """Return whether each node is private, bool [n]. Raises InputError where the ids are no such list.

    Args:
        members: [k] declared ids, each once, None: all.
    """
    if members is None:
        return np.ones(nodes, np.bool_)
    ids = np.asarray(members)
    if ids.ndim != 1 or (ids.size and (ids.dtype.kind not in "iu" or ids.min() < 0 or ids.max() >= nodes)):
        raise InputError("the private nodes are not a list of nodes", where="members", allowed=f"ids 0 to {nodes - 1}")
    result = np.zeros(nodes, np.bool_)
    result[ids.astype(np.int64)] = True
    # A node that is declared twice would be counted twice in k, from which sizes and sensitivities follow.
    if np.count_nonzero(result) != len(ids):
        raise InputError("a private node is listed twice", where="members", allowed="each id once")
    return result


def _gaps(tree: Dendrogram) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return the owners of gaps and their maxima, as `kernels.highest_owners` reads them; gap g follows place g."""
    from graphveil.hierarchy.kernels import GAPS

    layout, gaps = tree.layout, tree.leaves - 1
    blocks = -(-gaps // GAPS)
    owners = np.zeros((blocks, GAPS), np.int32)
    owners.reshape(-1)[layout.middle[tree.leaves :] - 1] = np.arange(tree.leaves, tree.nodes)
    reached = np.stack(
        [np.maximum.accumulate(owners, axis=1), np.maximum.accumulate(owners[:, ::-1], axis=1)[:, ::-1]], axis=2
    )
    # A table of the ranges of 2^k gaps themselves would leave the caches long before one of their blocks does.
    table = np.zeros((max(1, blocks.bit_length()), blocks), np.int32)
    table[0] = reached[:, -1, 0]
    for level in range(1, len(table)):
        half = 1 << (level - 1)
        width = blocks - 2 * half + 1
        np.maximum(table[level - 1, :width], table[level - 1, half : half + width], out=table[level, :width])
    return owners.reshape(-1), reached.reshape(-1, 2), table


def log_likelihood(edges: npt.ArrayLike, pairs: npt.ArrayLike) -> float:
    """Return L(D) in nats (eq. 2); where all or none of its pairs are edges an inner node adds 0. Raises InputError for
    a count below 0 or more edges than pairs.

    Args:
        edges, pairs: [r], E_r and L_r R_r of each inner node; InputError for a count outside 0 to all pairs.
    """
    e, total = np.asarray(edges, np.float64), np.asarray(pairs, np.float64)
    if e.shape != total.shape or not ((e >= 0) & (e <= total)).all():
        raise InputError("number of edges out of range", where="log_likelihood", allowed="0 to all pairs")
    # From the counts and not as 1 - share, which loses its digits near a full block.
    rest, has_pairs = total - e, total > 0
    share = np.divide(e, total, out=np.zeros_like(e), where=has_pairs)
    other = np.divide(rest, total, out=np.zeros_like(e), where=has_pairs)
    return float((_weighted_log(e, share) + _weighted_log(rest, other)).sum())


def predictive_log_likelihood(edges: npt.ArrayLike, pairs: npt.ArrayLike, density: npt.ArrayLike) -> float:
    """Return the log-likelihood in nats of edges where each pair is an edge with its inner node's density.

    It is at most `log_likelihood`, and -inf where a density rules out what is there.

    Args:
        edges, pairs: as of `log_likelihood`.
        density: [r], p_r, 0 to 1.
    """
    e, total, p = (np.asarray(values, np.float64) for values in (edges, pairs, density))
    return float((_weighted_log(e, p) + _weighted_log(total - e, 1 - p)).sum())


def likelihood_sensitivity(members: int) -> float:
    """Return the most that one private edge among n private nodes changes L(D), in nats: ln N + (N-1) ln(N/(N-1)).

    N = floor(n^2 / 4) is the largest number of pairs at one inner node; the change is largest from none to one edge.
    Source: K. Tran et al., "Heterogeneous Randomized Response for Differential Privacy in Graph Neural Networks",
    2022, Lemma 4, with the exponent that its eq. 15 lost; it agrees with all graphs and trees of 3 to 6 nodes.
    InputError: fewer than two private nodes.
    """
    if isinstance(members, bool) or not isinstance(members, int | np.integer) or members < 2:
        raise InputError(f"members is {members!r}", where="likelihood_sensitivity", allowed="at least 2 private nodes")
    # Two halves of n nodes have floor(n^2 / 4) pairs between them, the most of any inner node.
    most = int(members) ** 2 // 4
    if most == 1:
        return 0.0
    # log1p, because 1 - 1/N loses the digits of 1/N, and N - 1 times its logarithm is about a nat of the bound.
    return math.log(most) - (most - 1) * math.log1p(-1 / most)


def _weighted_log(weight: npt.NDArray[np.float64], value: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """weight * ln(value), 0 where the weight is."""
    result = np.zeros(np.broadcast(weight, value).shape)
    logs = np.full(result.shape, -np.inf)
    np.log(value, out=logs, where=np.asarray(value) > 0)
    # 0 ln 0 counts as 0, its limit; computed, it would be NaN.
    np.multiply(weight, logs, out=result, where=weight > 0)
    return result
