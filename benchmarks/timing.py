"""CPU seconds of a piece of work, and the processor that they were taken on: seconds are true of no other."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from pathlib import Path


def processor() -> str:
    """Return what the operating system calls the processor."""
    facts = Path("/proc/cpuinfo")
    lines = facts.read_text().splitlines() if facts.exists() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())


def cpu_seconds(work: Callable[[], object]) -> float:
    """Return the CPU seconds of one run."""
    start = time.process_time()
    work()
    return time.process_time() - start


def best(work: Callable[[], object], repeats: int) -> float:
    """Return the least CPU seconds of some runs."""
    return min(cpu_seconds(work) for _ in range(repeats))


def in_turns(*works: Callable[[], object], repeats: int) -> list[float]:
    """Return the least CPU seconds of each of some works, which take turns: what else runs meets all of them alike."""
    seconds = [[cpu_seconds(work) for work in works] for _ in range(repeats)]
    return [min(column) for column in zip(*seconds, strict=True)]


def ratio(first: float, second: float) -> str:
    """Return how many times the second the first is, to two digits."""
    times = first / second
    return f"{times:.0f}" if times >= 10 else f"{times:.2g}"
