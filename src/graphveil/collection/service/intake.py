"""From bytes of anybody to reports that are stored: what is checked, in this order, and what is answered.

bytes -> reports      "truncated", "bad-version": and nothing after it can be read
task                  "wrong-task"
length                "wrong-length"
enrolment             "unknown-enrolment"
tag                   "bad-tag", where it is right for no epoch; else it says for which one the report was made
how often             "too-often", where one person has sent the same report again and again
bits                  "impossible"
epoch                 "not-open", where it has not opened, or its sender takes part from a later one on
time                  "not-open" before the task opens, "closed" after it closes
storing               "accepted", "again", "conflict", "closed": see `store`
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from graphveil.collection.export.bodies import Bodies
from graphveil.collection.store.store import Enrolment, Sent, Store
from graphveil.collection.task.limits import Buckets, Rate
from graphveil.device.errors import DeviceError
from graphveil.device.task import Task
from graphveil.device.wire import Report, read

#: Reports of one person, whatever addresses they come from: a device sends one an epoch, and again until it is told.
REPORTS_OF_ONE = Rate(1.0, 100.0)
#: What counts: the report stands.
STORED = ("accepted", "again")
#: Bytes of bodies that are looked at together.
_BYTES_AT_ONCE = 1 << 17


def reports_in(data: bytes, most: int) -> tuple[list[Report], str | None]:
    """Return the reports that a body holds one after the other, and why the rest of it cannot be read, or None.

    Args:
        data: of a request. most: how many are read.
    """
    found: list[Report] = []
    at = 0
    while at < len(data):
        if len(found) == most:
            return found, "too-many"
        try:
            one, at = read(data, at)
        except DeviceError as error:
            return found, error.code
        found.append(one)
    return found, None


@dataclass(frozen=True)
class Intake:
    """What stores reports of one task.

    Args:
        store: the collection's. task: its task.
        clock: seconds since 1970, the collector's own: a device's may be wrong by years.
        often: how many reports of one person are looked at, by the enrolment.
    """

    store: Store
    task: Task
    clock: Callable[[], float] = time.time
    often: Buckets = field(default_factory=REPORTS_OF_ONE.buckets)

    def take(self, reports: Sequence[Report]) -> list[str]:
        """Check and store reports, all in one transaction; return an answer for each, in order.

        Args:
            reports: of anybody.
        """
        known = self.store.enrolled([one.enrolment for one in reports])
        newest = self.store.opened()
        judged = [self._judged(one, known.get(one.enrolment), newest) for one in reports]
        epochs = {place: found for place, found in enumerate(judged) if isinstance(found, int)}
        answers = [found if isinstance(found, str) else None for found in judged]
        who = [known[reports[place].enrolment] for place in epochs]
        kept: list[int] = []
        for place, one, possible in zip(epochs, who, self._possible([reports[p] for p in epochs], who), strict=True):
            early = max(one.joined, epochs[place]) > newest
            answers[place] = "impossible" if not possible else "not-open" if early else None
            if answers[place] is None:
                kept.append(place)
        sent = [_sent(reports[place], known[reports[place].enrolment].number, epochs[place]) for place in kept]
        now = self.clock()
        stored = self.store.add(sent, inside=self.task.opens <= now < self.task.closes) if sent else []
        for place, answer in zip(kept, stored, strict=True):
            answers[place] = "not-open" if answer == "closed" and now < self.task.opens else answer
        told = [answer or "" for answer in answers]
        self.store.count(Counter(answer for answer in told if answer not in STORED))
        return told

    def proves(self, data: bytes) -> bool:
        """Return whether bytes are a report of somebody who has enrolled, with a right tag; nothing is stored.

        Args:
            data: of one report.
        """
        for one in reports_in(data, 1)[0]:
            who = self.store.enrolled([one.enrolment]).get(one.enrolment)
            return who is not None and one.epoch_by(who.key, range(self.store.opened() + 1, 0, -1)) is not None
        return False

    def _judged(self, report: Report, who: Enrolment | None, newest: int) -> int | str:
        """The epoch for which a report was made, or why it is refused."""
        if report.task != self.task.hash:
            return "wrong-task"
        if len(report.body) != -(-self.task.bits // 8):
            return "wrong-length"
        # Before the tag, which is checked with their key: what is refused so far tells nothing about anybody.
        if who is None:
            return "unknown-enrolment"
        # Nearly every report is of the newest epoch. The one after it may have opened this moment, or the database is
        # from before it did.
        right = report.is_by(who.key, newest)
        epoch = newest if right else report.epoch_by(who.key, range(newest + 1, 0, -1))
        if epoch is None:
            return "bad-tag"
        # After the tag: nobody else can use up what a person may send.
        return epoch if self.often.take(report.enrolment) else "too-often"

    def _possible(self, reports: Sequence[Report], who: Sequence[Enrolment]) -> list[bool]:
        if not reports:
            return []
        found: list[bool] = []
        numbers = np.array([one.number for one in who], np.int64)
        # Some at a time: taken apart into bits, bodies take many times their bytes.
        step = max(1, _BYTES_AT_ONCE // max(1, len(reports[0].body)))
        for first in range(0, len(reports), step):
            bodies = [one.body for one in reports[first : first + step]]
            found += Bodies.of(self.task, bodies, numbers[first : first + step]).possible().tolist()
        return found


def _sent(report: Report, number: int, epoch: int) -> Sent:
    return Sent(number, epoch, hashlib.sha256(report.to_bytes()).digest()[:16], report.body)
