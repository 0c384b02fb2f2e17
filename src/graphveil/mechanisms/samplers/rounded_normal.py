"""Rounded normal noise in exact integers: from a table of 64 KB, or on a much finer lattice.

Z is the normal variable rounded to the nearest integer. On integer inputs, adding Z is rounding the sum with
continuous noise, so the exact privacy curve of the Gaussian mechanism holds. The probability of every cell is
integrated numerically (a difference of distribution functions would lose its digits in the tails), turned into an
integer share of 2^512, and found by a uniform 512-bit number, of which 32 bits mostly are enough.

    key          32 bytes of the source, for the streams of this call
    draw i       first 32 bits: number i under nonce 0
    undecided    next 32 bits. Tile t holds draws 1024 t .. 1024 t + 1023; their first 32 bits leave some 16 of them
                 undecided, more than 64 hardly ever. The o-th has number 64 t + o mod 64 under nonce 1 + o div 64
    still open   the other 448 bits: block i under nonce 2^32, once in 2^42 draws at most

So every draw has its own words in the source, whatever other tiles hold: all devices draw the same.

`Strips`: cells form strips of 2^k neighbours. Of 2^15 entries a strip holds as many as the probability of its least
likely cell covers, so that a uniform 512-bit number is a draw at once where its first 15 bits choose one of those: the
next k bits are the cell in the strip. The remainders of the cells' probabilities follow the last of these entries, end
to end in their order; a number there is compared with their ends, by its first 64 bits and, where they tie, by all 512.
Nothing is rounded in either case.

`FineNormal`, for noise too wide for a table of its own:

    Z = (cell 2^20 + place) unit,     cell from a `RoundedNormal` of 2^10 to 2^11 cells a deviation, place by rejection

A deviation is 2^30 to 2^31 units. A unit is a power of 2 and at most one step, so whole steps lie on the lattice of the
noise, and adding Z to one is rounding its sum with continuous noise.

Source of strips: J. H. Ahrens, "A one-table method for sampling from continuous and discrete distributions", Computing
54 (1995), in whole numbers.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, islice
from typing import Final

import numpy as np
import numpy.typing as npt

from graphveil.errors import InputError
from graphveil.mechanisms.base.lattice import Levels
from graphveil.mechanisms.base.values import FloatArray
from graphveil.mechanisms.samplers.bits import ENTRY_BITS, FURTHER_WORDS, REST_BITS, TILE
from graphveil.privacy import Randomness
from graphveil.privacy.source.randomness import draw_words, open_stream
from graphveil.runtime.late import special

#: All shares together are 2^512.
DIGITS: Final = 512

_REST: Final = DIGITS - 64


@dataclass(frozen=True, eq=False)
class Strips:
    """The table of a law on -limit..limit.

    Attributes:
        strips: int16 [2^15], for each entry the number s of its strip, which holds the cells s 2^width ..
            (s + 1) 2^width - 1.
        decided: how many entries, from the first on, belong to a strip; the rest is unused.
        width: k above.
        ends: uint64 [2 limit], the first 64 bits of where the remainder of a cell ends, for all cells but the last.
        starts: int32, how many ends lie below each number of 15 + width bits that begins with another entry, and how
            many there are: about one end lies between two of these.
    """

    strips: npt.NDArray[np.int16]
    decided: int
    width: int
    ends: npt.NDArray[np.uint64]
    starts: npt.NDArray[np.int32]

    def read(self, words: npt.NDArray[np.uint32]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.intp]]:
        """The draws [n] of numbers that begin with these 32 bits, and the indices of those that are not decided."""
        entries = (words >> np.uint32(REST_BITS)).astype(np.intp)
        cells = self.strips[entries].astype(np.int32) << np.int32(self.width)
        cells |= ((words >> np.uint32(REST_BITS - self.width)) & np.uint32((1 << self.width) - 1)).view(np.int32)
        return cells, np.flatnonzero(entries >= self.decided)

    def search(self, numbers: npt.NDArray[np.uint64]) -> tuple[Levels, npt.NDArray[np.intp]]:
        """The same for numbers that no strip decides, by their first 64 bits."""
        below = np.searchsorted(self.ends, numbers)
        return below - self.ends.size // 2, np.flatnonzero(self.ends[np.minimum(below, self.ends.size - 1)] == numbers)


def strips_of(half: Sequence[int], width: int) -> Strips:
    """The table of a symmetric law that decreases on both sides.

    Args:
        half: the shares of the cells 0..limit; those of -limit..limit add up to 2^512.
        width: strips are of 2^width cells.
    """
    paid = _entries(half, width)
    numbers = np.repeat(np.array(list(paid), np.int16), list(paid.values()))
    strips = np.zeros(1 << ENTRY_BITS, np.int16)
    strips[: numbers.size] = numbers
    first = array("Q", (end >> _REST for end in islice(owed_ends(half, width), 2 * len(half) - 2)))
    ends = np.frombuffer(first, np.uint64)
    bits = ENTRY_BITS + width
    prefixes = np.arange(numbers.size << width, 1 << bits, dtype=np.uint64) << np.uint64(64 - bits)
    starts = np.append(np.searchsorted(ends, prefixes), ends.size).astype(np.int32)
    for table in (strips, ends, starts):
        table.setflags(write=False)
    return Strips(strips, numbers.size, width, ends, starts)


def draw_of_full_number(number: int, half: Sequence[int], width: int) -> int:
    """The draw of a number of 512 bits that no strip decides.

    Args:
        number: its first 64 bits may equal those of an end.
        half, width: as of `strips_of`.
    """
    return bisect_right(list(owed_ends(half, width)), number) - len(half) + 1


def owed_ends(half: Sequence[int], width: int) -> Iterator[int]:
    """Where the remainder of each of the cells -limit..limit ends, in 512 bits: the last at 2^512."""
    paid, limit = _entries(half, width), len(half) - 1
    # Each cell of a strip has the same part of its entries.
    shift = DIGITS - ENTRY_BITS - width
    owed = (half[abs(cell)] - (paid.get(cell >> width, 0) << shift) for cell in range(-limit, limit + 1))
    start = sum(paid.values()) << DIGITS - ENTRY_BITS
    return islice(accumulate(owed, initial=start), 1, None)


def _entries(half: Sequence[int], width: int) -> dict[int, int]:
    """How many entries each strip holds, by its number, ascending; strips without entries are left out."""
    limit = len(half) - 1
    inside = range(-(limit >> width), (limit + 1) >> width)
    # The outermost cell is the least likely: a strip holds only entries that each of its cells can cover.
    outermost = {strip: max(-(strip << width), ((strip + 1) << width) - 1) for strip in inside}
    paid = {strip: half[cell] >> DIGITS - ENTRY_BITS - width for strip, cell in outermost.items()}
    return {strip: entries for strip, entries in paid.items() if entries}


# Every cell's probability is right up to this factor, to 25 deviations: arguments of exp up to 400, each with a few
# roundings, and shares that 512 bits still tell from each other.
RELATIVE_ERROR: Final = 1e-12
#: Noise of a wider reach is refused: its table would take more than 32 MB.
LARGEST_LIMIT: Final = (1 << 21) - 1

#: Length of the key of the streams of a call.
KEY_BYTES: Final = 32
_FULL_NONCE: Final = 1 << 32
# How far noise reaches, in deviations: at least, beyond the largest shift by one unit, and at most.
_REACH, _BEYOND, _FARTHEST = 12.0, 9.5, 25.0
# Draws of a block, of whole tiles: its arrays and the table stay in a core's cache.
_BLOCK: Final = 128 * TILE
# From so many draws on the compiled loop is used: loading the compiler takes as long as a million draws without it.
_LOOP_PAYS: Final = 64 * TILE
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)


def reach_of(shift: float) -> float:
    """Where noise ends, in deviations, if one unit moves a number by at most `shift` deviations: so far out that
    what is cut off hardly matters at any epsilon.
    """
    return min(_FARTHEST, max(_REACH, _BEYOND + shift))


@dataclass(frozen=True)
class RoundedNormal:
    """round(N(0, sigma^2)) given that it lies in -limit..limit; sigma, at least 10, is in integer steps."""

    sigma: float
    limit: int

    @property
    def table(self) -> Strips:
        return _table(self.sigma, self.limit)

    def draw(self, count: int, randomness: Randomness) -> Levels:
        """`count` independent draws, int64."""
        draws = np.zeros(count, np.int64)
        self.add_to(draws, randomness)
        return draws

    def add_to(self, totals: np.ndarray, randomness: Randomness) -> None:
        """Add one independent draw to each of `totals` [n], contiguous, in place.
        On whole numbers of absolute value below 2^24 a float32 sum is the exact sum, rounded: post-processing.

        Args:
            totals: float32, float64 or int64, what the noise is added to.
        """
        key = randomness.bytes(KEY_BYTES)
        first, further = (open_stream(key, nonce) for nonce in (0, 1))
        add = self._add_compiled if totals.size >= _LOOP_PAYS else self._add
        for start in range(0, totals.size, _BLOCK):
            part = totals[start : start + _BLOCK]
            words = draw_words(first, -(-part.size // 2)).view(np.uint32)[: part.size]
            further_words = draw_words(further, -(-part.size // TILE) * FURTHER_WORDS // 2).view(np.uint32)
            places, ordinals = add(part, words, further_words)
            for place, ordinal in zip(places.tolist(), ordinals.tolist(), strict=True):
                part[place] += self._draw_undecided(int(words[place]), start + place, ordinal, key)

    def _add(
        self, totals: np.ndarray, words: npt.NDArray[np.uint32], further: npt.NDArray[np.uint32]
    ) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Add the draws that 64 bits decide; return the indices of the rest, and the rank of each in its tile."""
        cells, places = self.table.read(words)
        tiles = places // TILE
        ordinals = np.arange(places.size) - np.searchsorted(tiles, tiles)
        more = further[tiles * FURTHER_WORDS + ordinals % FURTHER_WORDS].astype(np.uint64)
        levels, ties = self.table.search((words[places].astype(np.uint64) << np.uint64(32)) | more)
        left = np.union1d(ties, np.flatnonzero(ordinals >= FURTHER_WORDS))
        levels[left] = 0
        cells[places] = levels
        totals += cells
        return places[left], ordinals[left]

    def _add_compiled(
        self, totals: np.ndarray, words: npt.NDArray[np.uint32], further: npt.NDArray[np.uint32]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """`_add` by a compiled loop, with the same bits from the same words."""
        from graphveil.mechanisms.samplers.strips_loop import add_draws

        table = self.table
        tables = table.strips, table.decided, table.width, table.ends, table.starts
        places, ordinals = add_draws(words, further, *tables, totals)
        return places, ordinals

    def _draw_undecided(self, word: int, draw: int, ordinal: int, key: bytes) -> int:
        """The draw for a first word that 64 bits, or the further words of its tile, do not decide."""
        layer, place = divmod(ordinal, FURTHER_WORDS)
        place += draw // TILE * FURTHER_WORDS
        block = open_stream(key, 1 + layer, block=place // 16).update(bytes(64))
        more = int.from_bytes(block[place % 16 * 4 :][:4], "little")
        rest = int.from_bytes(open_stream(key, _FULL_NONCE, block=draw).update(bytes(_REST // 8)), "little")
        # The shares are computed again instead of stored: this is rare.
        return draw_of_full_number((word << 32 | more) << _REST | rest, *_shares_and_width(self.sigma, self.limit))

    def log_pmf(self, noise: Levels) -> FloatArray:
        """log Pr[Z = z] for |z| <= limit."""
        result: FloatArray = _logarithms(self.sigma, self.limit)[0][np.abs(noise)]
        return result

    def log_tail(self, noise: Levels) -> FloatArray:
        """log Pr[Z >= z] for 1 <= z <= limit."""
        result: FloatArray = _logarithms(self.sigma, self.limit)[1][noise]
        return result

    def price(self, epsilon: float, delta: float, coordinates: int, *, shift: float = math.inf) -> tuple[float, float]:
        """What vectors of this noise cost where vectors of normal noise cost (epsilon, delta).

        With the cells right up to a factor e^t and a mass of c cut off each of d coordinates, the table is
        (e + 2 d t, e^(d t) (delta + d c (1 + e^e)))-private. Where e is large another bound is smaller: within the
        noise's reach of all places that one unit can move a number to, both worlds' laws are (1 - c)^-d times those
        without an end; a number lies outside of it with a chance of at most b = 2 Pr[N(0, 1) > reach - shift]. So
        delta is at most e^(d t) (1 - c)^-d (delta + d b), and (1 - c)^-d at most e^(2 d c).

        Args:
            epsilon, delta: the price with unrounded noise of unlimited reach.
            coordinates: d, the number of coordinates that one unit can change, over all releases.
            shift: the most by which one unit moves a number, in deviations; inf: unknown.
        """
        rounding, reach = coordinates * RELATIVE_ERROR, self.limit / self.sigma
        cut, beyond = (coordinates * 2 * float(special.ndtr(-far)) for far in (reach, reach - shift))
        with_ends = delta + cut * (1 + math.exp(min(epsilon, 700.0)))
        within_reach = math.exp(2 * min(cut, 1.0)) * (delta + beyond) if cut <= 0.5 else math.inf
        return epsilon + 2 * rounding, math.exp(min(rounding, 700.0)) * min(with_ends, within_reach)

    @property
    def variance(self) -> float:
        """The variance in squared steps; rounding adds 1/12."""
        return self.sigma**2 + 1 / 12


def _half_shares(sigma: float, limit: int) -> Iterator[int]:
    """The shares of the cells limit..1, from the tail inwards: whole numbers of 2^-512, rounded down."""
    points = (np.arange(limit + 1)[:, None] + _NODES / 2) / sigma
    # Eight Gauss nodes over a cell of at most a tenth of sigma: the rule's error is below the rounding of exp.
    masses = np.exp(-(points**2) / 2) @ _WEIGHTS
    # From here on whole numbers: shares of 2^512 add up without rounding, tails included.
    ratios = [mass.as_integer_ratio() for mass in masses.tolist()]
    whole = [(numerator << 2 * DIGITS) // denominator for numerator, denominator in ratios]
    total = 2 * sum(whole) - whole[0]
    return ((mass << DIGITS) // total for mass in whole[:0:-1])


def _shares_and_width(sigma: float, limit: int) -> tuple[list[int], int]:
    """The shares of the cells 0..limit, and the width of their strips."""
    outer = list(_half_shares(sigma, limit))
    # The middle cell gets what rounding leaves over. Strips are a 64th to a 32nd of sigma wide: in narrower strips the
    # entries are a coarser division, and in wider ones the outermost cell covers less.
    width = max(0, min(int(sigma), limit).bit_length() - 6)
    return [(1 << DIGITS) - 2 * sum(outer), *reversed(outer)], width


@lru_cache(maxsize=4)
def _table(sigma: float, limit: int) -> Strips:
    if limit > LARGEST_LIMIT:
        raise InputError(f"noise of {sigma:g} steps", allowed=f"a reach of at most {LARGEST_LIMIT} steps")
    return strips_of(*_shares_and_width(sigma, limit))


@lru_cache(maxsize=4)
def _logarithms(sigma: float, limit: int) -> tuple[FloatArray, FloatArray]:
    half, whole = list(_half_shares(sigma, limit)), 1 << DIGITS
    # From the outside in, smallest first, as integers: a difference from 1 would leave nothing of the tails.
    tail = [total / whole for total in accumulate(half)]
    middle = whole - 2 * sum(half)
    pmf = np.log(np.array([share / whole for share in (*half, middle)])[::-1])
    tails = np.log(np.array([*tail, tail[-1] + middle / whole])[::-1])
    for table in (pmf, tails):
        table.setflags(write=False)
    return pmf, tails


#: Logarithms: at least 2^10 cells in a deviation, and 2^20 units in a cell.
_CELL_BITS, _UNIT_BITS = 10, 20
_UNITS: Final = 1 << _UNIT_BITS
#: Wider noise would have a unit of more than one step.
WIDEST: Final = 2.0 ** (_CELL_BITS + _UNIT_BITS + 1)


@dataclass(frozen=True)
class FineNormal:
    """N(0, sigma^2) on a lattice of 2^-m steps; sigma, in steps, lies above 2^10 and below `WIDEST`. Raises InputError
    where sigma is outside of that.
    """

    sigma: float

    def __post_init__(self) -> None:
        if not 2.0**_CELL_BITS <= self.sigma < WIDEST:
            raise InputError(f"noise of {self.sigma:g} steps", allowed=f"{2**_CELL_BITS} to below {WIDEST:g}")

    @property
    def unit(self) -> float:
        """The lattice, in steps."""
        return 2.0 ** (math.floor(math.log2(self.sigma)) - _CELL_BITS - _UNIT_BITS)

    @property
    def table(self) -> RoundedNormal:
        cells = self.sigma / (self.unit * _UNITS)
        # The largest reach of any table: this table is small whatever sigma is.
        return RoundedNormal(cells, math.ceil(reach_of(math.inf) * cells))

    def units(self, count: int, randomness: Randomness) -> npt.NDArray[np.int64]:
        """`count` independent draws in whole units.
        The place in a cell comes from rejection by the density at its middle, right up to a factor of 1e-13.
        """
        table = self.table
        cells = table.draw(count, randomness)
        nearest = np.maximum(np.abs(cells) - 0.5, 0.0)
        places, undecided = np.empty(count, np.int64), np.arange(count)
        while undecided.size:
            words = randomness.uint64(undecided.size)
            places[undecided] = (words >> np.uint64(64 - _UNIT_BITS)).astype(np.int64) - _UNITS // 2
            distance = cells[undecided] + (places[undecided] + 0.5) / _UNITS
            acceptance = np.exp((nearest[undecided] ** 2 - distance**2) / (2.0 * table.sigma**2))
            undecided = undecided[(words & np.uint64((1 << 44) - 1)).astype(np.float64) >= acceptance * 2.0**44]
        return cells * _UNITS + places

    def draw(self, count: int, randomness: Randomness) -> npt.NDArray[np.float64]:
        return np.multiply(self.units(count, randomness), self.unit, dtype=np.float64)

    def add_to(self, totals: np.ndarray, randomness: Randomness) -> None:
        """Add one independent draw to each of `totals` [n], whole numbers, in place.
        The sum is exact in float64; a float32 total is rounded afterwards, which is post-processing.
        """
        totals[:] = totals.astype(np.float64) + self.draw(totals.size, randomness)

    def price(self, epsilon: float, delta: float, coordinates: int, *, shift: float = math.inf) -> tuple[float, float]:
        """What vectors of this noise cost: `RoundedNormal.price` of the table."""
        return self.table.price(epsilon, delta, coordinates, shift=shift)
