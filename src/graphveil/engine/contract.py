"""The four verbs of block-wise work, blocks of rows that depend on the shape of the data alone, and arrays on disk.

Arrays on disk are read and written through the page cache: they may exceed memory, and are shared without a copy.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from graphveil.errors import InputError

#: What every block may read: an array in memory or on disk, or None.
Shared: TypeAlias = "npt.NDArray[Any] | Mapped | None"
Result = TypeVar("Result")


class Engine(Protocol):
    """Where blocks of rows are processed: one trust domain, all of whose workers may read what is put. A task is a
    function that can be pickled, called as `task(block, *own, *shared)`; it gives the same result wherever and however
    often it runs. The block of a lost worker runs again with the same noise key.
    """

    def put(self, *arrays: Shared) -> tuple[Any, ...]:
        """Hand over arrays once, for all blocks of all tasks; return what `map_blocks` takes for each of them."""

    def map_blocks(
        self, task: Callable[..., Result], blocks: Blocks, shared: Any = (), own: Iterable[Any] | None = None
    ) -> Iterator[Result]:
        """Yield the task's result on each block, in the order of the blocks.

        Args:
            task: called as `task(block, own part, *shared arrays)`, without the part where there are none.
            own: one part for each block, such as its key of noise, taken in the order of the blocks.
        """

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
#: The fewest rows of a block: with fewer, handing it over would cost more than the work.
_FEWEST_ROWS: Final = 64


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
        return Blocks(rows, max(_FEWEST_ROWS, VALUES // max(1, columns)))

    def __len__(self) -> int:
        return -(-self.rows // self.size)

    def __iter__(self) -> Iterator[Block]:
        for number, start in enumerate(range(0, self.rows, self.size)):
            yield Block(number, start, min(start + self.size, self.rows))


@dataclass(frozen=True)
class Mapped:
    """An array in a `.npy` file, which workers open by themselves: the path has to lead to it on every machine."""

    path: Path

    def open(self, *, writable: bool = False) -> npt.NDArray[Any]:
        """Return the array; nothing is read before it is used. Raises InputError: no file, or no array to map."""
        try:
            array: npt.NDArray[Any] = np.load(self.path, mmap_mode="r+" if writable else "r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise InputError(f"the array cannot be opened ({error})", where=str(self.path)) from error
        return array


def create(path: Path, shape: tuple[int, ...], kind: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return a new array on disk, all zero, that can be written; only its owner may read the file.

    Args:
        path: of the `.npy` file, which must not exist.

    Raises:
        InputError: the file is there.
    """
    try:
        # Created with its mode: the data may be private, and a later change of mode would leave a gap.
        path.touch(mode=0o600, exist_ok=False)
    except FileExistsError as error:
        raise InputError("the file is there already", where=str(path), allowed="a new file") from error
    return np.lib.format.open_memmap(path, mode="w+", dtype=np.dtype(kind), shape=shape)


def room_beside(array: npt.NDArray[Any], shape: tuple[int, ...], kind: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return a new working array in memory or, if `array` is on disk, in an unnamed file beside it.

    Args:
        array: an array in memory or on disk.
        shape: of the new array.
        kind: the type of its entries, which are not initialized.
    """
    filename = getattr(array, "filename", None)
    if filename is None or 0 in shape:
        return np.empty(shape, kind)
    # Without a name nobody else can open it, and it disappears with its last reader.
    with tempfile.TemporaryFile(dir=Path(filename).parent) as file:
        return np.memmap(file, kind, "w+", shape=shape)


def open_shared(array: npt.NDArray[Any] | Mapped | None) -> npt.NDArray[Any] | None:
    return array.open() if isinstance(array, Mapped) else array
