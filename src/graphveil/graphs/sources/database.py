"""The results of two queries to an SQLite or PostgreSQL database, copied row by row; the database is only read."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from graphveil.errors import DataError, InputError
from graphveil.graphs.sources.rows import EDGES, Imported, new_table
from graphveil.runtime.extras import require_packages

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

SQLITE_ENDINGS: Final = (".db", ".sqlite", ".sqlite3")
_ROWS: Final = 10_000
_READ_ACTIONS: Final = (
    *(sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE),
    sqlite3.SQLITE_TRANSACTION,
)


def import_database(source: str, folder: Path, nodes_query: str, edges_query: str) -> Imported:
    """Copy the rows of two queries into tables.

    Args:
        source: sqlite:///FILE, postgresql://USER@HOST/DATABASE, or an SQLite file.
        folder: of the tables.
        nodes_query: one row a node; its columns become those of `nodes`.
        edges_query: one row an edge; its first two columns are the ends.

    Raises:
        DataError: the database refuses, or a query has too few columns.
        InputError: another kind of database.
        MissingExtraError: SQLAlchemy or the driver is not installed.
    """
    require_packages("collect", "sqlalchemy", "psycopg", where="import")
    from sqlalchemy.exc import SQLAlchemyError

    engine, where = _engine(source)
    try:
        with engine.connect() as connection:
            _copy(connection, nodes_query, folder, "nodes", f"{where}, --nodes-query")
            _copy(connection, edges_query, folder, "edges", f"{where}, --edges-query")
    except SQLAlchemyError as error:
        # Neither the statement nor the address, which may hold a password.
        reason = str(getattr(error, "orig", None) or error).splitlines()[0]
        raise DataError(f"the database refuses ({reason})", where=where) from error
    finally:
        engine.dispose()
    return Imported()


def _engine(source: str) -> tuple[Engine, str]:
    """The database, and its name in messages."""
    from sqlalchemy import create_engine, make_url
    from sqlalchemy.exc import ArgumentError

    try:
        url = make_url(source if "://" in source else f"sqlite:///{source}")
    except (ArgumentError, ValueError) as error:
        raise InputError("is no address of a database", where="SOURCE", allowed=_ADDRESSES) from error
    where = url.render_as_string(hide_password=True)
    kind = url.get_backend_name()
    if kind in ("postgresql", "postgres"):
        options = {"postgresql_readonly": True, "isolation_level": "REPEATABLE READ"}
        return create_engine(url.set(drivername="postgresql+psycopg"), execution_options=options), where
    if kind != "sqlite":
        raise InputError(f"a database of the kind {kind!r}", where="SOURCE", allowed=_ADDRESSES)
    if not url.database or not Path(url.database).is_file():
        raise DataError("no such file", where=where, allowed="an SQLite database")
    # mode=ro: otherwise SQLite creates a database that does not exist.
    address = f"file:{quote(str(Path(url.database).absolute()))}?mode=ro"
    return create_engine("sqlite://", creator=lambda: _connect_read_only(address)), where


def _connect_read_only(address: str) -> sqlite3.Connection:
    connection = sqlite3.connect(address, uri=True)
    # A read-only connection still allows ATTACH and VACUUM INTO, which write other files.
    connection.set_authorizer(_authorize)
    return connection


def _authorize(action: int, _: str | None, value: str | None, *__: str | None) -> int:
    # SQLAlchemy itself reads pragmas, and ends transactions.
    allowed = action in _READ_ACTIONS or (action == sqlite3.SQLITE_PRAGMA and value is None)
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


_ADDRESSES: Final = "sqlite:///FILE, postgresql://USER@HOST/DATABASE"


def _copy(connection: Connection, query: str, folder: Path, stem: str, where: str) -> None:
    options = {"stream_results": True, "yield_per": _ROWS, "no_parameters": True}
    with closing(connection.exec_driver_sql(query, execution_options=options)) as result:
        if not result.returns_rows:
            raise DataError("gives no rows", where=where, allowed="a query that begins with SELECT")
        columns: list[Any] = list(result.keys())
        if stem == "edges" and len(columns) < 2:
            raise DataError(f"gives {len(columns)} column", where=where, allowed="the two ends of each edge")
        width = len(columns) if stem == "nodes" else 2
        with new_table(folder, stem, columns if stem == "nodes" else EDGES, where) as write_row:
            for values in result:
                write_row(values[:width])
