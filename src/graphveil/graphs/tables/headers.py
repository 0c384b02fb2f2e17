"""The names of a table's columns and nothing else: the first line of a csv, the schema of a parquet file.

No byte of a csv beyond its first line is read, and only names and types from the footer of a parquet file: the minima
and maxima in it are values of people.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from graphveil.errors import DataError
from graphveil.files.reading import MIB, require_file
from graphveil.graphs.tables.tables import check_columns, check_header, readable, separated
from graphveil.runtime.late import polars


@dataclass(frozen=True)
class Header:
    """The columns of a table."""

    file: str  # the name of its file
    columns: tuple[str, ...]
    booleans: frozenset[str] = frozenset()  # columns of the type boolean; the type is public


def read_header(path: Path) -> Header:
    """Return the columns of a csv or parquet file; DataError where the columns cannot be names, or are values."""
    # `packed` skips the look at the first eight bytes, which may go beyond the first line.
    require_file(path, packed=True)
    if path.suffix == ".parquet":
        with readable(path):
            schema = polars.scan_parquet(path, glob=False, hive_partitioning=False).collect_schema()
        check_columns(schema, str(path))
        booleans = frozenset(name for name, kind in schema.items() if kind == polars.Boolean)
        return Header(path.name, tuple(schema.names()), booleans)
    line = bytearray()
    # Byte by byte: a buffer would read on.
    with path.open("rb", buffering=0) as raw:
        while (byte := raw.read(1)) and byte != b"\n":
            line += byte
            if len(line) > MIB:
                raise DataError("has a first line of more than 1 MiB", where=str(path), allowed="a header line, rows")
    return Header(path.name, _names(bytes(line), f"{path}, line 1"))


def _names(line: bytes, where: str) -> tuple[str, ...]:
    try:
        names = tuple(next(csv.reader([line.decode("utf-8-sig")], strict=True), ()))
    except (UnicodeDecodeError, csv.Error) as error:
        allowed = "names with commas between them, as UTF-8"
        raise DataError("cannot be read as a header", where=where, allowed=allowed) from error
    if not names:
        raise DataError("is empty", where=where, allowed="a header line and rows")
    require_names(names, where)
    if remedy := separated(names):
        raise DataError("has one column", where=where, remedy=remedy)
    return names


def require_names(names: Sequence[str], where: str) -> None:
    """Refuse names that no column can have, or that look like values, by DataError.

    Args:
        where: the table or its first line, in messages.
    """
    check_header(where, names)
    # The message does not quote them: without a header, they are a person's values.
    if all(re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", name) for name in names):
        raise DataError("holds only numbers", where=where, allowed="the names of columns", remedy="add a header line")
