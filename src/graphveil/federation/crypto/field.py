"""Arithmetic modulo 2^255 - 19 on many numbers at once: the powers and inverses that hashing to a curve needs.

    number   nine limbs of 29 bits, least first; limb k of lane l is a[k, l]
    product  81 limb products, none above 2^58, at most nine in a column; 2^261 = 64 * 19 folds the upper half down
    inverse  of a product of all, taken apart again: three products a number instead of a power each

The compiled loops run the same steps whatever the numbers are.  Fewer than `_FEW` numbers go to Python's own `pow`,
whose time depends on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

PRIME = 2**255 - 19
_FEW, _LANES = 400, 64
_BITS, _LIMBS = 29, 9


def powers(numbers: Sequence[int], exponent: int) -> list[int]:
    """Return every number to a power, modulo 2^255 - 19.

    Args:
        numbers: of [0, 2^255 - 19).
        exponent: public, at least 1.
    """
    # Not constant in time, as `pow` is used: the numbers are a holder's own, and nobody else can time a single one.
    if len(numbers) < _FEW:
        return [pow(number, exponent, PRIME) for number in numbers]
    from graphveil.federation.crypto.field_loops import power

    limbs, bits = _limbs(numbers), np.array([int(bit) for bit in f"{exponent:b}"], dtype=np.uint8)
    for first in range(0, limbs.shape[1], _LANES):
        part = np.ascontiguousarray(limbs[:, first : first + _LANES])
        limbs[:, first : first + _LANES] = power(part, bits)
    return _numbers(limbs)


def inverses(numbers: Sequence[int]) -> list[int]:
    """Return the inverse of every number; ValueError for zero."""
    before = list(accumulate(numbers, lambda a, b: a * b % PRIME, initial=1))
    # Montgomery's trick. One zero would spoil the inverses of all; `pow` raises on it.
    rest, inverse_of = pow(before[-1], -1, PRIME), [0] * len(numbers)
    for index in range(len(numbers) - 1, -1, -1):
        inverse_of[index] = rest * before[index] % PRIME
        rest = rest * numbers[index] % PRIME
    return inverse_of


def _limbs(numbers: Sequence[int]) -> NDArray[np.uint32]:
    words = np.frombuffer(b"".join(number.to_bytes(40, "little") for number in numbers), "<u8").reshape(-1, 5)
    limbs = np.empty((_LIMBS, len(numbers)), dtype=np.uint32)
    for limb in range(_LIMBS):
        word, shift = divmod(limb * _BITS, 64)
        value = words[:, word] >> np.uint64(shift)
        if shift > 64 - _BITS:
            value = value | words[:, word + 1] << np.uint64(64 - shift)
        limbs[limb] = value & np.uint64((1 << _BITS) - 1)
    return limbs


def _numbers(limbs: NDArray[np.uint32]) -> list[int]:
    weights = [1 << _BITS * limb for limb in range(_LIMBS)]
    return [sum(map(int.__mul__, column, weights)) % PRIME for column in limbs.T.tolist()]
