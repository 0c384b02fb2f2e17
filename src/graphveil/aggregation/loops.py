"""The compiled loops of the room: rows put on a grid, messages of whole numbers added up, weighted sums of rows.

Each gives the bits of the steps by torch that it stands for: same order of sums, squared lengths added up by halves.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from graphveil.runtime.compiled import compiled, prefetch, weighted_sum

#: Rows are prefetched so many messages ahead: memory answers about when they are added up.
_AHEAD: Final = 8
#: 16-bit numbers in a line of the cache.
_LINE: Final = 32


@compiled
def length(row: npt.NDArray[np.float32], room: npt.NDArray[np.float64]) -> float:
    """Return the L2 length of a row, added up as `grid.squared_lengths` does.

    Args:
        row: [c].
        room: [c], written over.
    """
    count = row.size
    if count == 0:
        return 0.0
    for k in range(count):
        room[k] = np.float64(row[k]) * np.float64(row[k])
    while count > 1:
        half = count // 2
        for k in range(half):
            room[k] += room[half + k]
        if count % 2:
            room[0] += room[count - 1]
        count = half
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
        long = length(rows[i], room)
        if 0.0 < long < longest:
            scale = np.float32(min(steps / max(long, shortest), largest))
            for k in range(rows.shape[1]):
                out[i, k] = np.trunc(rows[i, k] * scale)
        else:
            for k in range(rows.shape[1]):
                out[i, k] = 0


@compiled
def scale_to_one(rows: npt.NDArray[np.float32], longest: float, out: npt.NDArray[np.float32]) -> None:
    """Divide every row by its length.

    Args:
        rows: [n, c].
        longest: as for `put_on_grid`.
        out: [n, c], set; may be `rows`.
    """
    room = np.empty(rows.shape[1], np.float64)
    for i in range(len(rows)):
        long = length(rows[i], room)
        if 0.0 < long < longest:
            whole = np.float32(long)
            for k in range(rows.shape[1]):
                out[i, k] = rows[i, k] / whole
        else:
            for k in range(rows.shape[1]):
                out[i, k] = 0.0


@compiled
def add_messages(
    starts: npt.NDArray[np.int64],
    senders: npt.NDArray[np.int32],
    weights: npt.NDArray[np.float32] | None,
    values: npt.NDArray[np.int16],
    piece: int,
    sums: npt.NDArray[np.float32],
    totals: npt.NDArray[np.int64],
) -> None:
    """Add up what each receiver is sent, exactly.

    Args:
        starts: receiver u hears `senders[starts[u]:starts[u + 1]]` [rows + 1].
        senders: rows of `values`.
        weights: whole numbers, one a sender, or None where all are 1.
        values: what every node sends [n, c].
        piece: so many messages add up to at most 2^24.
        sums: set to the sums [rows, c], and to 0 for receivers of more messages than a piece.
        totals: all zero; set to the sums of those receivers, one after the other [long rows, c].
    """
    columns, last, long = values.shape[1], senders.size - 1, 0
    part = np.empty(columns, np.int32)
    for u in range(sums.shape[0]):
        begin, stop = starts[u], starts[u + 1]
        several = stop - begin > piece
        # Once also where there is no message: a row is set whatever it receives.
        while True:
            end = min(begin + piece, stop)
            for k in range(columns):
                part[k] = 0
            for j in range(begin, end):
                soon = senders[min(j + _AHEAD, last)]
                for k in range(0, columns, _LINE):
                    prefetch(values, soon, k)
                sender = np.uint32(senders[j])
                if weights is None:
                    for k in range(columns):
                        part[k] += values[sender, k]
                else:
                    weight = np.int32(weights[j])
                    for k in range(columns):
                        part[k] += weight * np.int32(values[sender, k])
            if several:
                for k in range(columns):
                    sums[u, k] = 0.0
                    totals[long, k] += part[k]
            else:
                for k in range(columns):
                    sums[u, k] = part[k]
            begin = end
            if begin >= stop:
                break
        long += several


@compiled
def add_rows(
    starts: npt.NDArray[Any],
    columns: npt.NDArray[np.int32],
    weights: npt.NDArray[np.float32],
    x: npt.NDArray[np.float32],
    out: npt.NDArray[np.float32],
) -> None:
    """Set out[u] to the sum of weights[j] x[columns[j]] for j from starts[u] to starts[u + 1], in the order of its
    entries, whatever rows are worked on with it.

    Args:
        starts: [rows + 1], int32 or int64.
        columns: rows of x, one an entry.
        weights: one an entry.
        x: [n, c], soonest of the columns that `widened` gives it.
        out: [rows, c], set.
    """
    width = x.shape[1]
    done = width // 32 * 32
    rest = width - done
    for u in range(out.shape[0]):
        first, stop = np.intp(starts[u]), np.intp(starts[u + 1])
        for k in range(0, done, 32):
            weighted_sum(columns, weights, x, out, first, stop, u, k, 32)
        # Columns that fit no register's length are covered by two that overlap: both compute the same where they do.
        if rest > 16:
            weighted_sum(columns, weights, x, out, first, stop, u, done, 16)
        if rest > 8 and width >= 16:
            weighted_sum(columns, weights, x, out, first, stop, u, width - 16, 16)
        elif rest > 4 and width >= 8:
            weighted_sum(columns, weights, x, out, first, stop, u, width - 8, 8)
            if rest > 8:
                weighted_sum(columns, weights, x, out, first, stop, u, done, 8)
        elif rest > 0 and width >= 4:
            weighted_sum(columns, weights, x, out, first, stop, u, width - 4, 4)
            if rest > 4:
                weighted_sum(columns, weights, x, out, first, stop, u, done, 4)
        elif rest > 0:
            for k in range(width):
                weighted_sum(columns, weights, x, out, first, stop, u, k, 1)
