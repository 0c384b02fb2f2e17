"""Compiled loops over a dendrogram's arrays. Import this module inside functions only: it loads the compiler."""

from __future__ import annotations

import numpy as np

from graphveil.compiled import compiled
from graphveil.hierarchy.arrays import BoolArray, IntArray


@compiled
def leaf_intervals(left: IntArray, right: IntArray, start: IntArray, middle: IntArray, stop: IntArray) -> None:
    """Fill the intervals of all subtrees: sizes from the leaves up, then places from the root down.

    Args:
        left, right: int64 [n-1], children, each numbered below its parent.
        start, middle, stop: int64 [2n-1], filled as `Layout` has them.
    """
    leaves = len(left) + 1
    stop[:leaves] = 1
    # Children are numbered below their parents, so a rising loop has both sizes ready, and a falling one the parent's
    # place.
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
    """New numbers of all nodes, children before parents; the leaves keep theirs.

    Args:
        left, right: int64 [n-1], children of inner node n + row, in any order.
        root: the node without a parent.

    Returns:
        int64 [2n-1]; empty where the children make no tree.
    """
    leaves = len(left) + 1
    number = np.full(2 * leaves - 1, -1, np.int64)
    stack = np.empty(leaves, np.int64)
    upper = 2 * leaves - 2
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
        number[node] = upper
        upper -= 1
        # In a tree never more than n nodes wait; a graph with a cycle must not run over the array.
        if depth + 2 > leaves:
            return number[:0]
        stack[depth] = left[node - leaves]
        stack[depth + 1] = right[node - leaves]
        depth += 2
    return number if upper == leaves - 1 else number[:0]


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
    """The highest node above each inner node, or itself, that collapses.

    Args:
        left, right: int64 [n-1], children, each numbered below its parent.
        collapse: bool [n-1].

    Returns:
        int64 [n-1], rows of inner nodes; a node's own row where nothing above it collapses.
    """
    leaves = len(left) + 1
    top = np.arange(leaves - 1)
    # From the root down, so that a node learns of a collapse above it before it hands that on.
    for row in range(leaves - 2, -1, -1):
        if collapse[row] or top[row] != row:
            for child in (left[row], right[row]):
                if child >= leaves:
                    top[child - leaves] = top[row]
    return top
