"""A symmetric law on whole numbers in whole shares of 2^512, drawn from a table of 64 KB whatever its scale.

Cells stand in strips of 2^k neighbours. Of 2^15 entries a strip holds as many as its least likely cell can pay for, so
that a uniform 512-bit number is a draw at once where its first 15 bits choose one of those: the next k bits are the
place in the strip. What the cells are owed beyond that lies above the last of these entries, end to end in their order;
a number there is compared with the ends, by its first 64 bits and, where they tie, by all 512. Nothing is rounded,
whatever decides.

Source: J. H. Ahrens, "A one-table method for sampling from continuous and discrete distributions", Computing 54 (1995),
in whole numbers.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import Final

import numpy as np
import numpy.typing as npt

from graphveil.mechanisms.base.lattice import Levels
from graphveil.privacy import Randomness

#: All shares together are 2^512.
DIGITS: Final = 512
#: Of 16 bits each. Twice as many leave fewer draws undecided, but then look-ups leave the cache.
ENTRY_BITS: Final = 15
#: Bits of a word that come after its entry.
AFTER: Final = 32 - ENTRY_BITS

_REST: Final = DIGITS - 64


@dataclass(frozen=True, eq=False)
class Strips:
    """The table of a law on -limit..limit.

    Attributes:
        strips: int16 [2^15], for each entry the number s of its strip, which holds the cells s 2^width ..
            (s + 1) 2^width - 1.
        decided: how many entries, from the first on, are of a strip; the others mean nothing.
        width: k above.
        ends: uint64 [2 limit], the first 64 bits of where what a cell is owed ends, for all cells but the last.
        starts: int32, how many ends lie below each number of 15 + width bits that begins with another entry, and how
            many there are: about one end lies between two of these.
    """

    strips: npt.NDArray[np.int16]
    decided: int
    width: int
    ends: npt.NDArray[np.uint64]
    starts: npt.NDArray[np.int32]

    def read(self, words: npt.NDArray[np.uint32]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.intp]]:
        """The draws [n] of numbers that begin with these 32 bits, and the places of those that are not decided."""
        entries = (words >> np.uint32(AFTER)).astype(np.intp)
        cells = self.strips[entries].astype(np.int32) << np.int32(self.width)
        cells |= ((words >> np.uint32(AFTER - self.width)) & np.uint32((1 << self.width) - 1)).view(np.int32)
        return cells, np.flatnonzero(entries >= self.decided)

    def search(self, numbers: npt.NDArray[np.uint64]) -> tuple[Levels, npt.NDArray[np.intp]]:
        """The same of numbers that no strip decides, by their first 64 bits."""
        below = np.searchsorted(self.ends, numbers)
        return below - self.ends.size // 2, np.flatnonzero(self.ends[np.minimum(below, self.ends.size - 1)] == numbers)


def strips_of(half: Sequence[int], width: int) -> Strips:
    """The table of a law that falls off on both sides alike.

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


def settled(numbers: Iterable[int], half: Sequence[int], width: int, randomness: Randomness) -> list[int]:
    """The draws of numbers of which 64 bits are known and equal an end's: by all 512.

    Args:
        numbers: the 64 bits.
        half, width: what the table was made of.
        randomness: the source of the other bits.
    """
    ends = list(owed_ends(half, width))
    wholes = [(number << _REST) + int.from_bytes(randomness.bytes(_REST // 8), "little") for number in numbers]
    return [bisect_right(ends, whole) - len(half) + 1 for whole in wholes]


def owed_ends(half: Sequence[int], width: int) -> Iterator[int]:
    """Where what each of the cells -limit..limit is owed ends, in 512 bits: the last at 2^512."""
    paid, limit = _entries(half, width), len(half) - 1
    # Each cell of a strip has the same part of its entries.
    shift = DIGITS - ENTRY_BITS - width
    owed = (half[abs(cell)] - (paid.get(cell >> width, 0) << shift) for cell in range(-limit, limit + 1))
    start = sum(paid.values()) << DIGITS - ENTRY_BITS
    return islice(accumulate(owed, initial=start), 1, None)


def _entries(half: Sequence[int], width: int) -> dict[int, int]:
    """How many entries each strip holds, by its number, rising; strips without any are left out."""
    limit = len(half) - 1
    inside = range(-(limit >> width), (limit + 1) >> width)
    # The outermost cell is the least likely: a strip holds no entry that one of its cells could not pay for.
    outermost = {strip: max(-(strip << width), ((strip + 1) << width) - 1) for strip in inside}
    paid = {strip: half[cell] >> DIGITS - ENTRY_BITS - width for strip, cell in outermost.items()}
    return {strip: entries for strip, entries in paid.items() if entries}
