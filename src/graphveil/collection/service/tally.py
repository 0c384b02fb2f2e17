"""How many requests were refused before anything of them could be stored, by code: counted in memory, written together.

A refusal must cost less than what it refuses: none of them waits for the disk, and a disk that is full is not asked.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqlalchemy.exc import SQLAlchemyError

#: Seconds between two writings; what was counted since the last one is lost where the process is killed.
EVERY = 1.0


@dataclass
class Tally:
    """Counts that are on their way to the database.

    Args:
        store: adds counts by code to those that are stored.
    """

    store: Callable[[Mapping[str, int]], None]
    _counts: Counter[str] = field(default_factory=Counter, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, code: str) -> None:
        """Count one refusal.

        Args:
            code: of `answers.STATUS`.
        """
        with self._lock:
            self._counts[code] += 1

    def write(self) -> None:
        """Store what was counted; where the database cannot, it stays counted for the next time."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
        try:
            self.store(counts)
        except SQLAlchemyError:
            with self._lock:
                self._counts.update(counts)

    async def run(self) -> None:
        """Store what is counted, again and again, until cancelled."""
        while True:
            await asyncio.sleep(EVERY)
            await asyncio.to_thread(self.write)
