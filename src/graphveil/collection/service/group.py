"""Group commit: reports that arrive together are stored in one transaction, and answered when it is on disk.

One thread writes.  It takes whatever waits, up to `AT_ONCE` reports and `BYTES_AT_ONCE`, and never waits for more:
while it commits, the next group gathers.
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
#: Bytes of a transaction, and of all that wait, at most; a request of more is taken where nothing else waits.
BYTES_AT_ONCE, MOST_BYTES = 1 << 20, 16 << 20
#: Bytes of a report's objects, beside those of the request.
_OBJECTS = 600
Take = Callable[[Sequence[Report]], list[str]]


@dataclass
class _Waiting:
    reports: Sequence[Report]
    bytes: int
    answer: asyncio.Future[list[str]]
    loop: asyncio.AbstractEventLoop


class Group:
    """Collects requests into transactions of one thread.

    Args:
        take: checks and stores reports, and answers each. most: bytes that may wait; above it requests are refused.
    """

    def __init__(self, take: Take, most: int = MOST_BYTES) -> None:
        self._take, self._most = take, most
        self._waiting: deque[_Waiting] = deque()
        self._waiting_bytes = 0
        self._changed = threading.Condition()
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="reports", daemon=True)
        self._thread.start()

    async def submit(self, reports: Sequence[Report], size: int) -> list[str] | None:
        """Store reports; return an answer for each when they are on disk, or None where too many already wait.

        Args:
            reports: of one request. size: its bytes.
        """
        loop = asyncio.get_running_loop()
        request = _Waiting(reports, size + _OBJECTS * len(reports), loop.create_future(), loop)
        with self._changed:
            if self._ended or (self._waiting_bytes and self._waiting_bytes + request.bytes > self._most):
                return None
            self._waiting.append(request)
            self._waiting_bytes += request.bytes
            self._changed.notify()
        return await request.answer

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
                answers = self._take([report for request in group for report in request.reports])
            # An error in one group must not end the thread: later requests would wait for ever.
            except BaseException as error:
                for request in group:
                    _tell(request, None, error)
                continue
            at = 0
            for request in group:
                _tell(request, answers[at : at + len(request.reports)], None)
                at += len(request.reports)

    def _next(self) -> list[_Waiting]:
        with self._changed:
            while not self._waiting and not self._ended:
                self._changed.wait()
            group: list[_Waiting] = []
            while self._waiting and _fits(group, self._waiting[0]):
                group.append(self._waiting.popleft())
            self._waiting_bytes -= sum(request.bytes for request in group)
            return group


def _fits(group: list[_Waiting], request: _Waiting) -> bool:
    together = [*group, request]
    # The first request fits whatever its size: otherwise it would wait for ever.
    few = sum(len(each.reports) for each in together) <= AT_ONCE
    return not group or (few and sum(each.bytes for each in together) <= BYTES_AT_ONCE)


def _tell(request: _Waiting, answers: list[str] | None, error: BaseException | None) -> None:
    def answer() -> None:
        # The client may be gone; its reports are stored all the same.
        if request.answer.done():
            return
        if error is not None:
            request.answer.set_exception(error)
        else:
            request.answer.set_result(answers or [])

    request.loop.call_soon_threadsafe(answer)
