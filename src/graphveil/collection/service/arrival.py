"""A row's position must not show when it came: within an hour, nobody can tell which report came first.

Rows are rewritten when an epoch is closed, and each hour while that takes only a moment. SQLite's log, which holds
pages in the order of writing, is emptied every minute and whenever it has grown: otherwise a writer would empty it,
and all reports would wait.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError

from graphveil.collection.service.troubles import write_down
from graphveil.collection.store.rewriting import empty_log, has_room, log_size, rewrite, size_of
from graphveil.collection.store.store import HOUR, Store
from graphveil.collection.store.tables import COUNTS

#: Bytes of a database that is rewritten each hour: a second or two, in which writers wait.
SMALL = 256 << 20
#: Seconds between two emptyings of SQLite's log, and between two checks of its size; bytes at which it is emptied.
EVERY, OFTEN, GROWN = 60.0, 1.0, 16 << 20
#: The setting that holds how many epochs were closed and how much had arrived at the last rewrite.
_MARK = "laid"


def forget(store: Store, small: int = SMALL) -> bool:
    """Rewrite the rows that came since the last time; return whether no row is left where it arrived.

    Args:
        small: bytes of the largest database that is rewritten while its epoch is open.
    """
    try:
        done = _forgotten(store, small)
        return empty_log(store.engine) and done
    except SQLAlchemyError as error:
        # Nothing is lost: the next time makes up for it.
        write_down(error)
        return False


def _forgotten(store: Store, small: int) -> bool:
    # Counted before the rewrite: what comes meanwhile is left for the next time.
    closed = str(len(store.closed()))
    with store.reader.connect() as connection:
        came = int(connection.execute(select(func.sum(COUNTS.c.count))).scalar() or 0)
    mark = f"{closed} {came}".encode()
    before = store.setting(_MARK) or b"0 0"
    if before == mark:
        return True
    size = size_of(store.engine)
    if (size > small and before.split()[0].decode() == closed) or not has_room(store.engine, size):
        return False
    rewrite(store.engine, in_memory=size <= small)
    store.keep(_MARK, mark)
    return True


@dataclass
class Arrival:
    """Forgets the order of arrival for as long as a collector runs; small as in `forget`."""

    store: Store
    small: int = SMALL
    clock: Callable[[], float] = time.time
    _hour: int | None = field(default=None, repr=False)
    _emptied: float = field(default=0.0, repr=False)

    def look(self) -> None:
        """Forget the hour that is over; empty the log."""
        hour = int(self.clock()) // HOUR
        if hour != self._hour:
            # Also at the first look: an earlier process may have been killed.
            self._hour, self._emptied = hour, self.clock()
            forget(self.store, self.small)
            return
        try:
            if self.clock() - self._emptied >= EVERY or log_size(self.store.engine) >= GROWN:
                self._emptied = self.clock()
                empty_log(self.store.engine)
        except SQLAlchemyError as error:
            write_down(error)

    async def run(self) -> None:
        while True:
            await asyncio.to_thread(self.look)
            await asyncio.sleep(OFTEN)
