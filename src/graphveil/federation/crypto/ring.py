"""Fixed point in the ring of 64-bit integers, with exact matrix products.

    encode  x -> round(x 2^f) mod 2^64            decode  r -> r 2^-f, r read as signed
    product of two encodings: at scale 2^2f, exact modulo 2^64

A true value must stay inside the ring's half: |x| 2^2f < 2^62 for whatever is opened at scale 2f, one bit to spare.
torch's int64 product wraps modulo 2^64, and is as fast on a CPU as a float64 one.
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
#: Ring elements: int64, dense or scipy CSR.
RingMatrix: TypeAlias = Tensor | scipy.sparse.csr_array


def encode(values: Tensor, bits: int = FRACTION_BITS) -> Tensor:
    """Return round(x 2^f), int64, half to even.

    Args:
        values: floats of any shape.
        bits: f, the fraction bits.

    Raises:
        InputError: for what is not finite, or too large for the ring.

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
        allowed = f"less than 2^{ROOM_BITS - bits} with {bits} fraction bits"
        raise InputError(f"a value reaches {float(values.abs().max()):g}", where="fixed point", allowed=allowed)
    return scaled.long()


def decode(ring: Tensor, bits: int = FRACTION_BITS) -> Tensor:
    """Read ring elements as float32 numbers of the same shape.

    Args:
        ring: int64 of any shape, read as signed.
        bits: their scale is 2^bits: 2 f for a product of two encodings.

    Example:
        >>> x, w = encode(torch.tensor([[1.5, -2.0]]), bits=8), encode(torch.tensor([[0.25], [0.5]]), bits=8)
        >>> decode(matmul(x, w), bits=16)
        tensor([[-0.6250]])
    """
    return (ring.double() * 2.0**-bits).float()


def require_room(left: float, right: float, terms: int, bits: int = FRACTION_BITS) -> None:
    """Refuse a product whose true value could leave the ring's half.

    Args:
        left, right: public bounds of the factors' absolute values.
        terms: how many products are summed.
        bits: f of both factors.

    Raises:
        InputError: with the bits that would do.
    """
    # At least 1e-300: the logarithm of a bound of 0 would raise, although anything fits.
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
        a: int64 [n, d], dense or scipy CSR.
        b: int64 [d, h].
    """
    if scipy.sparse.issparse(a):
        # scipy's int64 product wraps modulo 2^64 as torch's does; numpy would warn of the wrapping.
        with np.errstate(over="ignore"):
            return torch.from_numpy(np.ascontiguousarray(a @ b.numpy()))
    return a @ b
