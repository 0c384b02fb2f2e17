"""Blocks on this machine, in threads: the default, which needs no other library."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final, TypeVar

from graphveil.engine.contract import Blocks, Engine, Shared, open_shared
from graphveil.runtime.checks import require_whole

if TYPE_CHECKING:
    from concurrent.futures import Future

Result = TypeVar("Result")


@dataclass(frozen=True)
class LocalEngine(Engine):
    """An `Engine` of threads, each of which processes a block at a time; arrays are shared without a copy.

    Raises:
        InputError: fewer than one worker.

    >>> import numpy as np
    >>> from graphveil.engine import Blocks, LocalEngine
    >>> engine, blocks = LocalEngine(2), Blocks(5, 2)
    >>> rows = engine.put(np.arange(5))
    >>> sums = engine.map_blocks(lambda block, array: int(array[block.rows].sum()), blocks, rows)
    >>> engine.reduce(sums, int.__add__)
    10
    """

    workers: int = 1

    def __post_init__(self) -> None:
        require_whole(1, workers=self.workers)

    def put(self, *arrays: Shared) -> tuple[Shared, ...]:
        return tuple(open_shared(array) for array in arrays)

    def map_blocks(
        self, task: Callable[..., Result], blocks: Blocks, shared: Any = (), own: Iterable[Any] | None = None
    ) -> Iterator[Result]:
        """As :meth:`Engine.map_blocks`; at most two blocks a worker are running or waiting to be fetched."""
        calls = calls_of(blocks, shared, own)
        if self.workers == 1:
            for call in calls:
                yield task(*call)
            return
        from concurrent.futures import ThreadPoolExecutor

        # The caller is a worker too: otherwise it would wake up for each block, and the threads would wait for it.
        with ThreadPoolExecutor(self.workers - 1) as pool:
            waiting: deque[Future[Result]] = deque()
            try:
                for call in calls:
                    # Bounded: otherwise the results of a quick task would pile up before a slow reader.
                    if len(waiting) == 2 * self.workers:
                        yield waiting.popleft().result()
                    if sum(not block.done() for block in waiting) < 2 * (self.workers - 1):
                        waiting.append(pool.submit(task, *call))
                    else:
                        waiting.append(_finished(task(*call)))
                while waiting:
                    yield waiting.popleft().result()
            finally:
                # An interrupted reader waits only for the blocks that are running.
                pool.shutdown(wait=False, cancel_futures=True)


def _finished(result: Result) -> Future[Result]:
    from concurrent.futures import Future

    done: Future[Result] = Future()
    done.set_result(result)
    return done


#: One block after the other, in the caller's own thread.
LOCAL: Final = LocalEngine()


def calls_of(blocks: Blocks, shared: Iterable[Any], own: Iterable[Any] | None) -> Iterator[tuple[Any, ...]]:
    parts: Iterable[tuple[Any, ...]] = repeat(()) if own is None else ((part,) for part in own)
    return ((block, *part, *shared) for block, part in zip(blocks, parts, strict=False))
