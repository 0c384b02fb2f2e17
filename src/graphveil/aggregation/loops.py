"""The compiled loops of the room: put rows on a grid, add up messages of whole numbers, weighted sums of rows.

Each gives the same bits as the torch code that it replaces: the same order of sums, squared lengths by halves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from graphveil.runtime.compiled import compiled, squared_sum, weighted_sum

# Rows of up to so many bytes stay in a core's own cache, where prefetching costs more than it saves.
_CACHED_BYTES: Final = 1 << 21
# How many entries ahead a row is prefetched: as many reads as memory serves at a time. Fewer for long rows, by their
# bytes, so that they are still in the cache when they are read.
_FEWEST_AHEAD: Final = 8
_MOST_AHEAD: Final = 64
_BYTES_AHEAD: Final = 1 << 13


@compiled
def length(rows: npt.NDArray[np.float32], i: int, room: npt.NDArray[np.float64]) -> float:
    """Return the L2 length of row i, added up as `grid.squared_lengths` does.

    Args:
        room: [c], written over.
    """
    count = rows.shape[1]
    if count == 16:
        return math.sqrt(squared_sum(rows, i, 16))
    if count == 32:
        return math.sqrt(squared_sum(rows, i, 32))
    if count == 64:
        return math.sqrt(squared_sum(rows, i, 64))
    if count == 0:
        return 0.0
    for k in range(count):
        room[k] = np.float64(rows[i, k]) * np.float64(rows[i, k])
    half = 1
    while 2 * half < count:
        half *= 2
    while count > 1:
        for k in range(count - half):
            room[k] += room[half + k]
        count = half
        half //= 2
    return math.sqrt(room[0])


@compiled
def put_on_grid(
    rows: npt.NDArray[np.float32],
    steps: float,
    shortest: float,
    longest: float,
    largest: float,
    out: npt.NDArray[np.float32] | npt.NDArray[np.int16],
) -> None:
    """Scale every row to so many steps and truncate its entries towards zero.

    Args:
        rows: [n, c].
        out: [n, c], set.
        steps: the length of a scaled row before truncation.
        shortest: shorter rows are scaled as if they had this length.
        largest: of a row's scale.
        longest: rows of this length and more, and those with a NaN, become zero.
    """
    room = np.empty(rows.shape[1], np.float64)
    for i in range(len(rows)):
        row_length = length(rows, i, room)
        if 0.0 < row_length < longest:
            scale = np.float32(min(steps / max(row_length, shortest), largest))
            for k in range(rows.shape[1]):
                out[i, k] = np.trunc(rows[i, k] * scale)
        else:
            for k in range(rows.shape[1]):
                out[i, k] = 0


@compiled
def scale_to_one(rows: npt.NDArray[np.float32], longest: float) -> None:
    """Divide every row by its length, in place: with an output that may alias the input, loops are not vectorized."""
    room = np.empty(rows.shape[1], np.float64)
    for i in range(len(rows)):
        row_length = length(rows, i, room)
        if 0.0 < row_length < longest:
            row_length_32 = np.float32(row_length)
            for k in range(rows.shape[1]):
                rows[i, k] /= row_length_32
        else:
            for k in range(rows.shape[1]):
                rows[i, k] = 0.0


def add_rows(
    starts: npt.NDArray[Any],
    columns: npt.NDArray[np.int32],
    weights: npt.NDArray[np.float32] | None,
    x: npt.NDArray[np.float32] | npt.NDArray[np.int16],
    out: npt.NDArray[np.float32],
) -> None:
    """Set out[u] to the sum of weights[j] x[columns[j]] for j from starts[u] to starts[u + 1], in the order of the
    entries, whatever other rows are in the call.

    Args:
        starts: [rows + 1], int32 or int64.
        columns: rows of x, one an entry.
        weights: one an entry; None, with x of int16 alone: 1 each.
        x: [n, c], quickest with the columns that `widened` gives it. With int16 the sums are exact up to 2^24.
        out: [rows, c], set.
    """
    width = x.shape[1]
    ahead = (
        min(_MOST_AHEAD, max(_FEWEST_AHEAD, _BYTES_AHEAD // max(1, width * x.itemsize)))
        if x.nbytes > _CACHED_BYTES
        else 0
    )
    loop: Callable[..., None] = _ADD_OF_WIDTH.get(width, _add_of_any_width)
    loop(starts, columns, weights, x, out, ahead)


def _add_of_width(width: int) -> Callable[..., None]:
    """Return the loop over rows of so many columns, a power of 2: for short rows any branch would be noticeable."""

    @compiled
    def add(
        starts: npt.NDArray[Any],
        columns: npt.NDArray[np.int32],
        weights: npt.NDArray[np.float32] | None,
        x: npt.NDArray[np.float32] | npt.NDArray[np.int16],
        out: npt.NDArray[np.float32],
        ahead: int,
    ) -> None:
        for u in range(out.shape[0]):
            weighted_sum(columns, weights, x, out, np.intp(starts[u]), np.intp(starts[u + 1]), u, 0, ahead, width)

    return add


_ADD_OF_WIDTH: Final = {width: _add_of_width(width) for width in (4, 8, 16, 32, 64)}


@compiled
def _add_of_any_width(
    starts: npt.NDArray[Any],
    columns: npt.NDArray[np.int32],
    weights: npt.NDArray[np.float32] | None,
    x: npt.NDArray[np.float32] | npt.NDArray[np.int16],
    out: npt.NDArray[np.float32],
    ahead: int,
) -> None:
    """Add rows of any number of columns."""
    width = x.shape[1]
    in_64, in_32 = width // 64 * 64, width // 32 * 32
    rest = width - in_32
    for u in range(out.shape[0]):
        first, stop = np.intp(starts[u]), np.intp(starts[u + 1])
        for k in range(0, in_64, 64):
            weighted_sum(columns, weights, x, out, first, stop, u, k, ahead, 64)
        if in_32 > in_64:
            weighted_sum(columns, weights, x, out, first, stop, u, in_64, ahead, 32)
        # The remaining columns are covered by vectors that may overlap: both compute the same in the overlap.
        if rest > 16:
            weighted_sum(columns, weights, x, out, first, stop, u, in_32, ahead, 16)
        if rest > 8 and width >= 16:
            weighted_sum(columns, weights, x, out, first, stop, u, width - 16, ahead, 16)
        elif rest > 4 and width >= 8:
            weighted_sum(columns, weights, x, out, first, stop, u, width - 8, ahead, 8)
            if rest > 8:
                weighted_sum(columns, weights, x, out, first, stop, u, in_32, ahead, 8)
        elif rest > 0 and width >= 4:
            weighted_sum(columns, weights, x, out, first, stop, u, width - 4, ahead, 4)
            if rest > 4:
                weighted_sum(columns, weights, x, out, first, stop, u, in_32, ahead, 4)
        elif rest > 0:
            for k in range(width):
                weighted_sum(columns, weights, x, out, first, stop, u, k, ahead, 1)
