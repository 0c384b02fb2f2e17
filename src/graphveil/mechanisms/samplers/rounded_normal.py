"""Rounded normal noise, drawn from an integer table.

Z is the normal variable rounded to the nearest integer. On integer inputs, adding Z is rounding the sum with
continuous noise, so the exact privacy curve of the Gaussian mechanism holds. The probability of every cell is
integrated numerically (a difference of distribution functions would lose its digits in the tails), turned
into an integer share of 2^512, and found by looking up a uniform 512-bit number. Its first 32 bits mostly decide:
their leading bits find an entry of a guide, which says what to compare the others with (Chen and Asau, "On generating
random variates from an empirical distribution", AIIE Transactions 6, 1974). Where they do not, the next 32 bits are
drawn, and then all the rest: nothing is rounded, whatever decides.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Final

import numpy as np
import numpy.typing as npt

from graphveil.errors import InputError
from graphveil.late import special
from graphveil.mechanisms.base.lattice import Levels
from graphveil.mechanisms.base.values import FloatArray
from graphveil.privacy import Randomness

# Every cell's probability is right up to this factor: arguments of exp up to 400, each with a few roundings.
RELATIVE_ERROR: Final = 1e-12

_DIGITS: Final = 512
_REST: Final = _DIGITS - 64
# Draws of a block: its arrays and the guide stay in a core's cache.
_BLOCK: Final = 1 << 16
# An entry of the guide that decides nothing: lower than any that does.
_OPEN: Final = -(1 << 31)
# No guide has more than 2^22 entries, which bounds the reach of the noise.
LARGEST_LIMIT: Final = (1 << 21) - 1
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)


@dataclass(frozen=True, eq=False)
class _Table:
    """First 64 bits of the cumulative shares, and the guide to them."""

    first: npt.NDArray[np.uint64]
    guide: _Guide


@dataclass(frozen=True, eq=False)
class _Guide:
    """What the leading bits g of a 32-bit number u say about its cell; the other `low` bits are l.

    An entry holds z 2^low for a draw of z whatever l is, and (z + 1) 2^low - t for z if l < t and z + 1 if l > t.
    Adding l and dropping the low bits gives the draw in both cases, and l = t leaves low bits of 0: nothing decided.
    """

    entries: npt.NDArray[np.int32]
    low: int
    limit: int

    def read(self, words: npt.NDArray[np.uint32]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.intp]]:
        """The draws of uniform 32-bit numbers, and which of them are not decided."""
        cells = self.entries.take((words >> np.uint32(self.low)).astype(np.intp), mode="clip")
        mask = (1 << self.low) - 1
        cells += (words & np.uint32(mask)).view(np.int32)
        undecided = (cells & np.int32(mask)) == 0
        undecided |= cells < np.int32(-self.limit << self.low)
        cells >>= np.int32(self.low)
        return cells, np.flatnonzero(undecided)


@dataclass(frozen=True)
class RoundedNormal:
    """round(N(0, sigma^2)) given that it lies in -limit..limit; sigma, at least 10, is in integer steps."""

    sigma: float
    limit: int

    def draw(self, count: int, randomness: Randomness) -> Levels:
        """`count` independent draws, int64.

        Args:
            count: how many.
            randomness: the source of the noise.
        """
        draws = np.empty(count, np.int64)
        for start in range(0, count, _BLOCK):
            part = draws[start : start + _BLOCK]
            part[:] = self._block(part.size, randomness)
        return draws

    def add_to(self, totals: npt.NDArray[np.float32], randomness: Randomness) -> None:
        """Add one independent draw to each of `totals` [n], float32 and contiguous, in place.

        On whole numbers below 2^24 in size the sum is rounded as one whole number would be: post-processing.

        Args:
            totals: what the noise is added to.
            randomness: the source of the noise.
        """
        # The compiler takes as long to load as a million draws take without it.
        add = self._add_compiled if totals.size >= _BLOCK else self._add
        for start in range(0, totals.size, _BLOCK):
            add(totals[start : start + _BLOCK], randomness)

    def _add(self, totals: npt.NDArray[np.float32], randomness: Randomness) -> None:
        totals += self._block(totals.size, randomness)

    def _add_compiled(self, totals: npt.NDArray[np.float32], randomness: Randomness) -> None:
        """Add what `_add` adds, the same bits from the same words."""
        from graphveil.mechanisms.samplers.rounded_loop import add_decided

        guide, words = _table(self.sigma, self.limit).guide, _half_words(totals.size, randomness)
        places = np.empty(totals.size, np.int32)
        undecided = places[: add_decided(words, guide.entries, guide.low, guide.limit, totals, places)]
        totals[undecided] += self._decide(words[undecided], randomness)

    def _block(self, count: int, randomness: Randomness) -> npt.NDArray[np.int32]:
        words = _half_words(count, randomness)
        cells, undecided = _table(self.sigma, self.limit).guide.read(words)
        cells[undecided] = self._decide(words[undecided], randomness)
        return cells

    def _decide(self, words: npt.NDArray[np.uint32], randomness: Randomness) -> Levels:
        """The draws of 32-bit numbers that decide nothing by themselves."""
        more = randomness.uint64(words.size) >> np.uint64(32)
        return self._search((words.astype(np.uint64) << np.uint64(32)) | more, randomness)

    def _search(self, uniform: npt.NDArray[np.uint64], randomness: Randomness) -> Levels:
        """The draws of uniform 64-bit numbers."""
        first = _table(self.sigma, self.limit).first
        # 64 bits decide unless they equal a boundary's own first 64; then all 512 are compared.
        cell = np.searchsorted(first, uniform)
        ties = np.flatnonzero(first[np.minimum(cell, len(first) - 1)] == uniform)
        for tie in ties:
            rest = int.from_bytes(randomness.bytes(_REST // 8), "little")
            whole = (int(uniform[tie]) << _REST) + rest
            cell[tie] = bisect_right(_cumulative(self.sigma, self.limit), whole)
        return cell - self.limit

    def log_pmf(self, noise: Levels) -> FloatArray:
        """log Pr[Z = z] for |z| <= limit."""
        result: FloatArray = _logarithms(self.sigma, self.limit)[0][np.abs(noise)]
        return result

    def log_tail(self, noise: Levels) -> FloatArray:
        """log Pr[Z >= z] for 1 <= z <= limit."""
        result: FloatArray = _logarithms(self.sigma, self.limit)[1][noise]
        return result

    def price(self, epsilon: float, delta: float, coordinates: int) -> tuple[float, float]:
        """What vectors of such noise cost where vectors of normal noise cost (epsilon, delta).

        With the cells right up to a factor e^t and a mass of c cut off each of d coordinates, the table is
        (e + 2 d t, e^(d t) (delta + d c (1 + e^e)))-private.

        Args:
            coordinates: d, how many one unit can change, all releases together.
        """
        bend = coordinates * RELATIVE_ERROR
        cut = coordinates * 2 * float(special.ndtr(-self.limit / self.sigma))
        return epsilon + 2 * bend, math.exp(bend) * (delta + cut * (1 + math.exp(min(epsilon, 700.0))))

    @property
    def variance(self) -> float:
        """The variance in squared steps; rounding adds 1/12."""
        return self.sigma**2 + 1 / 12


def _half_words(count: int, randomness: Randomness) -> npt.NDArray[np.uint32]:
    # Half a word decides nearly every draw, and stays the first part where more bits are asked for: the law is that of
    # 512.
    return randomness.uint64(-(-count // 2)).view(np.uint32)[:count]


def _half_densities(sigma: float, limit: int) -> FloatArray:
    """The mass of the cells 0..limit up to a common factor, each right to `RELATIVE_ERROR`."""
    points = (np.arange(limit + 1)[:, None] + _NODES / 2) / sigma
    # Eight Gauss nodes over a cell of at most a tenth of sigma: the rule's error is below the rounding of exp.
    return np.exp(-(points**2) / 2) @ _WEIGHTS


def _half_shares(sigma: float, limit: int) -> Iterator[int]:
    """The shares of the cells limit..1, from the tail inwards: whole numbers of 2^-512, rounded down."""
    masses = _half_densities(sigma, limit)
    # From here on whole numbers: shares of 2^512 add up without rounding, tails included.
    ratios = [mass.as_integer_ratio() for mass in masses.tolist()]
    whole = [(numerator << 2 * _DIGITS) // denominator for numerator, denominator in ratios]
    total = 2 * sum(whole) - whole[0]
    return ((mass << _DIGITS) // total for mass in whole[:0:-1])


def _cumulative(sigma: float, limit: int) -> list[int]:
    """The shares of the cells -limit..z for each z, by symmetry; what rounding left over is the middle cell's."""
    half = list(accumulate(_half_shares(sigma, limit)))
    return [*half, *((1 << _DIGITS) - below for below in reversed(half)), 1 << _DIGITS]


@lru_cache(maxsize=4)
def _table(sigma: float, limit: int) -> _Table:
    below, above = array("Q"), array("Q")
    for total in accumulate(_half_shares(sigma, limit)):
        # Rounded up, because 2^64 less it is then the mirrored boundary rounded down, as those below the middle are.
        below.append(total >> _REST)
        above.append(-(-total >> _REST))
    # The last sum, 2^512, lies above every draw and is left out; 0 - x is 2^64 - x here.
    first = np.concatenate([np.array(below, np.uint64), np.uint64(0) - np.array(above, np.uint64)[::-1]])
    guide = _guide(first, sigma, limit)
    first.setflags(write=False)
    guide.entries.setflags(write=False)
    return _Table(first, guide)


@lru_cache(maxsize=4)
def _logarithms(sigma: float, limit: int) -> tuple[FloatArray, FloatArray]:
    """Logarithms of cell and tail probabilities by distance."""
    half, whole = list(_half_shares(sigma, limit)), 1 << _DIGITS
    # Tails are added up from the outside in, smallest first, as integers: a difference from 1 would leave nothing of
    # them.
    tail = [total / whole for total in accumulate(half)]
    middle = whole - 2 * sum(half)
    pmf = np.log(np.array([share / whole for share in (*half, middle)])[::-1])
    tails = np.log(np.array([*tail, tail[-1] + middle / whole])[::-1])
    for table in (pmf, tails):
        table.setflags(write=False)
    return pmf, tails


def _guide(first: npt.NDArray[np.uint64], sigma: float, limit: int) -> _Guide:
    """So many entries that few hold two boundaries: 32 for each cell of a uniform law over sigma steps."""
    bits = max(16, min(22, int(sigma).bit_length() + 5), limit.bit_length() + 1)
    if limit > LARGEST_LIMIT:
        raise InputError(f"noise of {sigma:g} steps", allowed=f"a reach of at most {LARGEST_LIMIT} steps")
    low = 32 - bits
    boundaries = (first >> np.uint64(32)).astype(np.int64)
    held = boundaries >> low
    count = np.bincount(held, minlength=1 << bits)
    below = np.cumsum(count) - count - limit
    entries = below << low
    single = count[held] == 1
    entries[held[single]] += (1 << low) - (boundaries[single] & ((1 << low) - 1))
    entries[count > 1] = _OPEN
    return _Guide(entries.astype(np.int32), low, limit)
