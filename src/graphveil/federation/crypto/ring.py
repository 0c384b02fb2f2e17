"""Fixed point in the ring of 64-bit integers, with exact matrix products.

    encode  x -> round(x 2^f) mod 2^64            decode  r -> r 2^-f, r read as signed
    product of two encodings: at scale 2^2f, exact modulo 2^64

A true value must stay inside the ring's half: |x| 2^2f < 2^62 for whatever is opened at scale 2f, one bit to spare.
torch's int64 product wraps modulo 2^64 and is as fast on a CPU as a float64 one; a GPU has none, there three signed
limbs are multiplied in float64 (22 + 21 + 21 bits; sums of 1024 products of 22-bit limbs stay below 2^53).
Source: Mohassel, Zhang, "SecureML", IEEE S&P 2017, section 4.1.  Shapes: a [n, d], b [d, h].
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from graphveil.errors import InputError

FRACTION_BITS = 18
#: What is opened must stay below 2^ROOM_BITS in the ring.
ROOM_BITS = 62
_LIMBS = (22, 21, 21)
_BLOCK = 1024
#: Ring elements: int64, dense or scipy CSR.
RingMatrix: TypeAlias = Tensor | scipy.sparse.csr_array


def encode(values: Tensor, bits: int = FRACTION_BITS) -> Tensor:
    """Return round(x 2^f) as ring elements, int64 of the same shape; a half goes to the even neighbour. Raises
    InputError for a value that is not finite, or too large for the ring.

    Args:
        values: floats of any shape. bits: f, the fraction bits.

    Example:
        >>> encode(torch.tensor([0.5, -1.25]), bits=4)
        tensor([  8, -20])
    """
    # In float64, where scaling by a power of 2 is exact: a value is rounded once.
    scaled = torch.round(values.double() * 2.0**bits)
    if not bool(scaled.isfinite().all()):
        raise InputError("a value is not finite", where="fixed point", allowed="finite numbers")
    # int64's largest value is no float64: a bound at 2^63 would let a rounded value wrap to the other end.
    if bool((scaled.abs() >= 2.0**ROOM_BITS).any()):
        raise InputError(
            f"a value reaches {float(values.abs().max()):g}",
            where="fixed point",
            allowed=f"less than 2^{ROOM_BITS - bits} with {bits} fraction bits",
        )
    return scaled.long()


def decode(ring: Tensor, bits: int = FRACTION_BITS) -> Tensor:
    """Read ring elements as float32 numbers of the same shape.

    Args:
        ring: int64 of any shape, read as signed. bits: their scale is 2^bits: 2 f for a product of two encodings.

    Example:
        >>> x, w = encode(torch.tensor([[1.5, -2.0]]), bits=8), encode(torch.tensor([[0.25], [0.5]]), bits=8)
        >>> decode(matmul(x, w), bits=16)
        tensor([[-0.6250]])
    """
    return (ring.double() * 2.0**-bits).float()


def require_room(left: float, right: float, terms: int, bits: int = FRACTION_BITS) -> None:
    """Refuse a product whose true value could leave the ring's half; raises InputError with the bits that would do.

    Args:
        left, right: public bounds of the factors' absolute values. terms: how many products are summed.
        bits: f of both factors.
    """
    # The floor is for a bound of 0, whose logarithm would be an error in place of "anything fits".
    reach = max(left * right * terms, 1e-300)
    most = (ROOM_BITS - math.log2(reach)) / 2
    if bits >= most:
        raise InputError(
            f"{bits} fraction bits overflow: {terms} products of {left:g} and {right:g}",
            where="fixed point",
            allowed=f"at most {math.ceil(most) - 1} fraction bits",
            remedy="lower the fraction bits, or declare a smaller range",
        )


def matmul(a: RingMatrix, b: Tensor) -> Tensor:
    """Return a b, int64 [n, h], exact modulo 2^64.

    Args:
        a: int64 [n, d], dense or scipy CSR. b: int64 [d, h], on the device of a dense `a`.
    """
    if scipy.sparse.issparse(a):
        # scipy's int64 product wraps modulo 2^64 as torch's does; numpy would warn of the wrapping.
        with np.errstate(over="ignore"):
            return torch.from_numpy(np.ascontiguousarray(a @ b.numpy()))
    return by_limbs(a, b) if a.is_cuda else a @ b


def by_limbs(a: Tensor, b: Tensor) -> Tensor:
    """Return the same by float64 products alone, for devices without an integer product; exact, see the module for why.

    Args:
        a: int64 [n, d]. b: int64 [d, h].
    """
    lefts, rights = _limbs(a), _limbs(b)
    total = torch.zeros(a.shape[0], b.shape[1], dtype=torch.int64, device=a.device)
    for start in range(0, a.shape[1], _BLOCK):
        here = slice(start, start + _BLOCK)
        for i, left in enumerate(lefts):
            # Limb products at 2^64 and above vanish modulo 2^64, so the pairs i + j >= 3 are left out.
            for j, right in enumerate(rights[: len(_LIMBS) - i]):
                shift = sum(_LIMBS[:i]) + sum(_LIMBS[:j])
                total += (left[:, here] @ right[here]).long() << shift
    return total


def _limbs(a: Tensor) -> list[Tensor]:
    """Split into signed limbs: a = l0 + l1 2^22 + l2 2^43 modulo 2^64, each as float64."""
    parts, rest = [], a
    for width in _LIMBS:
        low = rest & ((1 << width) - 1)
        # Signed limbs halve their size, which keeps the sums of products below 2^53.
        low = torch.where(low >= 1 << (width - 1), low - (1 << width), low)
        parts.append(low.double())
        rest = (rest - low) >> width
    return parts
