"""From untrusted bytes to stored reports: the checks in their order, and the answers.

bytes -> reports      "truncated", "bad-version": nothing after it can be read
task                  "wrong-task"
length                "wrong-length"
enrolment             "unknown-enrolment"
tag                   "bad-tag", where it is valid for no epoch; otherwise it shows the epoch of the report
limit                 "too-often", where one person has sent too many reports in a short time
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
from graphveil.collection.store.store import CheckedReport, Enrolment, Store
from graphveil.collection.store.tables import DIGEST_BYTES
from graphveil.device.errors import DeviceError
from graphveil.device.task import Task
from graphveil.device.wire import Report, read

#: Reports of one enrolment, from whatever address: a device sends one an epoch, and repeats it until acknowledged.
REPORT_RATE = Rate(each_second=1.0, burst=100.0)
#: The answers to stored reports.
STORED = ("accepted", "again")
#: Bytes of bodies that are checked together.
_CHECK_BYTES = 1 << 17


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


class _Refused(Exception):
    """A report is refused with a code of `answers.STATUS`."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True)
class _Authentic:
    """A report with a valid tag, its index among those of one call, its sender, and the epoch that the tag shows."""

    index: int
    report: Report
    sender: Enrolment
    epoch: int

    def to_store(self) -> CheckedReport:
        digest = hashlib.sha256(self.report.to_bytes()).digest()[:DIGEST_BYTES]
        return CheckedReport(self.sender.number, self.epoch, digest, self.report.body)


@dataclass(frozen=True)
class Intake:
    """Checks and stores reports of one task.

    Args:
        clock: seconds since 1970, the collector's own: a device's may be wrong by years.
        limits: token buckets by enrolment.
    """

    store: Store
    task: Task
    clock: Callable[[], float] = time.time
    limits: Buckets = field(default_factory=REPORT_RATE.buckets)

    def take(self, reports: Sequence[Report]) -> list[str]:
        """Check reports and store the valid ones in one transaction; return an answer for each, in order."""
        enrolments = self.store.enrolments([report.enrolment for report in reports])
        newest = self.store.epoch_count()
        answers: dict[int, str] = {}
        authentic: list[_Authentic] = []
        for index, report in enumerate(reports):
            try:
                authentic.append(self._authenticated(index, report, enrolments.get(report.enrolment), newest))
            except _Refused as refused:
                answers[index] = refused.code
        valid: list[_Authentic] = []
        for entry, is_possible in zip(authentic, self._possible(authentic), strict=True):
            if not is_possible:
                answers[entry.index] = "impossible"
            elif max(entry.sender.joined, entry.epoch) > newest:
                answers[entry.index] = "not-open"
            else:
                valid.append(entry)
        now = self.clock()
        inside = self.task.opens <= now < self.task.closes
        stored = self.store.add([entry.to_store() for entry in valid], inside=inside) if valid else []
        for entry, answer in zip(valid, stored, strict=True):
            answers[entry.index] = "not-open" if answer == "closed" and now < self.task.opens else answer
        self.store.count_refusals(Counter(answer for answer in answers.values() if answer not in STORED))
        return [answers[index] for index in range(len(reports))]

    def is_authentic(self, data: bytes) -> bool:
        """Return whether bytes begin with a report of an enrolled person with a valid tag; nothing is stored."""
        reports, _ = reports_in(data, 1)
        sender = self.store.enrolments([reports[0].enrolment]).get(reports[0].enrolment) if reports else None
        if sender is None:
            return False
        return reports[0].epoch_by(sender.key, range(self.store.epoch_count() + 1, 0, -1)) is not None

    def _authenticated(self, index: int, report: Report, sender: Enrolment | None, newest: int) -> _Authentic:
        """Return a report with its sender and epoch, or raise _Refused."""
        if report.task != self.task.hash:
            raise _Refused("wrong-task")
        if len(report.body) != self.task.body_bytes:
            raise _Refused("wrong-length")
        # Before the tag, which is checked with the enrolment's key: refusals up to here say nothing about anybody.
        if sender is None:
            raise _Refused("unknown-enrolment")
        # Nearly every report is of the newest epoch. The next one may have opened this moment, or the database was
        # restored from a backup of before it opened.
        is_newest = report.is_by(sender.key, newest)
        epoch = newest if is_newest else report.epoch_by(sender.key, range(newest + 1, 0, -1))
        if epoch is None:
            raise _Refused("bad-tag")
        # After the tag: nobody else can use up what a person may send.
        if not self.limits.take(report.enrolment):
            raise _Refused("too-often")
        return _Authentic(index, report, sender, epoch)

    def _possible(self, authentic: Sequence[_Authentic]) -> list[bool]:
        """Return for each report whether a device can have sent its body."""
        possible: list[bool] = []
        # A part at a time: as bits, bodies take many times their bytes.
        step = max(1, _CHECK_BYTES // max(1, self.task.body_bytes))
        for first in range(0, len(authentic), step):
            part = authentic[first : first + step]
            numbers = np.array([entry.sender.number for entry in part], np.int64)
            possible += Bodies.of(self.task, [entry.report.body for entry in part], numbers).possible().tolist()
        return possible


#: Reports of a transaction, at most: a commit costs about what checking a hundred costs.
COMMIT_REPORTS = 500
#: Bytes of a transaction, and of all waiting requests, at most; a larger request is taken where nothing else waits.
COMMIT_BYTES, MOST_BYTES = 1 << 20, 16 << 20
#: Estimated Python overhead per report, bytes.
_REPORT_OVERHEAD = 600


@dataclass
class _Request:
    reports: Sequence[Report]
    bytes: int
    answers: asyncio.Future[list[str]]


class ReportWriter:
    """Collects requests into transactions of one thread: it takes whatever waits, up to `COMMIT_REPORTS` and
    `COMMIT_BYTES`, and never waits for more; while it commits, the next batch gathers. Answers leave when the reports
    are on disk.

    Args:
        take: checks and stores reports, and answers each.
        most: bytes that may wait; above it requests are refused.
    """

    def __init__(self, take: Callable[[Sequence[Report]], list[str]], most: int = MOST_BYTES) -> None:
        self._take, self._most = take, most
        self._waiting: deque[_Request] = deque()
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
        answers: asyncio.Future[list[str]] = asyncio.get_running_loop().create_future()
        request = _Request(reports, size + _REPORT_OVERHEAD * len(reports), answers)
        with self._changed:
            if self._ended or (self._waiting_bytes and self._waiting_bytes + request.bytes > self._most):
                return None
            self._waiting.append(request)
            self._waiting_bytes += request.bytes
            self._changed.notify()
        return await request.answers

    def close(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            batch: list[_Request] = []
            with self._changed:
                while not self._waiting and not self._ended:
                    self._changed.wait()
                while self._waiting and _fits(batch, self._waiting[0]):
                    batch.append(self._waiting.popleft())
                self._waiting_bytes -= sum(request.bytes for request in batch)
            if not batch:
                return
            try:
                answers = self._take([report for request in batch for report in request.reports])
            # An error in one batch must not end the thread: later requests would wait for ever.
            except BaseException as error:
                for request in batch:
                    _fail(request, error)
                continue
            at = 0
            for request in batch:
                _answer(request, answers[at : at + len(request.reports)])
                at += len(request.reports)


def _fits(batch: list[_Request], request: _Request) -> bool:
    together = [*batch, request]
    few = sum(len(each.reports) for each in together) <= COMMIT_REPORTS
    # The first request fits whatever its size: otherwise it would wait for ever.
    return not batch or (few and sum(each.bytes for each in together) <= COMMIT_BYTES)


def _answer(request: _Request, answers: list[str]) -> None:
    _resolve(request.answers, lambda: request.answers.set_result(answers))


def _fail(request: _Request, error: BaseException) -> None:
    _resolve(request.answers, lambda: request.answers.set_exception(error))


def _resolve(future: asyncio.Future[list[str]], resolve: Callable[[], None]) -> None:
    def unless_done() -> None:
        # The client may be gone; its reports are stored all the same.
        if not future.done():
            resolve()

    future.get_loop().call_soon_threadsafe(unless_done)
