"""The reports of the closed epochs: what is exported, and compared with an export before it is scrubbed."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from graphveil.collection.store.seals import SHORT, flag_places, flags_of, leaf_of, leaf_size, salt_of, seal_of
from graphveil.device.task import Task
from graphveil.errors import InputError

if TYPE_CHECKING:
    from sqlalchemy import Connection

Numbers = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
#: Number, epoch, first epoch, body; None where it was scrubbed.
Row = tuple[int, int, int, bytes | None]
_AT_ONCE = 1 << 14


@dataclass(frozen=True)
class Last:
    """Everybody's last report, by number.

    Args:
        numbers, epochs, joined: int64 [n], who sent it, of which epoch it is, and in which they joined.
        salts: uint8 [n, 16]. bodies: uint8 [n, bytes].
    """

    numbers: Numbers
    epochs: Numbers
    joined: Numbers
    salts: Bytes
    bodies: Bytes

    def keeps(self, rows: Iterator[Row]) -> bool:
        """Return whether these rows of `last_of` are exactly the reports here; a body that is scrubbed already matches
        any.
        """
        at = 0
        while block := list(islice(rows, _AT_ONCE)):
            part = slice(at, at + len(block))
            columns = (self.numbers[part], self.epochs[part], self.joined[part])
            facts = np.array([row[:3] for row in block], np.int64).T
            # Row by row: with one report too few or too many, another row is in its place.
            if not all(np.array_equal(own, stored) for own, stored in zip(columns, facts, strict=True)):
                return False
            bodies = zip(self.bodies[part], (row[3] for row in block), strict=True)
            if not all(body is None or body == own.tobytes() for own, body in bodies):
                return False
            at += len(block)
        return at == len(self.numbers)


@dataclass(frozen=True)
class Leaves:
    """The leaves of the epochs' hashes (see `seals`), one of every report, by epoch and number: int64 [r], uint8 [r,
    bytes].
    """

    epochs: Numbers
    leaves: Bytes

    @property
    def numbers(self) -> Numbers:
        """Who sent each, int64 [r]."""
        return np.ascontiguousarray(self.leaves[:, :8]).view(">i8").ravel().astype(np.int64)

    @property
    def flags(self) -> Bytes:
        """Whether each answers each field, [r, fields]."""
        return self.leaves[:, 8:-SHORT]

    @property
    def seals(self) -> Bytes:
        """Of each, [r, 16]."""
        return self.leaves[:, -SHORT:]


class Gathered:
    """Collects reports as they are read from a database; the secret of a closed epoch is None where it was scrubbed."""

    def __init__(self, task: Task, secrets: Mapping[int, bytes | None]) -> None:
        self._task, self._secrets, self._places = task, secrets, flag_places(task)
        # Machine numbers: with Python's a row would take four times the memory.
        self._facts, self._of_leaf = (array("q"), array("q"), array("q")), array("q")
        self._salts, self._bodies, self._leaves = bytearray(), bytearray(), bytearray()

    def add(self, number: int, epoch: int, joined: int, body: bytes | None) -> None:
        """Add a report; a person's reports come in the order of their epochs. Raises InputError if it was scrubbed."""
        secret = self._secrets[epoch]
        if body is None or secret is None:
            raise scrubbed()
        salt = salt_of(secret, number)
        self._of_leaf.append(epoch)
        self._leaves += leaf_of(number, flags_of(body, self._places), seal_of(salt, joined, body))
        if self._facts[0] and self._facts[0][-1] == number:
            # A report of an earlier epoch, which this one replaces.
            del self._bodies[-len(body) :], self._salts[-SHORT:]
            for column in self._facts:
                column.pop()
        for column, value in zip(self._facts, (number, epoch, joined), strict=True):
            column.append(value)
        self._salts += salt
        self._bodies += body

    def arrays(self) -> tuple[Last, Leaves]:
        """Return everybody's last report, and the leaves of all."""
        numbers, epochs, joined = (np.frombuffer(column, np.int64) for column in self._facts)
        width = -(-self._task.bits // 8)
        salts, bodies = _rows(self._salts, SHORT), _rows(self._bodies, width)
        of_leaf, leaves = np.frombuffer(self._of_leaf, np.int64), _rows(self._leaves, leaf_size(self._task))
        # They came by number; a stable sort keeps that order within an epoch.
        order = np.argsort(of_leaf, kind="stable")
        return Last(numbers, epochs, joined, salts, bodies), Leaves(of_leaf[order], leaves[order])


def rows_of(connection: Connection, epochs: Sequence[int]) -> Iterator[Row]:
    """Yield every report of some epochs, by number and epoch.

    Args:
        epochs: the closed ones.
    """
    # Imported here: training on an export reads no database.
    from sqlalchemy import select

    from graphveil.collection.store.tables import ENROLMENTS, REPORTS

    columns = REPORTS.c.number, REPORTS.c.epoch, ENROLMENTS.c.joined, REPORTS.c.body
    query = select(*columns).join(ENROLMENTS, ENROLMENTS.c.number == REPORTS.c.number)
    ordered = query.where(REPORTS.c.epoch.in_(epochs)).order_by(REPORTS.c.number, REPORTS.c.epoch)
    # For this statement alone: on the connection it would make a cursor of every later one.
    with connection.execute(ordered, execution_options={"yield_per": _AT_ONCE}) as rows:
        for number, epoch, joined, body in rows:
            yield number, epoch, joined, None if body is None else bytes(body)


def last_of(rows: Iterator[Row]) -> Iterator[Row]:
    """Yield the last report of each person, of the rows of `rows_of`."""
    last: Row | None = None
    for row in rows:
        if last is not None and last[0] != row[0]:
            yield last
        last = row
    if last is not None:
        yield last


def scrubbed(remedy: str = "train on the export that was made before") -> InputError:
    """Return the refusal to read scrubbed bodies, or to go on without them."""
    return InputError("this collection was scrubbed", remedy=remedy)


def _rows(data: bytearray, width: int) -> Bytes:
    return np.frombuffer(data, np.uint8).reshape(-1, width)
