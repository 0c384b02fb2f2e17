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

from graphveil.collection.service.troubles import log_error
from graphveil.collection.store.rewriting import empty_log, has_room, log_size, rewrite, size_of
from graphveil.collection.store.store import HOUR, Store
from graphveil.collection.store.tables import COUNTS

#: Bytes of a database that is rewritten each hour: a second or two, in which writers wait.
SMALL = 256 << 20
#: Seconds between two emptyings of SQLite's log, and between two checks of its size; bytes at which it is emptied.
EMPTY_INTERVAL, CHECK_INTERVAL, LARGEST_LOG = 60.0, 1.0, 16 << 20
#: The setting that holds how many epochs were closed, and how many rows had come, at the last rewrite.
_MARK = "laid"


def forget(store: Store, small: int = SMALL) -> bool:
    """Rewrite the rows that came since the last rewrite; return whether no row is left in the order of arrival.

    Args:
        small: bytes of the largest database that is rewritten while its epoch is open.
    """
    try:
        is_rewritten = _rewrite(store, small)
        return empty_log(store.engine) and is_rewritten
    except SQLAlchemyError as error:
        # Nothing is lost: the next call does what this one could not.
        log_error(error)
        return False


def _rewrite(store: Store, small: int) -> bool:
    """Rewrite the rows where that is due and possible; return whether all rows of before the call are rewritten."""
    # Counted before the rewrite: rows that come meanwhile are left for the next one.
    closed = str(len(store.closed_epochs()))
    with store.reader.connect() as connection:
        rows = int(connection.execute(select(func.sum(COUNTS.c.count))).scalar() or 0)
    mark = f"{closed} {rows}".encode()
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
    """Forgets the order of arrival for as long as a collector runs.

    Args:
        small: as in `forget`.
        clock: seconds since 1970.
    """

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
            if self.clock() - self._emptied >= EMPTY_INTERVAL or log_size(self.store.engine) >= LARGEST_LOG:
                self._emptied = self.clock()
                empty_log(self.store.engine)
        except SQLAlchemyError as error:
            log_error(error)

    async def run(self) -> None:
        while True:
            await asyncio.to_thread(self.look)
            await asyncio.sleep(CHECK_INTERVAL)
