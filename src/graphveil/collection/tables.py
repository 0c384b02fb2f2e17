"""What a collector stores: nothing that says where a report came from, and the hour in place of the time.

settings     the signed task, the organiser's opening, what admits to administration
people       number -> id, hash of the token that enrols them
enrolments   number -> name on the wire, key of the tags, first epoch
reports      (number, epoch) -> digest of all bytes, body; the row stays when the body is scrubbed
epochs       epoch -> nonce, hash of everything it holds once it is closed
refusals     code -> how many
"""

from __future__ import annotations

from contextlib import closing
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Engine,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    UniqueConstraint,
    create_engine,
    event,
)

from graphveil.errors import InputError

METADATA = MetaData()
# SQLite keeps a table in the order of one integer key, and that key must be called INTEGER.
_NUMBER = BigInteger().with_variant(Integer(), "sqlite")

SETTINGS = Table(
    "settings", METADATA, Column("name", String(40), primary_key=True), Column("value", LargeBinary, nullable=False)
)
PEOPLE = Table(
    "people",
    METADATA,
    Column("number", _NUMBER, primary_key=True, autoincrement=False),
    Column("id", String, nullable=False),
    # A token is 128 bits or more: its hash is as good as the token for comparing, and worth nothing to a thief.
    Column("token", LargeBinary(32), nullable=False, unique=True),
)
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
    Column("place", _NUMBER, primary_key=True),
    Column("number", BigInteger, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("digest", LargeBinary(16), nullable=False),
    Column("body", LargeBinary),
    Column("hour", Integer, nullable=False),
    # One report a person an epoch, whatever two processes do at once: no code reads first and writes then.
    UniqueConstraint("number", "epoch"),
)
EPOCHS = Table(
    "epochs",
    METADATA,
    Column("epoch", Integer, primary_key=True, autoincrement=False),
    Column("nonce", LargeBinary(16), nullable=False, unique=True),
    Column("hash", LargeBinary(32)),
)
REFUSALS = Table(
    "refusals",
    METADATA,
    Column("code", String(40), primary_key=True),
    Column("count", BigInteger, nullable=False),
)

#: Pages of 4 KB that SQLite may hold, as a negative number of KB.
_CACHE = -131_072


def opened(url: str) -> Engine:
    """Return the engine of a database, its tables made where they are missing.

    Args:
        url: "sqlite:///FILE" or "postgresql+psycopg://...".

    Raises:
        InputError: another database, or one that cannot be opened.
    """
    if not url.startswith(("sqlite:///", "postgresql+psycopg://")):
        raise InputError("the database is of another kind", allowed="sqlite:///FILE, postgresql+psycopg://...")
    engine = create_engine(url)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _durable)
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    METADATA.create_all(engine)
    return engine


def overwritten(engine: Engine) -> None:
    """Leave nothing of what reports said before in the database's own files.

    Args:
        engine: see `opened`.
    """
    # Neither runs inside a transaction. PostgreSQL keeps old rows in the table until it is written anew; SQLite has
    # overwritten them by now, and its log still tells what stood there.
    if engine.dialect.name == "sqlite":
        with closing(engine.raw_connection()) as connection:
            connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("VACUUM FULL reports")


def _durable(connection: Any, _: Any) -> None:
    # sqlite3 would begin by itself, and only at the first write: two processes could then read and both write.
    connection.isolation_level = None
    # secure_delete: what is scrubbed is overwritten, where SQLite would leave it on pages that it calls free.
    kept = ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=30000", "secure_delete=ON", f"cache_size={_CACHE}")
    for pragma in kept:
        connection.execute(f"PRAGMA {pragma}")
