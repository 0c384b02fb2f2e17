"""The tables of a collector: nothing says where a report came from, and the hour stands in place of the time.

settings     the signed task, the organiser's opening, the hash of the administration's token, the shape of these tables
people       number -> id, hash of the token that enrols them
enrolments   number -> name on the wire, key of the tags, first epoch
reports      (number, epoch) -> digest of all bytes, body; the row stays when the body is scrubbed
epochs       epoch -> nonce; of a closed epoch its hash and, until it is scrubbed, the secret of its salts
refusals     code -> how many
counts       enrolments and reports by epoch and hour: often read, and so not counted anew each time
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Engine,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    create_engine,
    event,
    insert,
    inspect,
    make_url,
    select,
    update,
)

from graphveil.errors import InputError

METADATA = MetaData()
# SQLite keeps a table in the order of one integer key, and that key must be called INTEGER.
_NUMBER = BigInteger().with_variant(Integer(), "sqlite")

SETTINGS = Table(
    "settings", METADATA, Column("name", String(40), primary_key=True), Column("value", LargeBinary, nullable=False)
)
#: Bytes of a SHA-256 digest that are stored: 128 bits, as hard to guess as the shortest token.
DIGEST_BYTES = 16
PEOPLE = Table(
    "people",
    METADATA,
    Column("number", _NUMBER, primary_key=True, autoincrement=False),
    Column("id", String, nullable=False),
    # A token is 128 bits or more: its hash is as good as the token for comparing, and worth nothing to a thief.
    Column("token", LargeBinary(DIGEST_BYTES), nullable=False),
)
#: Apart from the table, so that it is built when everybody is stored: at once it is sorted and dense, and faster.
TOKENS = Index("tokens", PEOPLE.c.token, unique=True)
ENROLMENTS = Table(
    "enrolments",
    METADATA,
    Column("number", _NUMBER, primary_key=True, autoincrement=False),
    Column("enrolment", LargeBinary(16), nullable=False, unique=True),
    Column("key", LargeBinary(32), nullable=False),
    Column("joined", Integer, nullable=False),
)
REPORTS = Table(
    "reports",
    METADATA,
    # One report a person an epoch, whatever two processes do at once: by this key. A table of SQLite is kept in its
    # order; as they come, rows would tell who reported before whom.
    Column("number", _NUMBER, primary_key=True, autoincrement=False),
    Column("epoch", Integer, primary_key=True, autoincrement=False),
    Column("digest", LargeBinary(DIGEST_BYTES), nullable=False),
    Column("body", LargeBinary),
    Column("hour", Integer, nullable=False),
    sqlite_with_rowid=False,
)
EPOCHS = Table(
    "epochs",
    METADATA,
    Column("epoch", Integer, primary_key=True, autoincrement=False),
    Column("nonce", LargeBinary(16), nullable=False, unique=True),
    Column("hash", LargeBinary(32)),
    Column("secret", LargeBinary(32)),
)
REFUSALS = Table(
    "refusals", METADATA, Column("code", String(40), primary_key=True), Column("count", BigInteger, nullable=False)
)
#: Each process that writes has rows of its own: with one row for all, each would wait for the commits of the others.
COUNTS = Table(
    "counts",
    METADATA,
    Column("kind", String(8), primary_key=True),
    Column("epoch", Integer, primary_key=True, autoincrement=False),
    Column("hour", Integer, primary_key=True, autoincrement=False),
    Column("writer", BigInteger, primary_key=True, autoincrement=False),
    Column("count", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

#: Milliseconds for which SQLite waits for another writer.
PATIENCE = 30_000
#: Of SQLite. Reports come in no order, so each writes a page of its own: with pages of 4 KB, four times as much.
#: A collector copies the log into the file in the background (see `arrival`). Writers do so only from 256 MB on, and
#: then cut the log to 64 MB; a negative cache size is in KB.
#: Scrubbed bodies are overwritten, where SQLite would leave them on pages that it calls free.
_PRAGMAS = (
    "page_size=1024", "journal_mode=WAL", "synchronous=FULL", f"busy_timeout={PATIENCE}", "secure_delete=ON",
    "wal_autocheckpoint=262144", "journal_size_limit=67108864", "cache_size=-65536",
)  # fmt: skip
#: Of PostgreSQL: seconds to connect, and milliseconds in which it must acknowledge what it was sent.
_CONNECT_ARGS = {"connect_timeout": 5, "tcp_user_timeout": 15_000}
#: Brings tables of one shape to the next.
Step = Callable[[Connection], None]
#: From shape n to n + 1, in order: the settings of every database hold its shape. Steps are never changed.
STEPS: tuple[Step, ...] = ()
#: The option of connections that only read.
READ_ONLY = {"graphveil_reads": True}
#: The option of connections of SQLite whose statements run in no transaction.
NO_TRANSACTION = {"graphveil_alone": True}


def opened(url: str, steps: Sequence[Step] = STEPS) -> Engine:
    """Return the engine of a database; missing tables are made, older ones brought up to date.

    Args:
        url: "sqlite:///FILE" or "postgresql+psycopg://...".
        steps: see `STEPS`.

    Raises:
        InputError: for another kind of database, an unknown shape, or a file that others may read and whose mode
            this user cannot change.
    """
    if not url.startswith(("sqlite:///", "postgresql+psycopg://")):
        raise InputError("the database is of another kind", allowed="sqlite:///FILE, postgresql+psycopg://...")
    # The parameters of statements are keys and bodies: no error may quote them.
    if url.startswith("sqlite"):
        file = make_url(url).database
        if file and file != ":memory:":
            # Closed, with what SQLite writes beside it, to all but its owner before its first byte is written.
            try:
                os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
                for path in (Path(file), *(Path(f"{file}-{part}") for part in ("wal", "shm", "journal"))):
                    if path.exists() and path.stat().st_mode & 0o077:
                        path.chmod(0o600)
            except OSError as error:
                reason = f"the database {file} cannot be used by its owner alone ({error.strerror})"
                raise InputError(reason) from error
        engine = create_engine(url, hide_parameters=True)
        event.listen(engine, "connect", _set_pragmas)
        event.listen(engine, "begin", _begin)
    else:
        engine = create_engine(url, hide_parameters=True, connect_args=_CONNECT_ARGS)
    try:
        # All or nothing: half of the tables, or half of a step, would never be right again.
        with engine.begin() as connection:
            _migrate(connection, steps)
    except BaseException:
        engine.dispose()
        raise
    return engine


def _migrate(connection: Connection, steps: Sequence[Step]) -> None:
    """Make the tables, or bring those of an older shape up to date."""
    newest, shape = len(steps) + 1, (SETTINGS.c.name == "shape")
    if not inspect(connection).has_table(SETTINGS.name):
        METADATA.create_all(connection)
        connection.execute(insert(SETTINGS), {"name": "shape", "value": str(newest).encode()})
        return
    value = connection.execute(select(SETTINGS.c.value).where(shape)).scalar_one_or_none()
    current = 0 if value is None else int(bytes(value))
    if not 1 <= current <= newest:
        raise _unknown_shape(current, newest)
    for step in steps[current - 1 :]:
        step(connection)
    if current < newest:
        connection.execute(update(SETTINGS).where(shape).values(value=str(newest).encode()))


def _unknown_shape(shape: int, newest: int) -> InputError:
    if shape:
        return InputError(
            f"the database is of a newer graphveil (shape {shape}; this one knows up to {newest})",
            remedy="install that graphveil, or put a backup from before back",
        )
    return InputError("the database holds tables that are not graphveil's", remedy="take another file or database")


def _set_pragmas(connection: Any, _: Any) -> None:
    # sqlite3 would begin by itself, and only at the first write: two processes could read the same, and both write.
    connection.isolation_level = None
    for pragma in _PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: Connection) -> None:
    # Readers wait for nobody, and nobody for them; writers take the lock before they read anything.
    options = connection.get_execution_options()
    if "graphveil_alone" not in options:
        connection.exec_driver_sql("BEGIN" if "graphveil_reads" in options else "BEGIN IMMEDIATE")
