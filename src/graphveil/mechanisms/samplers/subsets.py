"""Which coordinates a user reports: a uniform subset, drawn without looking at any data."""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt

from graphveil.mechanisms.base import _validate
from graphveil.mechanisms.base.values import BLOCK, Rows, blocks
from graphveil.privacy import Randomness


def draw_subsets(rows: int, dimension: int, size: int, randomness: Randomness) -> npt.NDArray[np.int64]:
    """`rows` independent uniform subsets of `size` of the numbers 0..dimension-1, each sorted: [rows, size].
    A remainder of 64 uniform bits makes some numbers likelier by a factor of at most 1 + dimension / 2^64.
    """
    # Everything is reported, so nothing is drawn and the positions say nothing.
    if size == dimension:
        return np.broadcast_to(np.arange(dimension), (rows, dimension))
    # Floyd compares each draw with all earlier ones; for larger subsets one key for every coordinate is cheaper.
    if size * size <= 8 * dimension:
        return _floyd(rows, dimension, size, randomness)
    # The places of the `size` smallest of d independent keys; equal keys have probability below d^2 / 2^65.
    keys = randomness.uint64(rows * dimension).reshape(rows, dimension)
    return np.sort(np.argpartition(keys, size, axis=1)[:, :size], axis=1)


def _floyd(rows: int, dimension: int, size: int, randomness: Randomness) -> npt.NDArray[np.int64]:
    """R. Floyd's sampling without replacement (Bentley and Floyd, CACM 30(9), 1987), for all rows at once."""
    uniform = randomness.uint64(rows * size).reshape(rows, size)
    chosen = np.empty((rows, size), dtype=np.int64)
    # Invariant: after each round the chosen numbers are a uniform subset of 0..top.
    for index, top in enumerate(range(dimension - size, dimension)):
        pick = (uniform[:, index] % np.uint64(top + 1)).astype(np.int64)
        repeated = (chosen[:, :index] == pick[:, None]).any(axis=1)
        chosen[:, index] = np.where(repeated, top, pick)
    # Sorted: in which order a device sampled says nothing, and ascending indices show a repetition at a glance.
    chosen.sort(axis=1)
    return chosen


def subset_blocks(rows: Rows, size: int) -> list[tuple[int, int]]:
    """Row blocks whose random numbers, and sparse entries to read, stay within `BLOCK`.

    Args:
        rows: the values, of which only shape and number of stored entries are read.
        size: coordinates that each user samples.
    """
    count, dimension = rows.shape
    keys = dimension if size * size > 8 * dimension else size
    stored = rows.stored // max(1, count) if rows.stored < count * dimension else 1
    return list(blocks(count, max(keys, stored), BLOCK))


def log_subsets(dimension: int, size: int) -> float:
    """The logarithm of the number of subsets."""
    # In logs: the number of subsets overflows from about 1,030 coordinates on.
    return math.lgamma(dimension + 1) - math.lgamma(size + 1) - math.lgamma(dimension - size + 1)


def every_subset(dimension: int, size: int, levels: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Every subset of `size` of the numbers 0..dimension-1 with every level 0..levels-1 of each: two [outputs, size].
    Raises InputError where there are more than a million.

    Args:
        levels: how many each chosen number has.
    """
    _validate.require_enumerable(math.comb(dimension, size) * levels**size)
    chosen = itertools.combinations(range(dimension), size)
    pairs = itertools.product(chosen, itertools.product(range(levels), repeat=size))
    subsets, sent = zip(*pairs, strict=True)
    return np.array(subsets, np.int64), np.array(sent, np.int64)


def index_bits(dimension: int, size: int) -> int:
    """Bits that name one sampled coordinate; none where every coordinate is sent."""
    return 0 if size == dimension else (dimension - 1).bit_length()
