"""Rows in blocks, by the shape of the data alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

#: Values of a block: a megabyte in float32, which stays in a core's cache from the sums until their noise is added.
VALUES: Final = 1 << 18
#: The least rows of a block: with fewer, handing over would cost more than the work.
_FEWEST: Final = 64


class Block(NamedTuple):
    """Rows start..stop-1, which are block number `number`."""

    number: int
    start: int
    stop: int

    @property
    def rows(self) -> slice:
        """The block's rows of an array."""
        return slice(self.start, self.stop)


@dataclass(frozen=True)
class Blocks:
    """Rows 0..rows-1 in blocks of `size`, the last of which may be shorter.

    >>> from graphveil.engine import Blocks
    >>> [tuple(block) for block in Blocks(5, 2)]
    [(0, 0, 2), (1, 2, 4), (2, 4, 5)]
    """

    rows: int
    size: int

    @staticmethod
    def of(rows: int, columns: int) -> Blocks:
        """Return the blocks of an array [rows, columns]: about `VALUES` values each."""
        return Blocks(rows, max(_FEWEST, VALUES // max(1, columns)))

    def __len__(self) -> int:
        return -(-self.rows // self.size)

    def __iter__(self) -> Iterator[Block]:
        for number, start in enumerate(range(0, self.rows, self.size)):
            yield Block(number, start, min(start + self.size, self.rows))
