"""Exact two-sided geometric noise, the integer form of Laplace noise.

A geometric variable with ratio r has independent binary digits, digit i being 1 with probability
r^(2^i) / (1 + r^(2^i)); the difference of two such variables is two-sided geometric. Each digit is one
comparison of uniform bits with a 256-bit threshold, of which the first 64 bits almost always decide.
Source for the noise: A. Ghosh, T. Roughgarden, M. Sundararajan, "Universally Utility-Maximizing Privacy
Mechanisms", STOC 2009, https://arxiv.org/abs/0811.2841.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from graphveil.mechanisms.base.lattice import Levels
from graphveil.mechanisms.base.values import BLOCK, FloatArray, blocks
from graphveil.mechanisms.samplers.bits import PRECISION
from graphveil.privacy import Randomness

# So many bits that all rounding of all thresholds together stays far below the slack that epsilon leaves.
_DIGITS: Final = 256
_REST: Final = _DIGITS - 64


@dataclass(frozen=True)
class TwoSidedGeometric:
    """Pr[Z = z] proportional to exp(-rate |z|), the difference of two geometric variables below 2^bits."""

    rate: float
    bits: int

    def draw(self, count: int, randomness: Randomness) -> Levels:
        """`count` independent draws, int64.

        Args:
            count: how many.
            randomness: the source of the noise.
        """
        result = np.empty(count, np.int64)
        for start, stop in blocks(count, 1, BLOCK):
            result[start:stop] = self._geometric(stop - start, randomness)
            # The difference of two independent geometric variables is two-sided geometric.
            result[start:stop] -= self._geometric(stop - start, randomness)
        return result

    def log_pmf(self, noise: Levels) -> FloatArray:
        """log Pr[Z = z] for |z| < 2^bits."""
        distance = np.abs(noise).astype(np.float64)
        # A geometric variable below 2^bits: of two such, differences near the end come about in fewer ways, which
        # `ends` counts.
        left = 2.0**self.bits - distance
        ends: FloatArray = np.log(-np.expm1(-2 * self.rate * left))
        return self._log_scale() - self.rate * distance + ends

    def log_tail(self, noise: Levels) -> FloatArray:
        """log Pr[Z >= z] for 1 <= z <= 2^(bits-1); what the end at 2^bits takes off is below e^-60 of it."""
        return self._log_scale() - self.rate * noise.astype(np.float64) - math.log(-math.expm1(-self.rate))

    @property
    def variance(self) -> float:
        """2 r / (1 - r)^2."""
        # The same as 2 r / (1 - r)^2, but 1 - r loses its digits at a small rate.
        return 0.5 / math.sinh(self.rate / 2) ** 2

    def _geometric(self, count: int, randomness: Randomness) -> Levels:
        total = np.zeros(count, np.int64)
        for digit, (first, rest) in enumerate(_thresholds(self.rate, self.bits)):
            total += bernoulli(first, rest, count, randomness).astype(np.int64) << digit
        return total

    def _log_scale(self) -> float:
        """log of ((1 - r) / (1 - r^N))^2 / (1 - r^2) with N = 2^bits."""
        # expm1 keeps the digits of 1 - e^-x at a rate near 0, where the noise is largest.
        single, whole, square = (math.log(-math.expm1(-self.rate * k)) for k in (1.0, 2.0**self.bits, 2.0))
        return 2 * (single - whole) - square


@lru_cache(maxsize=16)
def _thresholds(rate: float, bits: int) -> tuple[tuple[int, int], ...]:
    """For each digit 2^256 times its probability, as the first 64 bits and the rest."""
    result = []
    with localcontext(PRECISION) as context:
        context.prec = 100
        for digit in range(bits):
            # Decimal takes the float as it is, so the law has exactly the rate that the guarantee was computed with.
            odds = (-Decimal(rate) * 2**digit).exp()
            # Digit i of a geometric variable is 1 with odds r^(2^i), whatever the other digits are.
            threshold = int(2**_DIGITS * odds / (1 + odds))
            result.append(divmod(threshold, 2**_REST))
    return tuple(result)


def bernoulli(first: int, rest: int, count: int, randomness: Randomness) -> npt.NDArray[np.bool_]:
    """Whether uniform 256-bit numbers lie below a threshold; late bits are drawn only where they decide.

    Args:
        first, rest: the threshold, as its first 64 bits and the other 192.

    Returns:
        bool [count].
    """
    uniform = randomness.uint64(count)
    result = uniform < np.uint64(first)
    # Once in 2^64 draws the first word is the threshold's own: only then do the other 192 bits matter.
    for tie in np.flatnonzero(uniform == np.uint64(first)):
        result[tie] = int.from_bytes(randomness.bytes(_REST // 8), "little") < rest
    return result
