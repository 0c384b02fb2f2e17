"""Compiled loops over a dendrogram's arrays. Import this module inside functions only: it loads the compiler."""

from __future__ import annotations

import numpy as np

from graphveil.hierarchy.arrays import BoolArray, IntArray
from graphveil.hierarchy.compiled import compiled


@compiled
def lay_out(left: IntArray, right: IntArray, start: IntArray, middle: IntArray, stop: IntArray) -> None:
    """Fill the ranges of all subtrees, [2n-1] each: sizes from the leaves up, then places from the root down."""
    leaves = len(left) + 1
    stop[:leaves] = 1
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
def number_from_below(left: IntArray, right: IntArray, root: int) -> IntArray:
    """New numbers [2n-1] of all nodes, children before parents; the leaves keep theirs.

    The result is shorter than 2n-1 where the children make no tree.
    """
    leaves = len(left) + 1
    number = np.full(2 * leaves - 1, -1, np.int64)
    pending = np.empty(leaves, np.int64)
    upper = 2 * leaves - 2
    pending[0], waiting = root, 1
    while waiting > 0:
        waiting -= 1
        node = pending[waiting]
        if number[node] >= 0:
            return number[:0]
        if node < leaves:
            number[node] = node
            continue
        number[node] = upper
        upper -= 1
        if waiting + 2 > leaves:
            return number[:0]
        pending[waiting] = left[node - leaves]
        pending[waiting + 1] = right[node - leaves]
        waiting += 2
    return number if upper == leaves - 1 else number[:0]


@compiled
def add_up(left: IntArray, right: IntArray, total: IntArray) -> None:
    """Add to each inner node [n-1] what its children have, from the leaves up."""
    leaves = len(left) + 1
    for row in range(leaves - 1):
        for child in (left[row], right[row]):
            if child >= leaves:
                total[row] += total[child - leaves]


@compiled
def hand_down(left: IntArray, right: IntArray, collapse: BoolArray) -> IntArray:
    """For each inner node [n-1] the row of the highest one above it, or itself, that collapses; itself without."""
    leaves = len(left) + 1
    top = np.arange(leaves - 1)
    for row in range(leaves - 2, -1, -1):
        if collapse[row] or top[row] != row:
            for child in (left[row], right[row]):
                if child >= leaves:
                    top[child - leaves] = top[row]
    return top
