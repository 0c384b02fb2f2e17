"""Group commit: reports that arrive together are stored in one transaction, and answered when it is on disk.

One thread writes.  It takes whatever waits, up to `AT_ONCE` reports, and never waits for more: while it commits, the
next group gathers.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from graphveil.device.wire import Report

#: Reports of a transaction, at most: a commit costs about what checking a hundred costs.
AT_ONCE = 500
Take = Callable[[Sequence[Report]], list[str]]


@dataclass
class _Waiting:
    reports: Sequence[Report]
    answer: asyncio.Future[list[str]]
    loop: asyncio.AbstractEventLoop


class Group:
    """What stands between requests and the database.

    Args:
        take: checks and stores reports, and answers each.
        most: reports that may wait; above it requests are told to come again.
    """

    def __init__(self, take: Take, most: int = 20_000) -> None:
        self._take, self._most = take, most
        self._waiting: deque[_Waiting] = deque()
        self._held = 0
        self._changed = threading.Condition()
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="reports", daemon=True)
        self._thread.start()

    async def submit(self, reports: Sequence[Report]) -> list[str] | None:
        """Store reports; return an answer for each when they are on disk, or None where too many wait already.

        Args:
            reports: of one request.
        """
        loop = asyncio.get_running_loop()
        one = _Waiting(reports, loop.create_future(), loop)
        with self._changed:
            if self._ended or self._held + len(reports) > self._most:
                return None
            self._waiting.append(one)
            self._held += len(reports)
            self._changed.notify()
        return await one.answer

    def close(self) -> None:
        """Store what waits, and end."""
        with self._changed:
            self._ended = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            group = self._next()
            if not group:
                return
            try:
                answers = self._take([report for one in group for report in one.reports])
            # A fault of one group must not end the thread: whoever comes next would wait for ever.
            except BaseException as error:
                for one in group:
                    _tell(one, None, error)
                continue
            at = 0
            for one in group:
                _tell(one, answers[at : at + len(one.reports)], None)
                at += len(one.reports)

    def _next(self) -> list[_Waiting]:
        with self._changed:
            while not self._waiting and not self._ended:
                self._changed.wait()
            # The first whatever its size: a request of more than a group's reports would never be taken otherwise.
            group: list[_Waiting] = []
            size = 0
            while self._waiting and (not group or size + len(self._waiting[0].reports) <= AT_ONCE):
                group.append(self._waiting.popleft())
                size += len(group[-1].reports)
            self._held -= size
            return group


def _tell(one: _Waiting, answers: list[str] | None, error: BaseException | None) -> None:
    def set_it() -> None:
        # Whoever asked may be gone; the reports stand all the same.
        if one.answer.done():
            return
        if error is not None:
            one.answer.set_exception(error)
        else:
            one.answer.set_result(answers or [])

    one.loop.call_soon_threadsafe(set_it)
