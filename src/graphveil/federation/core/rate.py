"""The rate of descent on shares: a small whole number and a power of two, which the cut of a gradient takes along."""

from __future__ import annotations

import math
from dataclasses import dataclass

from graphveil.errors import InputError
from graphveil.federation.crypto.ring import FRACTION_BITS

#: Of slopes: a node's share of the loss is far below 2^-18, and the room above is not needed.
SLOPE_BITS = 30
_LIMIT = 1 << (SLOPE_BITS - FRACTION_BITS)


@dataclass(frozen=True)
class Rate:
    """m 2^r."""

    factor: int
    power: int

    @classmethod
    def of(cls, rate: float, slower: int = 0) -> Rate:
        """Return a rate as such a product; InputError where it is none, or too large or small to be cut.

        Args:
            rate: positive.
            slower: it is divided by 2 so often.
        """
        mantissa, power = math.frexp(rate)
        # Three binary digits: each more makes entries that a cut loses twice as frequent.
        factor, power, limit = 8 * mantissa, power - 3 - slower, _LIMIT << slower
        if not (factor > 0 and factor % 1 == 0 and power >= -SLOPE_BITS and rate < limit):
            allowed = f"on shares, a power of two, or 3, 5 or 7 times one, below {limit}"
            raise InputError(f"shared_rate is {rate:g}", allowed=allowed)
        while factor % 2 == 0:
            factor, power = factor / 2, power + 1
        return cls(int(factor), power)
