"""The four verbs that block-wise work is written in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy.typing as npt

from graphveil.engine.blocks import Blocks
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
            blocks: what is worked on; shared: what `put` gave.
            own: one part for each block, such as its key of noise, asked for in the order of the blocks.
        """
        ...

    def reduce(self, results: Iterable[Result], add: Callable[[Result, Result], Result]) -> Result:
        """Return the results added up; `add` has to be exact, as no order is promised."""
        ...

    def gather(self, results: Iterable[npt.NDArray[Any]], blocks: Blocks, out: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Write each block's result [rows of the block, ...] into its rows of `out` and return it."""
        ...
