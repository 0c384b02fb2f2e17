"""The four verbs that block-wise work is written in, and blocks of rows by the shape of the data alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy.typing as npt

from graphveil.engine.mapped import Mapped

#: What every block may read: an array, one on disk, or None where there is none.
Shared: TypeAlias = "npt.NDArray[Any] | Mapped | None"
Result = TypeVar("Result")


class Engine(Protocol):
    """Where blocks of rows are worked on: one trust domain, whose workers may all read what is put. A task is a
    function that can be pickled, called as `task(block, *own, *shared)`; it gives the same result wherever and however
    often it runs. The block of a lost worker is done again, with the same noise key.
    """

    def put(self, *arrays: Shared) -> tuple[Any, ...]:
        """Hand over arrays once, for all blocks of all tasks; give back what `map_blocks` takes for each of them."""
        ...

    def map_blocks(
        self, task: Callable[..., Result], blocks: Blocks, shared: Any = (), own: Iterable[Any] | None = None
    ) -> Iterator[Result]:
        """Yield the task's result on each block, in the order of the blocks.

        Args:
            task: called as `task(block, own part, *shared arrays)`, without the part where there are none.
            own: one part for each block, such as its key of noise, asked for in the order of the blocks.
        """
        ...

    def reduce(self, results: Iterable[Result], add: Callable[[Result, Result], Result]) -> Result:
        """Return the results added up; `add` has to be exact, as no order is promised."""
        return reduce(add, results)

    def gather(self, results: Iterable[npt.NDArray[Any]], blocks: Blocks, out: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Write each block's result [rows of the block, ...] into its rows of `out` and return it."""
        for block, result in zip(blocks, results, strict=True):
            out[block.rows] = result
        return out


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
