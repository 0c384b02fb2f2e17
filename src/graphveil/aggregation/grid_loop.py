"""The compiled loops of `grid`: each row is read, measured and scaled while it is at hand.

They give the bits of the steps by torch in `grid`: a squared length is added up by halves, in the same order.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from graphveil.runtime.compiled import compiled


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
    found: npt.NDArray[np.float32] | npt.NDArray[np.int16],
) -> None:
    """Scale every row to so many steps and truncate its entries towards zero.

    Args:
        rows: [n, c].
        steps: the length of what is found, before truncation.
        shortest: shorter rows are scaled as if they had this length.
        longest: rows of this length and more, and those with a NaN, become zero.
        largest: of a row's scale.
        found: [n, c], set.
    """
    room = np.empty(rows.shape[1], np.float64)
    for i in range(len(rows)):
        long = length(rows[i], room)
        if 0.0 < long < longest:
            scale = np.float32(min(steps / max(long, shortest), largest))
            for k in range(rows.shape[1]):
                found[i, k] = np.trunc(rows[i, k] * scale)
        else:
            for k in range(rows.shape[1]):
                found[i, k] = 0


@compiled
def scale_to_one(rows: npt.NDArray[np.float32], longest: float, found: npt.NDArray[np.float32]) -> None:
    """Divide every row by its length.

    Args:
        rows: [n, c].
        longest: as for `put_on_grid`.
        found: [n, c], set; may be `rows`.
    """
    room = np.empty(rows.shape[1], np.float64)
    for i in range(len(rows)):
        long = length(rows[i], room)
        if 0.0 < long < longest:
            whole = np.float32(long)
            for k in range(rows.shape[1]):
                found[i, k] = rows[i, k] / whole
        else:
            for k in range(rows.shape[1]):
                found[i, k] = 0.0
