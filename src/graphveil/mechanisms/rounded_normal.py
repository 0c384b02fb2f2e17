"""Rounded normal noise, drawn from an integer table.

Z is the normal variable rounded to the nearest integer. On integer inputs, adding Z is rounding the sum with
continuous noise, so the exact privacy curve of the Gaussian mechanism holds. The probability of every cell is
integrated numerically (a difference of distribution functions would lose its digits in the tails), turned
into an integer share of 2^512, and found by looking up a uniform 512-bit number, of which the first 64 bits
almost always decide.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Final

import numpy as np
import numpy.typing as npt

from graphveil.mechanisms.lattice import Levels
from graphveil.mechanisms.values import FloatArray
from graphveil.privacy import Randomness

# Every cell's probability is right up to this factor: arguments of exp up to 400, each with a few roundings.
RELATIVE_ERROR: Final = 1e-12

_DIGITS: Final = 512
_REST: Final = _DIGITS - 64
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)


@dataclass(frozen=True, eq=False)
class _Table:
    """First 64 bits of the cumulative shares, and logarithms of cell and tail probabilities by distance."""

    first: npt.NDArray[np.uint64]
    log_pmf: FloatArray
    log_tail: FloatArray


@dataclass(frozen=True)
class RoundedNormal:
    """round(N(0, sigma^2)) given that it lies in -limit..limit; sigma, at least 10, is in integer steps."""

    sigma: float
    limit: int

    def draw(self, count: int, randomness: Randomness) -> Levels:
        """`count` independent draws, int64."""
        first = _table(self.sigma, self.limit).first
        uniform = randomness.uint64(count)
        cell = np.searchsorted(first, uniform)
        ties = np.flatnonzero(first[np.minimum(cell, len(first) - 1)] == uniform)
        for tie in ties:
            rest = int.from_bytes(randomness.bytes(_REST // 8), "little")
            whole = (int(uniform[tie]) << _REST) + rest
            cell[tie] = bisect_right(_cumulative(self.sigma, self.limit), whole)
        return cell - self.limit

    def log_pmf(self, noise: Levels) -> FloatArray:
        """log Pr[Z = z] for |z| <= limit."""
        result: FloatArray = _table(self.sigma, self.limit).log_pmf[np.abs(noise)]
        return result

    def log_tail(self, noise: Levels) -> FloatArray:
        """log Pr[Z >= z] for 1 <= z <= limit."""
        result: FloatArray = _table(self.sigma, self.limit).log_tail[noise]
        return result

    @property
    def variance(self) -> float:
        """The variance in squared steps; rounding adds 1/12."""
        return self.sigma**2 + 1 / 12


def _half_densities(sigma: float, limit: int) -> FloatArray:
    """The mass of the cells 0..limit up to a common factor, each right to `RELATIVE_ERROR`."""
    points = (np.arange(limit + 1)[:, None] + _NODES / 2) / sigma
    return np.exp(-(points**2) / 2) @ _WEIGHTS


def _shares(sigma: float, limit: int) -> list[int]:
    """Integers proportional to the mass of the cells -limit..limit that sum to 2^512."""
    half = []
    for mass in _half_densities(sigma, limit).tolist():
        numerator, denominator = mass.as_integer_ratio()
        half.append((numerator << 2 * _DIGITS) // denominator)
    masses = half[:0:-1] + half
    total = sum(masses)
    shares = [(mass << _DIGITS) // total for mass in masses]
    # What rounding down left over is less than one unit a cell; the middle cell takes it.
    shares[limit] += (1 << _DIGITS) - sum(shares)
    return shares


def _cumulative(sigma: float, limit: int) -> list[int]:
    return list(accumulate(_shares(sigma, limit)))


@lru_cache(maxsize=4)
def _table(sigma: float, limit: int) -> _Table:
    shares = _shares(sigma, limit)
    # The last sum, 2^512, lies above every draw and is left out.
    first = np.array([total >> _REST for total in accumulate(shares[:-1])], dtype=np.uint64)
    whole = 1 << _DIGITS
    pmf = np.array([share / whole for share in shares[limit:]])
    tail = np.array([total / whole for total in accumulate(reversed(shares[limit:]))])[::-1]
    tables = first, np.log(pmf), np.log(tail)
    for table in tables:
        table.setflags(write=False)
    return _Table(*tables)
