"""Which coordinates a user reports: a uniform subset, drawn without looking at any data."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from graphveil.privacy import Randomness


def draw_subsets(rows: int, dimension: int, size: int, randomness: Randomness) -> npt.NDArray[np.int64]:
    """`rows` independent uniform subsets of `size` of the numbers 0..dimension-1, each sorted: [rows, size].

    A remainder of 64 uniform bits makes some numbers likelier by a factor of at most 1 + dimension / 2^64.
    """
    if size == dimension:
        return np.broadcast_to(np.arange(dimension), (rows, dimension))
    # Floyd compares each draw with all earlier ones; from about here one key for every coordinate is cheaper.
    if size * size <= 8 * dimension:
        return _floyd(rows, dimension, size, randomness)
    keys = randomness.uint64(rows * dimension).reshape(rows, dimension)
    return np.sort(np.argpartition(keys, size, axis=1)[:, :size], axis=1)


def _floyd(rows: int, dimension: int, size: int, randomness: Randomness) -> npt.NDArray[np.int64]:
    """R. Floyd's sampling without replacement (Bentley and Floyd, CACM 30(9), 1987), for all rows at once."""
    uniform = randomness.uint64(rows * size).reshape(rows, size)
    chosen = np.empty((rows, size), dtype=np.int64)
    for place, top in enumerate(range(dimension - size, dimension)):
        pick = (uniform[:, place] % np.uint64(top + 1)).astype(np.int64)
        taken = (chosen[:, :place] == pick[:, None]).any(axis=1)
        chosen[:, place] = np.where(taken, top, pick)
    chosen.sort(axis=1)
    return chosen
