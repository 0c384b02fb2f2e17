"""The compiled loops of exact sums of outer products of 16-bit whole numbers, two samples at a time.

    out[j, k] = sum_i deltas[i, j] whole[i, k]        entry [p, k] of a packed array: samples 2 p and 2 p + 1

Processors multiply two pairs of 16-bit numbers and add both products in one instruction, without rounding: two to four
times as many products a second as of floats.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from graphveil.runtime.compiled import LONG_VECTORS, add_pairs, compiled

# A tile of sums that fits into registers together with its operands.
_ROWS: Final = 8 if LONG_VECTORS else 6
_COLUMNS: Final = 32 if LONG_VECTORS else 16


@compiled
def pack(rows: npt.NDArray[np.float32], factors: npt.NDArray[np.float32]) -> npt.NDArray[np.int32]:
    """Round rows times their factors to whole numbers, two of them in one entry. Returns [b / 2, more than d columns]:
    zeros beyond the rows, and in the columns that a tile may reach into.

    Args:
        rows: [b, d]; times its factor a row fits 16 bits.
        factors: [b]; a row whose factor is 0 is zeros, whatever is in it.
    """
    packed = np.empty(((len(rows) + 1) // 2, rows.shape[1] + _COLUMNS), np.int32)
    for p in range(len(packed)):
        pair = packed[p]
        for k in range(pair.size):
            pair[k] = 0
        if factors[2 * p] != 0.0:
            row, factor = rows[2 * p], factors[2 * p]
            for k in range(row.size):
                pair[k] = np.int32(np.rint(row[k] * factor)) & np.int32(0xFFFF)
        if 2 * p + 1 < len(rows) and factors[2 * p + 1] != 0.0:
            row, factor = rows[2 * p + 1], factors[2 * p + 1]
            for k in range(row.size):
                pair[k] |= np.int32(np.rint(row[k] * factor)) << np.int32(16)
    return packed


@compiled
def multiply(deltas: npt.NDArray[np.int32], first: int, whole: npt.NDArray[np.int32], out: np.ndarray) -> None:
    """Set `out` to the sums of outer products of packed arrays.

    Args:
        deltas: [p, ...], whose columns from `first` on are the rows of `out`.
        first: the first of these columns.
        whole: [p, ...], whose first columns are the columns of `out`.
        out: [rows, columns] float32 or float64; no sum of absolute products reaches 2^31.
    """
    (rows, columns), corner = out.shape, np.empty((_ROWS, _COLUMNS), out.dtype)
    for k in range(0, columns, _COLUMNS):
        for j in range(0, rows, _ROWS):
            if j + _ROWS <= rows and k + _COLUMNS <= columns:
                add_pairs(deltas, whole, out, first + j, k, j, k, _ROWS, _COLUMNS)
                continue
            add_pairs(deltas, whole, corner, first + j, k, 0, 0, _ROWS, _COLUMNS)
            for row in range(min(_ROWS, rows - j)):
                for column in range(min(_COLUMNS, columns - k)):
                    out[j + row, k + column] = corner[row, column]
