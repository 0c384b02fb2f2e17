"""What everybody has last said in the closed epochs: what is exported, and compared with an export before it goes."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt
from sqlalchemy import Connection, select

from graphveil.collection.tables import ENROLMENTS, REPORTS
from graphveil.errors import InputError

Numbers = npt.NDArray[np.int64]
#: Number, epoch, first epoch, body; None where it was scrubbed.
Row = tuple[int, int, int, bytes | None]
_AT_ONCE = 1 << 14


@dataclass(frozen=True)
class Last:
    """Everybody's last report, by number.

    Args:
        numbers, epochs, joined: int64 [n], who sent it, of which epoch it is, and in which they joined.
        bodies: uint8 [n, bytes].
    """

    numbers: Numbers
    epochs: Numbers
    joined: Numbers
    bodies: npt.NDArray[np.uint8]

    @classmethod
    def of(cls, rows: Iterator[Row]) -> Last:
        """Return what was read.

        Args:
            rows: see `last_rows`.

        Raises:
            InputError: a body was scrubbed.
        """
        # Of the machine's own numbers: of Python's, a row would take four times as much.
        told, held = (array("q"), array("q"), array("q")), bytearray()
        for *facts, body in rows:
            if body is None:
                raise scrubbed()
            for column, one in zip(told, facts, strict=True):
                column.append(one)
            held += body
        numbers, epochs, joined = (np.frombuffer(column, np.int64) for column in told)
        bodies = np.frombuffer(held, np.uint8)
        return cls(numbers, epochs, joined, bodies.reshape(len(numbers), -1 if len(numbers) else 0))

    def keeps(self, rows: Iterator[Row]) -> bool:
        """Return whether these are the reports that a database holds, each and no other.

        Args:
            rows: see `last_rows`; a body that was scrubbed before has nothing to lose.
        """
        at = 0
        while block := list(islice(rows, _AT_ONCE)):
            part = slice(at, at + len(block))
            kept = (self.numbers[part], self.epochs[part], self.joined[part])
            facts = np.array([row[:3] for row in block], np.int64).T
            # Row by row, so that one too few or too many is another row at its place.
            if not all(np.array_equal(one, other) for one, other in zip(kept, facts, strict=True)):
                return False
            bodies = zip(self.bodies[part], (row[3] for row in block), strict=True)
            if not all(body is None or body == one.tobytes() for one, body in bodies):
                return False
            at += len(block)
        return at == len(self.numbers)


def last_rows(connection: Connection, epochs: Sequence[int]) -> Iterator[Row]:
    """Yield everybody's last report of some epochs, by number.

    Args:
        connection: of the database. epochs: the closed ones.
    """
    columns = REPORTS.c.number, REPORTS.c.epoch, ENROLMENTS.c.joined, REPORTS.c.body
    asked = select(*columns).join(ENROLMENTS, ENROLMENTS.c.number == REPORTS.c.number)
    ordered = asked.where(REPORTS.c.epoch.in_(epochs)).order_by(REPORTS.c.number, REPORTS.c.epoch)
    held: Row | None = None
    # For this statement alone: on the connection it would make a cursor of every later one.
    with connection.execute(ordered, execution_options={"yield_per": _AT_ONCE}) as rows:
        for number, epoch, joined, body in rows:
            # An earlier epoch's, which the next one of the same person stands for, is passed over.
            if held is not None and held[0] != number:
                yield held
            held = number, epoch, joined, None if body is None else bytes(body)
    if held is not None:
        yield held


def scrubbed() -> InputError:
    """Return the refusal to read what was forgotten."""
    return InputError("bodies were scrubbed", remedy="train on the export that was made before")
