"""The compiled loops of `field`: products of numbers in limbs, 64 numbers side by side."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphveil.runtime.compiled import compiled

Limbs = NDArray[np.uint32]
Columns = NDArray[np.uint64]


@compiled
def power(base: Limbs, bits: NDArray[np.uint8]) -> Limbs:
    """Return base to a power, uint32 [9, lanes].

    Args:
        base: numbers in limbs, uint32 [9, lanes].
        bits: the exponent's binary digits, the first 1, uint8.
    """
    result, columns = base.copy(), np.empty((18, base.shape[1]), dtype=np.uint64)
    for bit in bits[1:]:
        # No branch on a number, only on the exponent's bits, which are public.
        _square(result, columns)
        _reduce(columns, result)
        if bit:
            _multiply(result, base, columns)
            _reduce(columns, result)
    return result


@compiled
def _multiply(a: Limbs, b: Limbs, columns: Columns) -> None:
    columns[:, :] = 0
    for i in range(9):
        for j in range(9):
            for lane in range(a.shape[1]):
                columns[i + j, lane] += np.uint64(a[i, lane]) * np.uint64(b[j, lane])


@compiled
def _square(a: Limbs, columns: Columns) -> None:
    columns[:, :] = 0
    for i in range(9):
        for lane in range(a.shape[1]):
            columns[2 * i, lane] += np.uint64(a[i, lane]) * np.uint64(a[i, lane])
        for j in range(i + 1, 9):
            for lane in range(a.shape[1]):
                columns[i + j, lane] += np.uint64(np.uint32(2) * a[i, lane]) * np.uint64(a[j, lane])


@compiled
def _reduce(columns: Columns, out: Limbs) -> None:
    """Write what the columns stand for into limbs of 29 bits, the first up to 2^29 + 1216."""
    bits, mask, fold = np.uint64(29), np.uint64((1 << 29) - 1), np.uint64(64 * 19)
    for k in range(17):
        for lane in range(out.shape[1]):
            columns[k + 1, lane] += columns[k, lane] >> bits
            columns[k, lane] &= mask
    for k in range(9):
        for lane in range(out.shape[1]):
            # The last column holds some 2^33 at most, the others 29 bits: times 1216, far from 2^64.
            columns[k, lane] += columns[k + 9, lane] * fold
    # One pass can leave the first limb 2^24 above its 29 bits; products are counted with 1216 above at most.
    for _ in range(2):
        for k in range(8):
            for lane in range(out.shape[1]):
                columns[k + 1, lane] += columns[k, lane] >> bits
                columns[k, lane] &= mask
        for lane in range(out.shape[1]):
            columns[0, lane] += (columns[8, lane] >> bits) * fold
            columns[8, lane] &= mask
    for k in range(9):
        for lane in range(out.shape[1]):
            out[k, lane] = np.uint32(columns[k, lane])
