"""How many threads to compute with: the count that measures fastest, or one."""

from __future__ import annotations

import os
import timeit
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from graphveil.runtime.late import torch


def fastest_threads(work: Callable[[], object], *, repeats: int = 3) -> int:
    """Return the thread count (1, 2, 4, ... up to the cores) under which `work` finishes soonest, and set it. More
    threads must win by a tenth to be chosen, because they cost CPU time that others may need.

    Args:
        work: what is timed, after one run that is not.
        repeats: timed runs for each count, of which the fastest is taken.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    best, best_seconds, count = 1, float("inf"), 1
    while count <= cores:
        torch.set_num_threads(count)
        work()
        seconds = min(timeit.repeat(work, number=1, repeat=repeats))
        # By a tenth: other jobs on the machine must not change the choice from run to run.
        if seconds < 0.9 * best_seconds:
            best, best_seconds = count, seconds
        count *= 2
    torch.set_num_threads(best)
    return best


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread: the result for a row must not depend on how work is divided between threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
