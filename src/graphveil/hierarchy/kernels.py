"""Compiled loops over a dendrogram's arrays. Import this module inside functions only: it loads the compiler."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from graphveil.runtime.compiled import compiled
from graphveil.runtime.sorted_arrays import BoolArray, IntArray

#: Gaps in a block, two lines of the cache.
GAPS: Final = 32


@compiled
def leaf_intervals(left: IntArray, right: IntArray, start: IntArray, middle: IntArray, stop: IntArray) -> None:
    """Fill the intervals of all subtrees: sizes from the leaves up, then places from the root down.

    Args:
        left, right: int64 [n-1], children, each numbered below its parent.
        start, middle, stop: int64 [2n-1], filled as `Layout` has them.
    """
    leaves = len(left) + 1
    stop[:leaves] = 1
    # A rising loop has both children's sizes ready, and a falling one the parent's place.
    for row in range(leaves - 1):
        stop[leaves + row] = stop[left[row]] + stop[right[row]]
    start[2 * leaves - 2] = 0
    for row in range(leaves - 2, -1, -1):
        node = leaves + row
        start[left[row]] = start[node]
        middle[node] = start[node] + stop[left[row]]
        start[right[row]] = middle[node]
        stop[node] += start[node]
    for leaf in range(leaves):
        stop[leaf] += start[leaf]
        middle[leaf] = stop[leaf]


@compiled
def children_first_numbers(left: IntArray, right: IntArray, root: int) -> IntArray:
    """Return new numbers of all nodes, children before parents; the leaves keep theirs; empty where there is no tree.

    Args:
        left, right: int64 [n-1], children of inner node n + row, in any order.
        root: the node without a parent.
    """
    leaves = len(left) + 1
    number = np.full(2 * leaves - 1, -1, np.int64)
    stack = np.empty(leaves, np.int64)
    next_number = 2 * leaves - 2
    stack[0], depth = root, 1
    while depth > 0:
        depth -= 1
        node = stack[depth]
        # A node that is reached twice has two parents.
        if number[node] >= 0:
            return number[:0]
        if node < leaves:
            number[node] = node
            continue
        number[node] = next_number
        next_number -= 1
        # In a tree at most n nodes are on the stack; a graph with a cycle must not overflow it.
        if depth + 2 > leaves:
            return number[:0]
        stack[depth] = left[node - leaves]
        stack[depth + 1] = right[node - leaves]
        depth += 2
    return number if next_number == leaves - 1 else number[:0]


@compiled
def highest_owners(
    owners: npt.NDArray[np.int32],
    reached: npt.NDArray[np.int32],
    table: npt.NDArray[np.int32],
    place: IntArray,
    pairs: npt.NDArray[np.integer[Any]],
) -> IntArray:
    """Return the highest-numbered owner of the gaps between the leaves of each pair, int64 [S].

    Args:
        owners: int32 [g], of each gap, in blocks of `GAPS`.
        reached: int32 [g, 2], the highest owner from the start of a gap's block up to it, and from it to the end.
        table: int32 [k, blocks], at [i, b] the highest owner of the blocks b .. b + 2^i - 1.
        place: int64 [n], of the leaves; gap g lies between the places g and g + 1.
        pairs: [2, S], different leaves.
    """
    highest = np.empty(pairs.shape[1], np.int64)
    for pair in range(pairs.shape[1]):
        u, v = place[pairs[0, pair]], place[pairs[1, pair]]
        low, high = min(u, v), max(u, v) - 1
        first, last = low // GAPS, high // GAPS
        if first == last:
            best = owners[low]
            for gap in range(low + 1, high + 1):
                best = max(best, owners[gap])
        else:
            best = max(reached[low, 1], reached[high, 0])
            if last - first > 1:
                # Exact, where a logarithm may round up. Two ranges of 2^k blocks, maybe overlapping, cover all between.
                level = math.frexp(float(last - first - 1))[1] - 1
                best = max(best, table[level, first + 1], table[level, last - (1 << level)])
        highest[pair] = best
    return highest


@compiled
def add_subtrees_up(left: IntArray, right: IntArray, total: IntArray) -> None:
    """Add to each inner node what its children have, from the leaves up.

    Args:
        left, right: int64 [n-1], children, each numbered below its parent.
        total: int64 [n-1], changed in place.
    """
    leaves = len(left) + 1
    for row in range(leaves - 1):
        for child in (left[row], right[row]):
            if child >= leaves:
                total[row] += total[child - leaves]


@compiled
def topmost_collapsed(left: IntArray, right: IntArray, collapse: BoolArray) -> IntArray:
    """Return for each inner node the row of the highest node that collapses, of it and its ancestors, else its own.

    Args:
        left, right: int64 [n-1], children, each numbered below its parent.
        collapse: bool [n-1].
    """
    leaves = len(left) + 1
    top = np.arange(leaves - 1)
    # From the root down, so that each node knows of a collapse above it before its children are visited.
    for row in range(leaves - 2, -1, -1):
        if collapse[row] or top[row] != row:
            for child in (left[row], right[row]):
                if child >= leaves:
                    top[child - leaves] = top[row]
    return top
