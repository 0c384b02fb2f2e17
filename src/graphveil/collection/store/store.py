"""One collection in a database: people, enrolments, reports and epochs.

Every change is one transaction, and its answer leaves after the commit.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Engine, delete, func, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite

from graphveil.collection.store.forgetting import OPEN, is_scrubbed, require_bodies, require_closed
from graphveil.collection.store.frozen import (
    FrozenReports,
    Last,
    Leaves,
    epoch_hash,
    flag_offsets,
    flags_of,
    last_of,
    leaf_of,
    rows_of,
    salt_of,
    seal_of,
)
from graphveil.collection.store.rewriting import overwrite
from graphveil.collection.store.tables import (
    COUNTS,
    DIGEST_BYTES,
    ENROLMENTS,
    EPOCHS,
    PEOPLE,
    READ_ONLY,
    REFUSALS,
    REPORTS,
    SETTINGS,
    TOKENS,
)
from graphveil.collection.task.drafts import refusals
from graphveil.device.task import Task
from graphveil.device.wire import enrolment_id, numbered
from graphveil.errors import InputError

_PEOPLE_AT_ONCE = 1 << 14
#: Ids that are read at a time.
_IDS_AT_ONCE = 1 << 9
#: Seconds.
HOUR = 3600
_CLOSED = select(EPOCHS.c.epoch).where(EPOCHS.c.hash.is_not(None))
_INTO_SQLITE = str(insert(REPORTS).compile(dialect=sqlite.dialect()))


def _add_to_counts(dialect: Any) -> Any:
    """Return the statement that adds to a row of `COUNTS`, or inserts it."""
    statement = dialect.insert(COUNTS)
    return statement.on_conflict_do_update(
        index_elements=list(COUNTS.primary_key), set_={"count": COUNTS.c.count + statement.excluded.count}
    )


_COUNT_IN_SQLITE = str(_add_to_counts(sqlite).compile(dialect=sqlite.dialect()))


@dataclass(frozen=True)
class CheckedReport:
    """A report that passed all checks that need no transaction.

    Args:
        number: of the person who sent it.
        epoch: for which it was made.
        digest: of all its bytes, id included, `DIGEST_BYTES` bytes.
    """

    number: int
    epoch: int
    digest: bytes
    body: bytes

    @property
    def identity(self) -> tuple[int, int, bytes]:
        """What distinguishes it from all other reports."""
        return self.number, self.epoch, self.digest


@dataclass(frozen=True)
class Enrolment:
    number: int
    key: bytes
    joined: int


class Store:
    """A collection's database (see `tables.opened`), whose `reader` waits for nobody, and nobody for it."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.reader = engine, engine.execution_options(**READ_ONLY)
        self._writer = secrets.randbits(62)

    # ---- task and people ----

    def begin(self, task: Task, people: Iterable[tuple[str, bytes]]) -> None:
        """Store a task and who may take part in it; InputError where the database has a task already.

        Args:
            people: id and token of everybody, in order of their numbers.
        """
        with self.engine.begin() as connection:
            if self._setting(connection, "task") is not None:
                raise InputError("the database holds a collection already", remedy="take another file or database")
            connection.execute(insert(SETTINGS), {"name": "task", "value": task.data})
            _write_people(connection, people)

    def withdraw(self, task: bytes) -> None:
        """Forget a signed task that was never published, so that another can begin here; any other stays."""
        with self.engine.begin() as connection:
            is_task = (SETTINGS.c.name == "task") & (SETTINGS.c.value == task)
            connection.execute(delete(SETTINGS).where(is_task))

    def invite(self, people: Iterable[tuple[str, bytes]]) -> None:
        """Store ids and tokens, in order, in a collection without people; InputError where there are people."""
        with self.engine.begin() as connection:
            if connection.execute(select(PEOPLE.c.number).limit(1)).scalar_one_or_none() is not None:
                raise InputError("tokens were given out already", remedy="they are shown once: find that file")
            _write_people(connection, people)

    def task(self) -> Task:
        """Return the task; InputError where there is none, or it is of another version of the standard."""
        data = self.setting("task")
        if data is None:
            raise InputError("the database holds no collection", remedy="`graphveil collect sign` makes one")
        with refusals("the database"):
            return Task.of(data)

    def setting(self, name: str) -> bytes | None:
        with self.reader.connect() as connection:
            return self._setting(connection, name)

    def keep(self, name: str, value: bytes) -> None:
        """Store a setting, in place of an older value."""
        with self.engine.begin() as connection:
            # One row a name, by its key: another process may store the same setting now.
            connection.execute(self._or_nothing(SETTINGS), {"name": name, "value": value})
            connection.execute(update(SETTINGS).where(SETTINGS.c.name == name).values(value=value))

    # ---- enrolment ----

    def enrol(self, task: Task, token: bytes, key: bytes) -> Enrolment | None:
        """Bind a token to a device's key for good; the same token and key again are the same enrolment. None where no
        such token was given out, or it is bound to another key.

        Args:
            token: as it was handed out.
            key: 32 bytes that the device made.
        """
        with self.engine.begin() as connection:
            # The row is locked: a token that is being replaced enrols before that, or not at all.
            query = select(PEOPLE.c.number).where(PEOPLE.c.token == hashed(token)).with_for_update()
            number = connection.execute(query).scalar_one_or_none()
            if number is None:
                return None
            joined = (connection.execute(select(func.max(EPOCHS.c.epoch))).scalar() or 0) + 1
            name = enrolment_id(task.hash, key)
            values = {"number": number, "enrolment": name, "key": key, "joined": joined}
            # By the constraint: of two devices with one token at the same time, only the first is enrolled.
            insertion = self._or_nothing(ENROLMENTS).returning(ENROLMENTS.c.number)
            if connection.execute(insertion, values).scalar_one_or_none() is not None:
                self._count(connection, "enrolled", joined, 0, 1)
            # The row as it is now, whoever wrote it: a lost answer is repeated, to the same device alone.
            row = connection.execute(select(ENROLMENTS).where(ENROLMENTS.c.number == number)).one_or_none()
        return Enrolment(row.number, row.key, row.joined) if row is not None and row.key == key else None

    def replace_token(self, id: str, random: bytes) -> bytes:
        """Give somebody another token, and return it; the old one enrols nobody any more.

        Args:
            random: random bytes of the new token.

        Raises:
            InputError: nobody has this id, or they have enrolled.
        """
        with self.engine.begin() as connection:
            query = select(PEOPLE.c.number).where(PEOPLE.c.id == id).with_for_update()
            number = connection.execute(query).scalar_one_or_none()
            if number is None:
                raise InputError(f"nobody has the id {id!r}", allowed="an id of ids.txt, letter by letter")
            enrolled = select(ENROLMENTS.c.number).where(ENROLMENTS.c.number == number)
            # A second device would draw noise anew: two reports of one value tell more than what was promised.
            if connection.execute(enrolled).scalar_one_or_none() is not None:
                raise InputError(
                    f"{id!r} has enrolled a device already",
                    remedy="that device answers; a second one would be a second answer, at a price nobody agreed to",
                )
            token = numbered(random, number)
            connection.execute(update(PEOPLE).where(PEOPLE.c.number == number).values(token=hashed(token)))
        return token

    def enrolments(self, names: Sequence[bytes]) -> dict[bytes, Enrolment]:
        """Return the enrolments of these names, 16 bytes each as on the wire; names that nobody has are left out."""
        query = select(ENROLMENTS).where(ENROLMENTS.c.enrolment.in_(names))
        with self.reader.connect() as connection:
            rows = connection.execute(query).all()
        return {bytes(row.enrolment): Enrolment(row.number, bytes(row.key), row.joined) for row in rows}

    # ---- epochs ----

    def open_epoch(self, nonce: bytes) -> int:
        """Begin an epoch, and return its number; InputError where another is open, or bodies were scrubbed."""
        with self.engine.begin() as connection:
            require_bodies(connection)
            last = connection.execute(select(EPOCHS).order_by(EPOCHS.c.epoch.desc()).limit(1)).one_or_none()
            if last is not None and last.hash is None:
                raise InputError(f"epoch {last.epoch} is open", remedy="close it first: graphveil collect close")
            epoch = 1 if last is None else last.epoch + 1
            connection.execute(insert(EPOCHS), {"epoch": epoch, "nonce": nonce, "hash": None})
        return int(epoch)

    def nonces(self) -> tuple[bytes, ...]:
        with self.reader.connect() as connection:
            return tuple(map(bytes, connection.execute(select(EPOCHS.c.nonce).order_by(EPOCHS.c.epoch)).scalars()))

    def epoch_count(self) -> int:
        """Return how many epochs there have been."""
        with self.reader.connect() as connection:
            return connection.execute(select(func.max(EPOCHS.c.epoch))).scalar() or 0

    def current_epoch(self) -> int | None:
        with self.reader.connect() as connection:
            return connection.execute(OPEN).scalar_one_or_none()

    @property
    def is_scrubbed(self) -> bool:
        """Whether bodies were scrubbed: the collection can neither be exported nor go on."""
        with self.reader.connect() as connection:
            return is_scrubbed(connection)

    def close_epoch(self) -> tuple[int, bytes]:
        """Freeze the open epoch; return its number and the hash of all that came. Raises InputError: none is open."""
        task, secret = self.task(), secrets.token_bytes(32)
        with self.engine.begin() as connection:
            row = connection.execute(select(EPOCHS).where(EPOCHS.c.hash.is_(None)).with_for_update()).one_or_none()
            if row is None:
                raise InputError("no epoch is open", remedy="`graphveil collect open` opens one")
            offsets = flag_offsets(task)
            # In the order of people and not of arrival: the hash shows what was received, and not when.
            leaves = (
                leaf_of(number, flags_of(body or b"", offsets), seal_of(salt_of(secret, number), joined, body or b""))
                for number, _, joined, body in rows_of(connection, [row.epoch])
            )
            digest = epoch_hash(task, row.epoch, bytes(row.nonce), leaves)
            connection.execute(update(EPOCHS).where(EPOCHS.c.epoch == row.epoch).values(hash=digest, secret=secret))
        return int(row.epoch), digest

    def closed_epochs(self) -> list[tuple[bytes, bytes]]:
        """Return nonce and hash of every closed epoch, in order."""
        query = select(EPOCHS.c.nonce, EPOCHS.c.hash).where(EPOCHS.c.hash.is_not(None)).order_by(EPOCHS.c.epoch)
        with self.reader.connect() as connection:
            return [(bytes(row.nonce), bytes(row.hash)) for row in connection.execute(query)]

    # ---- reports ----

    def add(self, reports: Sequence[CheckedReport], *, inside: bool = True) -> list[str]:
        """Store reports in one transaction; see `intake` for what is checked before. Return for each "accepted",
        "again" (the same report was stored before), "conflict" (another report of the person was), or "closed" (its
        epoch or the window is).

        Args:
            inside: whether the task's window is open for new ones; stored ones are acknowledged always.
        """
        with self.engine.begin() as connection:
            # A shared lock: an epoch is not closed and hashed while reports of it are being stored.
            open_epoch = connection.execute(OPEN.with_for_update(read=True)).scalar_one_or_none()
            epoch = open_epoch if inside else None
            stored, reporters = self._stored(connection, [report.number for report in reports], epoch)
            # Of the epoch that is open now: another process may have closed one and opened the next since the tag was
            # checked. The first of several reports of a person is written.
            candidates = [
                report for report in reversed(reports) if report.epoch == epoch and report.number not in reporters
            ]
            fresh = {report.number: report for report in candidates}
            written = self._write(connection, list(fresh.values()), epoch)
            # Another process may have written the same report since then: it is stored, though not by this process.
            stored |= self._stored(connection, [number for number in fresh if number not in written], epoch)[0]
            stored |= {fresh[number].identity for number in written}
        answers = []
        for report in reports:
            if report.number in written and fresh[report.number] is report:
                answers.append("accepted")
            elif report.identity in stored:
                answers.append("again")
            else:
                answers.append("conflict" if report.epoch == epoch else "closed")
        return answers

    def _write(self, connection: Connection, fresh: Sequence[CheckedReport], epoch: int | None) -> set[int]:
        """Write reports of different people without a report of the epoch; return the numbers of those written."""
        if not fresh:
            return set()
        # The hour and no finer: when somebody answered may tell who they are.
        hour = int(time.time()) // HOUR
        rows = [(report.number, epoch, report.digest, report.body, hour) for report in fresh]
        written = self._insert(connection, rows)
        if written and epoch is not None:
            self._count(connection, "received", epoch, hour, len(written))
            # Counted as they come: counting them later would read all rows.
            empty = sum(report.number in written and not any(report.body) for report in fresh)
            if empty:
                self._count(connection, "empty", epoch, hour, empty)
        return written

    def _insert(self, connection: Connection, rows: list[tuple[int, int | None, bytes, bytes, int]]) -> set[int]:
        # SQLite's lock has been held since the stored reports were read; without it the key would raise an error.
        if self.engine.dialect.name == "sqlite":
            # In the driver's own form: to name and convert each value costs more than to store it.
            connection.exec_driver_sql(_INTO_SQLITE, rows)
            return {number for number, *_ in rows}
        named = [dict(zip(REPORTS.columns.keys(), row, strict=True)) for row in rows]
        return set(connection.execute(self._or_nothing(REPORTS).returning(REPORTS.c.number), named).scalars())

    def frozen(self) -> tuple[Last, Leaves]:
        """Return everybody's last report of the closed epochs, and all leaves; InputError where they were scrubbed."""
        task = self.task()
        with self.reader.connect() as connection:
            query = select(EPOCHS.c.epoch, EPOCHS.c.secret).where(EPOCHS.c.hash.is_not(None))
            secrets_by_epoch = {row.epoch: row.secret and bytes(row.secret) for row in connection.execute(query)}
            reports = FrozenReports(task, secrets_by_epoch)
            for row in rows_of(connection, list(secrets_by_epoch)):
                reports.add(*row)
        return reports.arrays()

    def ids(self) -> Iterator[str]:
        """Yield the id of everybody who may take part, by number."""
        last = -1
        while True:
            # Page by page, with no connection in between: a slow reader would keep one occupied. The pages are small,
            # since thousands may read slowly at the same time.
            query = select(PEOPLE.c.number, PEOPLE.c.id).where(PEOPLE.c.number > last)
            with self.reader.connect() as connection:
                page = connection.execute(query.order_by(PEOPLE.c.number).limit(_IDS_AT_ONCE)).all()
            if not page:
                return
            yield from (id for _, id in page)
            last = page[-1].number

    def scrub(self, last: Last) -> int:
        """Delete the bodies of closed epochs, and return how many; that they were sent stays on record. The database's
        own files no longer hold them, neither pages nor log; backups and copies of the disk do. Raises InputError: an
        epoch is open, or the closed ones hold other reports than an export's `last`; or as `rewriting.overwrite`.
        """
        with self.engine.begin() as connection:
            require_closed(connection)
            # Only these: an epoch that closes from now on was not compared with the export.
            epochs = connection.execute(_CLOSED).scalars().all()
            if not last.matches(last_of(rows_of(connection, epochs))):
                raise InputError(
                    "the export holds other reports than those to be forgotten",
                    remedy="export the collection as it stands now, then scrub it",
                )
            has_body = REPORTS.c.epoch.in_(epochs) & REPORTS.c.body.is_not(None)
            scrubbed = int(connection.execute(update(REPORTS).where(has_body).values(body=None)).rowcount)
            # With the secret, short bodies could be guessed: it salts their seals, which are in the export.
            connection.execute(update(EPOCHS).where(EPOCHS.c.epoch.in_(epochs)).values(secret=None))
        overwrite(self.engine)
        return scrubbed

    def count_refusals(self, refused: Mapping[str, int]) -> None:
        if not refused:
            return
        with self.engine.begin() as connection:
            # In one order everywhere, so that two processes that count the same codes never wait for each other.
            for code, count in sorted(refused.items()):
                addition = update(REFUSALS).where(REFUSALS.c.code == code).values(count=REFUSALS.c.count + count)
                if not connection.execute(addition).rowcount:
                    # Another process may have been first.
                    connection.execute(self._or_nothing(REFUSALS), [{"code": code, "count": 0}])
                    connection.execute(addition)

    def status(self) -> dict[str, Any]:
        """Return how many may take part, have enrolled, have reported in the present epoch, and were refused."""
        with self.reader.connect() as connection:
            last = connection.execute(select(func.max(PEOPLE.c.number))).scalar()
            # People are numbered from 0 on.
            people = 0 if last is None else last + 1
            epoch = connection.execute(select(func.max(EPOCHS.c.epoch))).scalar() or 0
            is_open = connection.execute(OPEN).scalar_one_or_none() is not None
            return {
                "people": people,
                "enrolled": _total(connection, "enrolled"),
                "epoch": epoch,
                "open": is_open,
                "received": _total(connection, "received", epoch),
                "refused": self.refusals(),
            }

    def empty_count(self, epoch: int) -> int:
        """Return how many reports of an epoch are empty: nothing was answered, so the body is all zeros."""
        with self.reader.connect() as connection:
            return _total(connection, "empty", epoch)

    def refusals(self) -> dict[str, int]:
        with self.reader.connect() as connection:
            return {row.code: row[1] for row in connection.execute(select(REFUSALS))}

    def _stored(
        self, connection: Connection, numbers: list[int], epoch: int | None
    ) -> tuple[set[tuple[int, int, bytes]], set[int]]:
        """Return the identities of all reports of some people, and the numbers of those with a report of `epoch`."""
        if not numbers:
            return set(), set()
        query = select(REPORTS.c.number, REPORTS.c.epoch, REPORTS.c.digest).where(REPORTS.c.number.in_(numbers))
        rows = connection.execute(query).all()
        identities = {(row.number, row.epoch, bytes(row.digest)) for row in rows}
        return identities, {row.number for row in rows if row.epoch == epoch}

    def _count(self, connection: Connection, kind: str, epoch: int, hour: int, count: int) -> None:
        """Add to this process's own counts, in the transaction that writes the rows."""
        row = (kind, epoch, hour, self._writer, count)
        if self.engine.dialect.name == "sqlite":
            connection.exec_driver_sql(_COUNT_IN_SQLITE, row)
        else:
            connection.execute(_add_to_counts(postgresql), dict(zip(COUNTS.columns.keys(), row, strict=True)))

    def _or_nothing(self, table: Any) -> Any:
        dialect: Any = sqlite if self.engine.dialect.name == "sqlite" else postgresql
        return dialect.insert(table).on_conflict_do_nothing()

    @staticmethod
    def _setting(connection: Connection, name: str) -> bytes | None:
        value = connection.execute(select(SETTINGS.c.value).where(SETTINGS.c.name == name)).scalar_one_or_none()
        return None if value is None else bytes(value)


def _total(connection: Connection, kind: str, epoch: int | None = None) -> int:
    query = select(func.sum(COUNTS.c.count)).where(COUNTS.c.kind == kind)
    in_epoch = query if epoch is None else query.where(COUNTS.c.epoch == epoch)
    return int(connection.execute(in_epoch).scalar() or 0)


def _write_people(connection: Connection, people: Iterable[tuple[str, bytes]]) -> None:
    numbered = enumerate(people)
    TOKENS.drop(connection)
    while part := list(islice(numbered, _PEOPLE_AT_ONCE)):
        rows = [{"number": number, "id": id, "token": hashed(token)} for number, (id, token) in part]
        connection.execute(insert(PEOPLE), rows)
    TOKENS.create(connection)


def hashed(token: bytes) -> bytes:
    """Return the hash of a token that is stored in its place."""
    return hashlib.sha256(b"graphveil/token/1" + token).digest()[:DIGEST_BYTES]
