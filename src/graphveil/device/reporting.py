"""From a person's values to the report that leaves: booked first, and the same from then on.

the epoch is booked        that report again, whatever the values are now
else                       the task's window, answer, price, the person's own limit, book, report
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from graphveil.device.errors import DeviceError
from graphveil.device.reports.answer import Answer, answer, cost
from graphveil.device.storage.ledger import DeviceLedger
from graphveil.device.task import Opening, Task
from graphveil.device.wire import Report, report


@dataclass(frozen=True)
class Enrolled:
    """A device's enrolment in a task.

    Args:
        number: the person's.
        joined: their first epoch.
        secret: of all noise, 32 bytes.
        key: of the tags, 32 bytes.
    """

    number: int
    joined: int
    secret: bytes = field(repr=False)
    key: bytes = field(repr=False)


def preview(
    task: Task, opening: Opening, enrolled: Enrolled, values: Mapping[str, object], ledger: DeviceLedger
) -> tuple[Answer, int]:
    """Return the answer that would be sent and its price in billionths of epsilon; nothing is booked.

    Args:
        values: as `answer` takes them.

    Raises:
        DeviceError: `bad-value`, or `bad-opening` where coordinates would be assigned anew.
    """
    nonce = opening.nonce(enrolled.joined)
    if any(entry.nonce != nonce.hex() for entry in ledger.booked(task.hash)):
        raise DeviceError("bad-opening", "the opening has another nonce than the one that this device has answered")
    response = answer(task, task.person(enrolled.number, nonce), values, enrolled.secret)
    return response, cost(task, response, ledger.seen(task.hash))


def book(
    task: Task,
    opening: Opening,
    enrolled: Enrolled,
    values: Mapping[str, object],
    ledger: DeviceLedger,
    clock: Callable[[], float] = time.time,
) -> Report:
    """Book the report of an epoch on disk, and return it; nothing is booked where this raises.

    Args:
        values: as `answer` takes them.
        clock: seconds since 1970.

    Raises:
        DeviceError: as `preview`; `not-open` or `closed` outside the task's window; `cap` where the person's own limit
            does not pay.
    """
    with ledger.locked():
        booked = [entry for entry in ledger.booked(task.hash) if entry.epoch == opening.epoch]
        if booked:
            ledger.seal()
            return report(task.hash, opening.epoch, bytes.fromhex(booked[0].body), enrolled.secret, enrolled.key)
        # Before anything is paid: no collector takes a report outside the window.
        task.require_inside(clock())
        response, nano = preview(task, opening, enrolled, values, ledger)
        ledger.book(task, opening.epoch, opening.nonce(enrolled.joined), response, nano)
        return report(task.hash, opening.epoch, response.body, enrolled.secret, enrolled.key)
