"""Exact two-sided geometric noise, the integer form of Laplace noise: bounded or unbounded.

A geometric variable with ratio r (how many failures come before a success) has independent binary digits, digit i being
1 with probability r^(2^i) / (1 + r^(2^i)); the difference of two such variables is two-sided geometric. Each digit is
one comparison of uniform bits with a 256-bit threshold, of which the first 64 bits almost always decide.

Unbounded noise has digits up to a point where the overflow, again a geometric variable, is rarely above 0: it is drawn
trial by trial. Every number stays possible, and every probability is right to 1 part in 2^230. Counts, degrees
and noisy graphs are made with it.

Source: A. Ghosh, T. Roughgarden, M. Sundararajan, "Universally Utility-Maximizing Privacy Mechanisms", STOC 2009,
https://arxiv.org/abs/0811.2841.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from graphveil.mechanisms.base.lattice import Levels
from graphveil.mechanisms.base.values import BLOCK, FloatArray, blocks
from graphveil.mechanisms.samplers.bits import WORD
from graphveil.privacy import Randomness

# So many bits that all rounding of all thresholds together stays far below the slack that epsilon leaves.
_BITS: Final = 256
_REST: Final = _BITS - 64
#: The decimal context in which probabilities are computed.
DEEP: Final = Context(prec=120)
#: 2^256 times a probability, as its first 64 bits and the other 192: what `bernoulli` draws from.
Bernoulli = tuple[int, int]
# Once 2^digits failures in a row are rarer than this, drawing the rest trial by trial is cheaper.
_RARE: Final = Decimal(1) / 256
# More hides nothing: the noise is then 0 except with probability 3e-14.
_LARGEST_RATE: Final = 32.0
# Subtracted from epsilon: far more than 256-bit coins can add to it.
_SLACK: Final = 1e-12
# Noise further out has probability e^-1e6 even at the smallest epsilon there is, and is drawn as this.
_FURTHEST: Final = 1 << 60


@dataclass(frozen=True)
class TwoSidedGeometric:
    """Pr[Z = z] proportional to exp(-rate |z|), the difference of two geometric variables below 2^bits."""

    rate: float
    bits: int

    def draw(self, count: int, randomness: Randomness) -> Levels:
        """`count` independent draws, int64."""
        result = np.empty(count, np.int64)
        for start, stop in blocks(count, 1, BLOCK):
            result[start:stop] = self._geometric(stop - start, randomness)
            # The difference of two independent geometric variables is two-sided geometric.
            result[start:stop] -= self._geometric(stop - start, randomness)
        return result

    def log_pmf(self, noise: Levels) -> FloatArray:
        distance = np.abs(noise).astype(np.float64)
        # Two geometric variables below 2^bits have fewer pairs with a difference near 2^bits.
        remaining = 2.0**self.bits - distance
        end_factor: FloatArray = np.log(-np.expm1(-2 * self.rate * remaining))
        return self._log_scale() - self.rate * distance + end_factor

    def log_tail(self, noise: Levels) -> FloatArray:
        """log Pr[Z >= z] for 1 <= z <= 2^(bits-1); what the end at 2^bits takes off is below e^-60 of it."""
        return self._log_scale() - self.rate * noise.astype(np.float64) - math.log(-math.expm1(-self.rate))

    @property
    def variance(self) -> float:
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
    with localcontext(Context(prec=100)):
        for digit in range(bits):
            # Decimal takes the float as it is, so the law has exactly the rate that the guarantee was computed with.
            odds = (-Decimal(rate) * 2**digit).exp()
            # Digit i of a geometric variable is 1 with odds r^(2^i), whatever the other digits are.
            threshold = int(2**_BITS * odds / (1 + odds))
            result.append(divmod(threshold, 2**_REST))
    return tuple(result)


def bernoulli(first: int, rest: int, count: int, randomness: Randomness) -> npt.NDArray[np.bool_]:
    """Whether uniform 256-bit numbers lie below a threshold; the last 192 bits are drawn only where they decide.
    Returns bool [count].

    Args:
        first, rest: the threshold, as its first 64 bits and the other 192.
    """
    uniform = randomness.uint64(count)
    result = uniform < np.uint64(first)
    # Once in 2^64 draws the first word is the threshold's own: only then do the other 192 bits matter.
    for tie in np.flatnonzero(uniform == np.uint64(first)):
        result[tie] = int.from_bytes(randomness.bytes(_REST // 8), "little") < rest
    return result


@dataclass(frozen=True)
class Geometric:
    """Pr[G = g] = (1 - r) r^g for g >= 0; everything from `limit` on is drawn as `limit`.
    `digits` and `overflow` are Bernoulli laws: that a binary digit is 1, and that a draw exceeds all digits.
    """

    digits: tuple[Bernoulli, ...]
    overflow: Bernoulli
    limit: int

    def draw(self, count: int, randomness: Randomness) -> Levels:
        """`count` independent draws, int64."""
        total = np.zeros(count, np.int64)
        for digit, is_one in enumerate(self.digits):
            total += bernoulli(*is_one, count, randomness).astype(np.int64) << digit
        overflowing = np.flatnonzero(bernoulli(*self.overflow, count, randomness))
        # The excess over all digits is geometric of ratio r^(2^digits) and independent of them: the law is memoryless.
        while overflowing.size:
            total[overflowing] += 1 << len(self.digits)
            overflowing = overflowing[total[overflowing] < self.limit]
            overflowing = overflowing[bernoulli(*self.overflow, overflowing.size, randomness)]
        return np.minimum(total, self.limit)


@lru_cache(maxsize=64)
def geometric_by_success(low: int, limit: int) -> Geometric:
    """Failures before the first success of an event of probability low / 2^64; limit from 1 to 2^62.

    Args:
        low: 2^64 times the probability of a success.
        limit: what larger draws are drawn as.
    """
    with localcontext(DEEP):  # the quotient has at most 64 digits: it is exact
        return geometric_by_ratio(Decimal(WORD - low) / WORD, limit)


def geometric_by_ratio(ratio: Decimal, limit: int) -> Geometric:
    """The geometric variable of ratio r in (0, 1).

    Args:
        limit: what larger draws are drawn as, at least 1.
    """
    with localcontext(DEEP):
        digits: list[Bernoulli] = []
        power = ratio
        while power > _RARE and 2 << len(digits) <= limit:
            digits.append(bernoulli_of(power / (1 + power)))
            power *= power
        return Geometric(tuple(digits), bernoulli_of(power), limit)


def bernoulli_of(probability: Decimal) -> Bernoulli:
    """2^256 times a probability in [0, 1), as the first 64 bits and the rest, rounded down."""
    with localcontext(DEEP):
        first, rest = divmod(int(2**_BITS * probability), 2**_REST)
    return first, rest


@dataclass(frozen=True)
class TwoSided:
    """Pr[Z = z] = (1 - r) / (1 + r) r^|z| with r = e^-rate."""

    rate: float

    def draw(self, count: int, randomness: Randomness) -> Levels:
        """`count` independent draws, int64: differences of two geometric variables."""
        result = np.empty(count, np.int64)
        for start, stop in blocks(count, 1):
            result[start:stop] = self.excess(stop - start, randomness)
            result[start:stop] -= self.excess(stop - start, randomness)
        return result

    def excess(self, count: int, randomness: Randomness) -> Levels:
        """By how much draws exceed a level of at least 0, given that they reach it: Pr[g] = (1 - r) r^g.
        Returns int64 [count], at least 0.
        """
        return _geometric(self.rate).draw(count, randomness)

    @property
    def thresholds(self) -> tuple[tuple[int, ...], int]:
        """2^256 times the probabilities that each binary digit is 1, and that the number exceeds all digits."""
        law = _geometric(self.rate)
        digits, overflow = law.digits, law.overflow
        return tuple((first << 192) + rest for first, rest in digits), (overflow[0] << 192) + overflow[1]

    def log_pmf(self, noise: Levels) -> FloatArray:
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
    with localcontext(DEEP):
        return geometric_by_ratio((-Decimal(rate)).exp(), _FURTHEST)


@lru_cache(maxsize=1024)
def _chance(rate: float, level: int) -> Decimal:
    with localcontext(DEEP):
        ratio = (-Decimal(rate)).exp()
        return (1 - ratio) / (1 + ratio) * (-Decimal(rate) * abs(level)).exp()


@lru_cache(maxsize=1024)
def _tail(rate: float, level: int) -> Decimal:
    with localcontext(DEEP):
        beyond = (-Decimal(rate) * max(level, 1 - level)).exp() / (1 + (-Decimal(rate)).exp())
        return beyond if level > 0 else 1 - beyond
