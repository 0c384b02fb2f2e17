"""Two-sided geometric noise without an end, and its tails: what counts, degrees and noisy graphs are made with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import Final

import numpy as np

from graphveil.mechanisms.base.lattice import Levels
from graphveil.mechanisms.base.values import FloatArray, blocks
from graphveil.mechanisms.samplers.bits import PRECISION
from graphveil.mechanisms.samplers.unbounded_geometric import Geometric, geometric_by_ratio
from graphveil.privacy import Randomness

# More hides nothing: the noise is then 0 except with probability 3e-14.
_LARGEST_RATE: Final = 32.0
# Taken off epsilon, far more than 256-bit coins can add to it.
_SLACK: Final = 1e-12
# Noise further out has probability e^-1e6 even at the smallest epsilon there is, and is drawn as this.
_FURTHEST: Final = 1 << 60
DIGITS: Final = 120


@dataclass(frozen=True)
class TwoSided:
    """Pr[Z = z] = (1 - r) / (1 + r) r^|z| with r = e^-rate."""

    rate: float

    def draw(self, count: int, randomness: Randomness) -> Levels:
        """`count` independent draws, int64: differences of two geometric variables.

        Args:
            count: how many.
            randomness: the source of the noise.
        """
        result = np.empty(count, np.int64)
        for start, stop in blocks(count, 1):
            result[start:stop] = self.excess(stop - start, randomness)
            result[start:stop] -= self.excess(stop - start, randomness)
        return result

    def excess(self, count: int, randomness: Randomness) -> Levels:
        """By how much draws exceed a level of at least 0, given that they reach it: Pr[g] = (1 - r) r^g.

        Args:
            count: how many draws.
            randomness: the source of the noise.

        Returns:
            int64 [count], at least 0.
        """
        return _geometric(self.rate).draw(count, randomness)

    @property
    def thresholds(self) -> tuple[tuple[int, ...], int]:
        """2^256 times the probabilities that each binary digit of a number is 1, and that more comes after them."""
        law = _geometric(self.rate)
        digits, overflow = law.digits, law.overflow
        return tuple((first << 192) + rest for first, rest in digits), (overflow[0] << 192) + overflow[1]

    def log_pmf(self, noise: Levels) -> FloatArray:
        """log Pr[Z = z]."""
        result: FloatArray = math.log(math.tanh(self.rate / 2)) - self.rate * np.abs(noise).astype(np.float64)
        return result

    def log_tail(self, noise: Levels) -> FloatArray:
        """log Pr[Z >= z], and so log Pr[Z <= -z]."""
        beyond = -self.rate * np.abs(noise).astype(np.float64) - math.log1p(math.exp(-self.rate))
        with np.errstate(divide="ignore"):
            # Pr[Z >= z] = 1 - Pr[Z >= 1 - z] for z <= 0.
            inside = np.log(-np.expm1(beyond - self.rate))
        return np.where(noise > 0, beyond, inside)

    @property
    def variance(self) -> float:
        """2 r / (1 - r)^2."""
        return 0.5 / math.sinh(self.rate / 2) ** 2

    def chance(self, level: int) -> Decimal:
        """Pr[Z = level] to 100 digits."""
        return _chance(self.rate, level)

    def tail(self, level: int) -> Decimal:
        """Pr[Z >= level] to 100 digits."""
        return _tail(self.rate, level)


def two_sided(epsilon: float) -> TwoSided:
    """The noise that hides a change of a count by 1 at epsilon."""
    # One count more or less shifts the law by 1, which changes each probability by at most e^rate.
    return TwoSided(min(epsilon, _LARGEST_RATE) * (1 - _SLACK))


@lru_cache(maxsize=16)
def _geometric(rate: float) -> Geometric:
    with localcontext(PRECISION) as context:
        context.prec = DIGITS
        return geometric_by_ratio((-Decimal(rate)).exp(), _FURTHEST)


@lru_cache(maxsize=1024)
def _chance(rate: float, level: int) -> Decimal:
    with localcontext(PRECISION) as context:
        context.prec = DIGITS
        ratio = (-Decimal(rate)).exp()
        return (1 - ratio) / (1 + ratio) * (-Decimal(rate) * abs(level)).exp()


@lru_cache(maxsize=1024)
def _tail(rate: float, level: int) -> Decimal:
    with localcontext(PRECISION) as context:
        context.prec = DIGITS
        beyond = (-Decimal(rate) * max(level, 1 - level)).exp() / (1 + (-Decimal(rate)).exp())
        return beyond if level > 0 else 1 - beyond
