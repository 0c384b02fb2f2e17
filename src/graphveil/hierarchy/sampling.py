"""Graphs drawn from block densities, in time proportional to the edges that are drawn.

The pairs of a block are numbered without gaps by closed forms in integers:

    between A and B     i |B| + j                                    i, j: positions inside the two intervals
    inside A            (s - 1) |A| + i,  j = i + s mod |A|          each pair once for s = 1 .. |A| / 2

Blocks follow each other; public edges among the numbers are stepped over by a sorted search. An edge for each pair with
the block's density is the same as a binomial number of different pairs drawn evenly.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from graphveil.errors import InputError
from graphveil.hierarchy.counts import lowest_common_ancestors
from graphveil.hierarchy.noisy_blocks import Blocks
from graphveil.runtime.sorted_arrays import FloatArray, IntArray, contains

# Public edges that are numbered at once.
_EDGES: Final = 1 << 23


def sample_edges(blocks: Blocks, density: FloatArray, rng: np.random.Generator) -> IntArray:
    """Make every protected pair an edge with its block's density, independently. Raises InputError for a density
    outside 0 to 1.

    Args:
        density: float64 [B], from 0 to 1, else InputError.
        rng: no noise of a guarantee comes from here: densities that are safe to publish stay so whatever is drawn.

    Returns:
        int64 [2, S], u < v, each pair once, sorted, none of them public.
    """
    if density.shape != (len(blocks),) or not ((density >= 0) & (density <= 1)).all():
        raise InputError("densities that are not shares", allowed=f"{len(blocks)} numbers from 0 to 1")
    # All of it reads noisy densities only, so any generator will do and graphs may be drawn as often as anybody likes.
    ranks = _subsets(blocks.pairs, rng.binomial(blocks.pairs, density), rng)
    public, tree = blocks.sorted_pairs.public, blocks.sorted_pairs.tree
    numbers = [np.zeros(0, np.int64)]
    # Numbering edges takes ten times their memory.
    for start in range(0, public.shape[1], _EDGES):
        edges = public[:, start : start + _EDGES]
        # A block without protected pairs is none, so that the public edges it consists of have no number.
        inside = blocks.owner[lowest_common_ancestors(tree, edges) - tree.leaves] >= 0
        numbers.append(pair_numbers(blocks, edges[:, inside]))
    # Skip the numbers of public edges: the ranks count only the remaining numbers.
    skipped = np.sort(np.concatenate(numbers))
    return _pairs(blocks, ranks + np.searchsorted(skipped - np.arange(len(skipped)), ranks, side="right"))


def pair_numbers(blocks: Blocks, pairs: IntArray) -> IntArray:
    """Return the number of each pair among all pairs of all blocks, public ones included, int64 [S]."""
    sorted_pairs, block = blocks.sorted_pairs, blocks.of(pairs)
    u, v = np.sort(sorted_pairs.place[pairs], axis=0)
    start, middle, stop = blocks.start[block], blocks.middle[block], blocks.stop[block]
    across = (u - start) * (stop - middle) + v - middle
    # Inside a block pairs are numbered by the shorter way round, then by where it starts; of two equal ways by the
    # smaller end: in a circle of even size both ends would count the pair otherwise.
    step, size = v - u, stop - start
    back = 2 * step > size
    inside = (np.where(back, size - step, step) - 1) * size + np.where(back, v, u) - start
    numbers: IntArray = _firsts(blocks.places)[block] + np.where(blocks.whole[block], inside, across)
    return numbers


def _pairs(blocks: Blocks, numbers: IntArray) -> IntArray:
    """The inverse of `pair_numbers`, each pair u < v, sorted by u and then v."""
    firsts = _firsts(blocks.places)
    block = np.searchsorted(firsts, numbers, side="right") - 1
    within = numbers - firsts[block]
    start, middle, stop = blocks.start[block], blocks.middle[block], blocks.stop[block]
    whole, width = blocks.whole[block], np.where(blocks.whole[block], stop - start, stop - middle)
    rest = within % width
    u = np.where(whole, rest, within // width)
    v = np.where(whole, (rest + within // width + 1) % width, rest)
    row = blocks.sorted_pairs.row
    ends = np.stack([row[start + u], row[np.where(whole, start, middle) + v]])
    nodes = blocks.sorted_pairs.tree.leaves
    return np.stack(np.divmod(np.sort(ends.min(axis=0) * nodes + ends.max(axis=0)), nodes))


def _firsts(sizes: IntArray) -> IntArray:
    """Where each of a row of intervals starts."""
    return np.cumsum(sizes) - sizes


def _subsets(sizes: IntArray, counts: IntArray, rng: np.random.Generator) -> IntArray:
    """A uniform subset of `counts` of the `sizes` numbers of each interval in a row, ascending."""
    firsts = _firsts(sizes)
    # For more than half, draw the numbers to leave out, so that draws rarely repeat.
    inverted = 2 * counts > sizes
    drawn = _distinct(firsts, sizes, np.where(inverted, sizes - counts, counts), rng)
    owner = np.searchsorted(firsts, drawn, side="right") - 1
    left_out, chosen = drawn[inverted[owner]], drawn[~inverted[owner]]
    # All numbers of the inverted intervals, ascending.
    first, size = firsts[inverted], sizes[inverted]
    full = np.arange(int(size.sum())) + np.repeat(first - _firsts(size), size)
    return np.sort(np.concatenate([chosen, full[~contains(left_out, full)]]))


def _distinct(firsts: IntArray, sizes: IntArray, counts: IntArray, rng: np.random.Generator) -> IntArray:
    """`counts` distinct numbers of each interval, at most half of it, ascending; repetitions are drawn again."""
    drawn, missing = np.zeros(0, np.int64), counts
    while missing.any():
        owner = np.repeat(np.arange(len(sizes)), missing)
        drawn = np.concatenate([drawn, firsts[owner] + rng.integers(0, sizes[owner])])
        drawn.sort()
        # A repetition is dropped and drawn again from the whole interval, so the result stays a uniform subset.
        drawn = drawn[np.diff(drawn, prepend=-1) > 0]
        ends = np.searchsorted(drawn, firsts + sizes)
        missing = counts - np.diff(ends, prepend=0)
    return drawn
