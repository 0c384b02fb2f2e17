"""The compiled loops of `hidden_matrix`: corrections of a level, and diagonals added to rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphveil.runtime.compiled import compiled

Words = NDArray[np.uint64]


@compiled
def correct(child: Words, parent: Words, words: Words, position: int, flags: int, bit: int) -> None:
    """Add a level's correction to the children of all nodes whose flag is set; nodes of a tree stand together.

    Args:
        child, parent: seeds [nodes, 2].
        words: corrections of the trees.
        position: where the level's correction stands in them.
        flags: where the word of flags stands.
        bit: that of this level and side.
    """
    nodes = len(child) // len(words)
    flag_bit, shift = np.uint64(1), np.uint64(bit)
    for tree in range(len(words)):
        first, second = words[tree, position], words[tree, position + 1]
        turn = (words[tree, flags] >> shift) & flag_bit
        for node in range(tree * nodes, (tree + 1) * nodes):
            # By arithmetic and not by a branch: the flag is a secret of both readers together.
            mask = np.uint64(0) - (parent[node, 0] & flag_bit)
            child[node, 0] ^= mask & (first ^ turn)
            child[node, 1] ^= mask & second


@compiled
def correct_leaves(leaves: Words, seeds: Words, words: Words, position: int) -> None:
    """Add a tree's last correction to its leaves whose flag is set.

    Args:
        leaves: numbers [nodes, 8], added to.
        seeds: of the leaves [nodes, 2].
        words: corrections of the trees.
        position: where the last correction begins in them.
    """
    nodes, width = len(seeds) // len(words), leaves.shape[1]
    for tree in range(len(words)):
        for node in range(tree * nodes, (tree + 1) * nodes):
            mask = np.uint64(0) - (seeds[node, 0] & np.uint64(1))
            for number in range(width):
                leaves[node, number] += mask & words[tree, position + number]


@compiled
def add_diagonals(leaves: Words, diagonal: int, start: int, columns_of: NDArray[np.uint32], block: Words) -> None:
    """Add trees of one table to rows: row v of diagonal c is the cell in column pi^-1(v + c).

    Args:
        leaves: of the trees from this diagonal on, [rows or more, trees].
        diagonal: c of the first tree.
        start: the first row of the block.
        columns_of: pi^-1, twice over, [2 n].
        block: rows [rows, n], added to.
    """
    rows, nodes = block.shape
    for row in range(rows):
        # Row by row: one row of numbers stays in the cache.
        shift = np.uint64((start + row + diagonal) % nodes)
        for number in range(np.uint64(leaves.shape[1])):
            block[row, columns_of[shift + number]] += leaves[row, number]
