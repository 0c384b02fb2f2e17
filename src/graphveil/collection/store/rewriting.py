"""A database's own files: rows in the order of their keys, nothing that was overwritten, an empty log.

SQLite       a page fills from its end, so that the latest row lies first, whatever its key; VACUUM lays all anew
PostgreSQL   ctid, xmin and xmax count up: an UPDATE gives all rows one xmin and no xmax, CLUSTER one ctid by key
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, Table

from graphveil.collection.store.tables import ENROLMENTS, EPOCHS, NO_TRANSACTION, PATIENCE, PEOPLE, REPORTS
from graphveil.errors import InputError

#: The tables that grow with the people.
_GROWING = (PEOPLE, ENROLMENTS, REPORTS)
#: Milliseconds for which PostgreSQL waits until nobody uses a table; new users queue behind it.
_LOCK_TIMEOUT = 5_000
#: Milliseconds that readers of SQLite's log get to finish; nobody writes meanwhile.
_READER_WAIT = 20


def size_of(engine: Engine) -> int:
    """Return the bytes of the tables that grow with the people."""
    if engine.dialect.name == "sqlite":
        return _file(engine).stat().st_size
    sizes = " + ".join(f"pg_total_relation_size('{table.name}')" for table in _GROWING)
    with engine.connect() as connection:
        return int(connection.exec_driver_sql(f"SELECT {sizes}").scalar_one())


def has_room(engine: Engine, size: int) -> bool:
    """Return whether the disk has room for a second copy and a log of it; PostgreSQL's disk is its own concern.

    Args:
        size: bytes of the database.
    """
    return engine.dialect.name != "sqlite" or shutil.disk_usage(_file(engine).parent).free > 3 * size


def rewrite(engine: Engine, *, in_memory: bool) -> None:
    """Rewrite all rows in the order of their keys; writers wait meanwhile. If killed, it has changed nothing.

    Args:
        in_memory: whether SQLite makes its copy in memory, not in a temporary file.
    """
    if engine.dialect.name == "sqlite":
        with _without_transaction(engine) as connection:
            connection.exec_driver_sql(f"PRAGMA temp_store={'MEMORY' if in_memory else 'DEFAULT'}")
            connection.exec_driver_sql("VACUUM")
        return
    for table in _GROWING:
        column = next(column.name for column in table.columns if not column.primary_key)
        with engine.begin() as connection:
            # Two processes go one after the other; at the same time, each would wait for rows of the other.
            connection.exec_driver_sql(f"LOCK TABLE {table.name} IN SHARE UPDATE EXCLUSIVE MODE")
            connection.exec_driver_sql(f"UPDATE {table.name} SET {column} = {column}")
        _cluster(engine, table)


def overwrite(engine: Engine) -> None:
    """Leave nothing of deleted bodies in the database's files; InputError where a reader keeps SQLite's log."""
    # PostgreSQL keeps old rows until the table is rewritten; SQLite has overwritten them, but its log still holds
    # them.
    if engine.dialect.name == "postgresql":
        for table in (REPORTS, EPOCHS):
            _cluster(engine, table)
    elif not empty_log(engine, PATIENCE):
        raise InputError(
            "the database's log still holds what was forgotten: somebody is reading it",
            remedy="run the same again when they are done",
        )


def empty_log(engine: Engine, wait: int = _READER_WAIT) -> bool:
    """Copy SQLite's log into the file and empty it; return whether that could be done now.

    Args:
        wait: milliseconds for readers.
    """
    if engine.dialect.name != "sqlite":
        return True
    with _without_transaction(engine) as connection:
        # First the part that keeps nobody waiting.
        connection.exec_driver_sql("PRAGMA wal_checkpoint(PASSIVE)").all()
        connection.exec_driver_sql(f"PRAGMA busy_timeout={wait}")
        try:
            return not connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()[0]
        finally:
            connection.exec_driver_sql(f"PRAGMA busy_timeout={PATIENCE}")


def _cluster(engine: Engine, table: Table) -> None:
    # Unlike a new table under the old name, this leaves its rows to a backup that has begun.
    with engine.begin() as connection:
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = {_LOCK_TIMEOUT}")
        connection.exec_driver_sql(f"CLUSTER {table.name} USING {table.name}_pkey")


def _file(engine: Engine) -> Path:
    return Path(str(engine.url.database))


def log_size(engine: Engine) -> int:
    """Return the bytes of SQLite's log, 0 of another database."""
    if engine.dialect.name != "sqlite":
        return 0
    log = Path(f"{engine.url.database}-wal")
    return log.stat().st_size if log.exists() else 0


@contextmanager
def _without_transaction(engine: Engine) -> Iterator[Connection]:
    """Give a connection of SQLite whose statements run in no transaction."""
    with engine.connect() as connection:
        yield connection.execution_options(**NO_TRANSACTION)
