"""From untrusted bytes to stored reports: the checks in their order, and the answers.

bytes -> reports      "truncated", "bad-version": nothing after it can be read
task                  "wrong-task"
length                "wrong-length"
enrolment             "unknown-enrolment"
tag                   "bad-tag", where it is valid for no epoch; otherwise it shows the epoch of the report
how often             "too-often", where one person has sent the same report again and again
bits                  "impossible"
epoch                 "not-open", where it has not opened, or its sender takes part from a later one on
time                  "not-open" before the task opens, "closed" after it closes
storing               "accepted", "again", "conflict", "closed": see `store`
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from graphveil.collection.export.bodies import Bodies
from graphveil.collection.service.limits import Buckets, Rate
from graphveil.collection.store.store import Enrolment, Sent, Store
from graphveil.device.errors import DeviceError
from graphveil.device.task import Task
from graphveil.device.wire import Report, read

#: Reports of one person, from whatever address: a device sends one an epoch, and repeats it until acknowledged.
REPORTS_OF_ONE = Rate(1.0, 100.0)
#: The answers to stored reports.
STORED = ("accepted", "again")
#: Bytes of bodies that are checked together.
_BYTES_AT_ONCE = 1 << 17


def reports_in(data: bytes, most: int) -> tuple[list[Report], str | None]:
    """Return the reports in a request's body, and why the rest of it cannot be read, or None.

    Args:
        data: the body.
        most: how many are read.
    """
    reports: list[Report] = []
    at = 0
    while at < len(data):
        if len(reports) == most:
            return reports, "too-many"
        try:
            report, at = read(data, at)
        except DeviceError as error:
            return reports, error.code
        reports.append(report)
    return reports, None


@dataclass(frozen=True)
class Intake:
    """Checks and stores reports of one task.

    Args:
        clock: seconds since 1970, the collector's own: a device's may be wrong by years.
        often: how many reports of one enrolment are checked.
    """

    store: Store
    task: Task
    clock: Callable[[], float] = time.time
    often: Buckets = field(default_factory=REPORTS_OF_ONE.buckets)

    def take(self, reports: Sequence[Report]) -> list[str]:
        """Check reports and store the valid ones in one transaction; return an answer for each, in order."""
        enrolments = self.store.enrolled([report.enrolment for report in reports])
        newest = self.store.opened()
        verdicts = [self._judged(report, enrolments.get(report.enrolment), newest) for report in reports]
        epochs = {place: verdict for place, verdict in enumerate(verdicts) if isinstance(verdict, int)}
        answers = [verdict if isinstance(verdict, str) else None for verdict in verdicts]
        senders = [enrolments[reports[place].enrolment] for place in epochs]
        places: list[int] = []
        possible = self._possible([reports[place] for place in epochs], senders)
        for place, sender, is_possible in zip(epochs, senders, possible, strict=True):
            early = max(sender.joined, epochs[place]) > newest
            answers[place] = "impossible" if not is_possible else "not-open" if early else None
            if answers[place] is None:
                places.append(place)
        sent = [_sent(reports[place], enrolments[reports[place].enrolment].number, epochs[place]) for place in places]
        now = self.clock()
        stored = self.store.add(sent, inside=self.task.opens <= now < self.task.closes) if sent else []
        for place, answer in zip(places, stored, strict=True):
            answers[place] = "not-open" if answer == "closed" and now < self.task.opens else answer
        codes = [answer or "" for answer in answers]
        self.store.count(Counter(answer for answer in codes if answer not in STORED))
        return codes

    def proves(self, data: bytes) -> bool:
        """Return whether bytes are a report of an enrolled person with a valid tag; nothing is stored."""
        for report in reports_in(data, 1)[0]:
            sender = self.store.enrolled([report.enrolment]).get(report.enrolment)
            return sender is not None and report.epoch_by(sender.key, range(self.store.opened() + 1, 0, -1)) is not None
        return False

    def _judged(self, report: Report, sender: Enrolment | None, newest: int) -> int | str:
        """Return the epoch for which a report was made, or why it is refused."""
        if report.task != self.task.hash:
            return "wrong-task"
        if len(report.body) != -(-self.task.bits // 8):
            return "wrong-length"
        # Before the tag, which is checked with their key: refusals up to here say nothing about anybody.
        if sender is None:
            return "unknown-enrolment"
        # Nearly every report is of the newest epoch. The next one may have opened this moment, or the database was
        # restored from before it did.
        right = report.is_by(sender.key, newest)
        epoch = newest if right else report.epoch_by(sender.key, range(newest + 1, 0, -1))
        if epoch is None:
            return "bad-tag"
        # After the tag: nobody else can use up what a person may send.
        return epoch if self.often.take(report.enrolment) else "too-often"

    def _possible(self, reports: Sequence[Report], senders: Sequence[Enrolment]) -> list[bool]:
        if not reports:
            return []
        possible: list[bool] = []
        numbers = np.array([sender.number for sender in senders], np.int64)
        # In groups: as bits, bodies take many times their bytes.
        step = max(1, _BYTES_AT_ONCE // max(1, len(reports[0].body)))
        for first in range(0, len(reports), step):
            bodies = [report.body for report in reports[first : first + step]]
            possible += Bodies.of(self.task, bodies, numbers[first : first + step]).possible().tolist()
        return possible


def _sent(report: Report, number: int, epoch: int) -> Sent:
    return Sent(number, epoch, hashlib.sha256(report.to_bytes()).digest()[:16], report.body)


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
    """Collects requests into transactions of one thread: it takes whatever waits, up to `AT_ONCE` reports and
    `BYTES_AT_ONCE`, and never waits for more; while it commits, the next group gathers. Answers leave when the reports
    are on disk.

    Args:
        take: checks and stores reports, and answers each.
        most: bytes that may wait; above it requests are refused.
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
            reports: of one request.
            size: its bytes.
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
        with self._changed:
            self._ended = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            group: list[_Waiting] = []
            with self._changed:
                while not self._waiting and not self._ended:
                    self._changed.wait()
                while self._waiting and _fits(group, self._waiting[0]):
                    group.append(self._waiting.popleft())
                self._waiting_bytes -= sum(request.bytes for request in group)
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
