"""The compiled loop of `sparse`: weighted sums of rows, as many columns at once as a register holds."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from graphveil.aggregation.widths import quick_width
from graphveil.runtime.compiled import compiled, weighted_sum
from graphveil.runtime.late import torch

#: Numbers in a line of the cache.
_LINE: Final = 16
#: Numbers that the system hands out anew each time, 16 MB of them.
_MUCH: Final = 1 << 22


def room(rows: int, columns: int) -> npt.NDArray[np.float32]:
    """Return an array [rows, columns] to be written, whose first row begins with a line of the cache.

    Args:
        rows: of the array.
        columns: of the array, from 1.
    """
    if rows * columns < _MUCH:
        # By torch, whose memory is used again, and begins with a line.
        return torch.empty(rows, columns).numpy()
    # By numpy, which asks for large pages: they make rows all over it quicker to find.
    space = np.empty(rows * columns + _LINE, np.float32)
    start = -space.ctypes.data % (4 * _LINE) // 4
    return space[start : start + rows * columns].reshape(rows, columns)


def widened(x: npt.NDArray[Any], *, often: bool = False) -> npt.NDArray[np.float32]:
    """Return x [n, c] itself, or if that pays, with columns of zeros after its own, so that they are `quick_width`.

    A row that begins with a line of the cache lies in as few of them as it can, and is added up in one pass.  For one
    product of a small array the copy takes longer than it saves.

    Args:
        x: [n, c], numbers of any kind; they become float32.
        often: whether many products follow.
    """
    columns = x.shape[1]
    width = quick_width(columns)
    if width == columns or not (often or x.size >= _MUCH):
        return np.ascontiguousarray(x, np.float32)
    wide = room(len(x), width)
    wide[:, :columns], wide[:, columns:] = x, 0
    return wide


@compiled
def add_rows(
    starts: npt.NDArray[Any],
    columns: npt.NDArray[np.int32],
    weights: npt.NDArray[np.float32],
    x: npt.NDArray[np.float32],
    found: npt.NDArray[np.float32],
) -> None:
    """Set found[u] to the sum of weights[j] x[columns[j]] for j from starts[u] to starts[u + 1].

    A sum is taken in the order of its entries, whatever rows are worked on with it.

    Args:
        starts: [rows + 1], int32 or int64.
        columns: rows of x, one an entry.
        weights: one an entry.
        x: [n, c], soonest of the columns that `widened` gives it.
        found: set to the sums [rows, c].
    """
    width = x.shape[1]
    done = width // 32 * 32
    rest = width - done
    for u in range(found.shape[0]):
        first, stop = np.intp(starts[u]), np.intp(starts[u + 1])
        for k in range(0, done, 32):
            weighted_sum(columns, weights, x, found, first, stop, u, k, 32)
        # Columns that no register's length fits are taken by two that overlap: both find the same of what they share.
        if rest > 16:
            weighted_sum(columns, weights, x, found, first, stop, u, done, 16)
        if rest > 8 and width >= 16:
            weighted_sum(columns, weights, x, found, first, stop, u, width - 16, 16)
        elif rest > 4 and width >= 8:
            weighted_sum(columns, weights, x, found, first, stop, u, width - 8, 8)
            if rest > 8:
                weighted_sum(columns, weights, x, found, first, stop, u, done, 8)
        elif rest > 0 and width >= 4:
            weighted_sum(columns, weights, x, found, first, stop, u, width - 4, 4)
            if rest > 4:
                weighted_sum(columns, weights, x, found, first, stop, u, done, 4)
        elif rest > 0:
            for k in range(width):
                weighted_sum(columns, weights, x, found, first, stop, u, k, 1)
