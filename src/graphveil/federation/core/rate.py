"""The rate of descent on shares: a small whole number times a power of two, applied as a gradient is truncated."""

from __future__ import annotations

import math
from dataclasses import dataclass

from graphveil.errors import InputError
from graphveil.federation.crypto.ring import FRACTION_BITS

#: Fraction bits of slopes: a node's share of the loss is far below 2^-18, and large values do not occur.
SLOPE_BITS = 30
_LIMIT = 1 << (SLOPE_BITS - FRACTION_BITS)


@dataclass(frozen=True)
class Rate:
    """The rate m 2^r.

    Attributes:
        factor, power: m, which is 1, 3, 5 or 7, and r.
    """

    factor: int
    power: int

    @classmethod
    def of(cls, rate: float, halvings: int = 0) -> Rate:
        """Return a number, halved some times, as such a product; InputError where it is none, too large or too small.

        Args:
            rate: positive.
            halvings: how many times it is halved.
        """
        mantissa, power = math.frexp(rate)
        # Three binary digits: each further one makes entries that a truncation loses twice as frequent.
        factor, power, limit = 8 * mantissa, power - 3 - halvings, _LIMIT << halvings
        if not (factor > 0 and factor % 1 == 0 and power >= -SLOPE_BITS and rate < limit):
            allowed = f"on shares, a power of two, or 3, 5 or 7 times one, below {limit}"
            raise InputError(f"shared_rate is {rate:g}", allowed=allowed)
        while factor % 2 == 0:
            factor, power = factor / 2, power + 1
        return cls(int(factor), power)
