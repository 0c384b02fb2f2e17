"""The reports of the closed epochs: what is exported, and compared with an export before it is scrubbed.

The hash of an epoch is made of a seal of each report, which only whoever has the report can check.

    salt = SHA-256("graphveil/salt/1" | secret (32) | number (8)), its first 16 bytes
    seal = SHA-256("graphveil/seal/1" | salt | first epoch (8) | body), its first 16 bytes
    leaf = number (8) | for each field whether it is answered (1) | seal (16)
    hash = SHA-256("graphveil/epoch/1" | task hash (32) | epoch (8) | nonce (16) | leaves by number)

An export holds all leaves, but salts only of the reports whose bodies it holds: otherwise a short body could be guessed
from its seal. The secret is drawn when an epoch is closed, and deleted with the bodies when they are scrubbed.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from graphveil.device.task import Task
from graphveil.errors import InputError

if TYPE_CHECKING:
    from sqlalchemy import Connection

#: Bytes of a salt, and of a seal.
SHORT = 16


def salt_of(secret: bytes, number: int) -> bytes:
    """Return the salt of a person's report, 16 bytes.

    Args:
        secret: of the epoch, 32 bytes.
    """
    return hashlib.sha256(b"graphveil/salt/1" + secret + number.to_bytes(8, "big")).digest()[:SHORT]


def seal_of(salt: bytes, joined: int, body: bytes) -> bytes:
    """Return the seal of a report, 16 bytes.

    Args:
        salt: 16 bytes.
        joined: the first epoch of who sent it, by which it is read.
    """
    return hashlib.sha256(b"graphveil/seal/1" + salt + joined.to_bytes(8, "big") + body).digest()[:SHORT]


def leaf_of(number: int, flags: bytes, seal: bytes) -> bytes:
    """Return the leaf of a report in the hash of its epoch.

    Args:
        flags: see `flags_of`.
        seal: see `seal_of`.
    """
    return number.to_bytes(8, "big") + flags + seal


def leaf_size(task: Task) -> int:
    """Return the bytes of a leaf."""
    return 8 + len(task.fields) + SHORT


def flag_offsets(task: Task) -> tuple[int, ...]:
    """Return the bit of a body at which each field says whether it is answered."""
    return tuple(accumulate((1 + field.width for field in task.fields[:-1]), initial=0))


def flags_of(body: bytes, offsets: tuple[int, ...]) -> bytes:
    """Return for each field whether a body answers it, a byte each.

    Args:
        offsets: see `flag_offsets`.
    """
    return bytes(body[at >> 3] >> (7 - at % 8) & 1 for at in offsets)


def epoch_hash(task: Task, epoch: int, nonce: bytes, leaves: Iterable[bytes]) -> bytes:
    """Return the hash of a closed epoch.

    Args:
        nonce: 16 bytes.
        leaves: one or many after the other, by number.
    """
    digest = hashlib.sha256(b"graphveil/epoch/1" + task.hash + epoch.to_bytes(8, "big") + nonce)
    for part in leaves:
        digest.update(part)
    return digest.digest()


Numbers = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
#: Number, epoch, first epoch, body; None where it was scrubbed.
Row = tuple[int, int, int, bytes | None]
#: Rows that are read together.
_AT_ONCE = 1 << 14


@dataclass(frozen=True)
class Last:
    """Everybody's last report, by number.

    Args:
        numbers, epochs, joined: int64 [n], who sent it, of which epoch it is, and in which epoch they joined.
        salts: uint8 [n, 16].
        bodies: uint8 [n, bytes].
    """

    numbers: Numbers
    epochs: Numbers
    joined: Numbers
    salts: Bytes
    bodies: Bytes

    def matches(self, rows: Iterator[Row]) -> bool:
        """Return whether these rows of `last_of` are exactly the reports here; a scrubbed body matches any."""
        at = 0
        while block := list(islice(rows, _AT_ONCE)):
            part = slice(at, at + len(block))
            columns = (self.numbers[part], self.epochs[part], self.joined[part])
            stored_columns = np.array([row[:3] for row in block], np.int64).T
            # By position: with one report too few or too many, the rows after it differ.
            if not all(np.array_equal(own, stored) for own, stored in zip(columns, stored_columns, strict=True)):
                return False
            bodies = zip(self.bodies[part], (row[3] for row in block), strict=True)
            if not all(body is None or body == own.tobytes() for own, body in bodies):
                return False
            at += len(block)
        return at == len(self.numbers)


@dataclass(frozen=True)
class Leaves:
    """The leaves of the epochs' hashes, one of every report, by epoch and number: int64 [r], uint8 [r, bytes]."""

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


class FrozenReports:
    """Collects reports as they are read from a database; the secret of a closed epoch is None where it was scrubbed."""

    def __init__(self, task: Task, secrets: Mapping[int, bytes | None]) -> None:
        self._task, self._secrets, self._offsets = task, secrets, flag_offsets(task)
        # Arrays of machine integers: a list of Python's would take four times the memory.
        self._columns, self._leaf_epochs = (array("q"), array("q"), array("q")), array("q")
        self._salts, self._bodies, self._leaves = bytearray(), bytearray(), bytearray()

    def add(self, number: int, epoch: int, joined: int, body: bytes | None) -> None:
        """Add a report; a person's reports come in the order of their epochs. Raises InputError: it was scrubbed."""
        secret = self._secrets[epoch]
        if body is None or secret is None:
            raise scrubbed()
        salt = salt_of(secret, number)
        self._leaf_epochs.append(epoch)
        self._leaves += leaf_of(number, flags_of(body, self._offsets), seal_of(salt, joined, body))
        numbers = self._columns[0]
        if numbers and numbers[-1] == number:
            # This report replaces that of an earlier epoch.
            del self._bodies[-len(body) :], self._salts[-SHORT:]
            for column in self._columns:
                column.pop()
        for column, value in zip(self._columns, (number, epoch, joined), strict=True):
            column.append(value)
        self._salts += salt
        self._bodies += body

    def arrays(self) -> tuple[Last, Leaves]:
        """Return everybody's last report, and the leaves of all."""
        numbers, epochs, joined = (np.frombuffer(column, np.int64) for column in self._columns)
        salts, bodies = _rows(self._salts, SHORT), _rows(self._bodies, self._task.body_bytes)
        leaf_epochs, leaves = np.frombuffer(self._leaf_epochs, np.int64), _rows(self._leaves, leaf_size(self._task))
        # Reports were added by number; a stable sort keeps that order within an epoch.
        order = np.argsort(leaf_epochs, kind="stable")
        return Last(numbers, epochs, joined, salts, bodies), Leaves(leaf_epochs[order], leaves[order])


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
    # For this statement alone: as an option of the connection it would apply to every later statement too.
    with connection.execute(ordered, execution_options={"yield_per": _AT_ONCE}) as rows:
        for number, epoch, joined, body in rows:
            yield number, epoch, joined, None if body is None else bytes(body)


def last_of(rows: Iterator[Row]) -> Iterator[Row]:
    """Yield each person's last report among the rows of `rows_of`."""
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
