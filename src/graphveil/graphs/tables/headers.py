"""The names of a table's columns, and nothing else of it: the first line of a csv, the schema of a parquet file.

Not one byte of a csv beyond its first line is asked for, and of what the footer of a parquet file says of its columns
only their names and types are used: its smallest and largest values are values of people.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from graphveil.errors import DataError
from graphveil.files.reading import MIB, require_file
from graphveil.graphs.tables.tables import check_columns, check_header, readable, separated
from graphveil.runtime.late import polars

_LONGEST: Final = MIB


@dataclass(frozen=True)
class Header:
    """The columns of a table."""

    file: str  # the name of its file
    columns: tuple[str, ...]
    truths: frozenset[str] = frozenset()  # those whose type holds nothing but true and false, which is public


class Bytes(Protocol):
    """A file without a buffer."""

    def read(self, size: int, /) -> bytes | None: ...


def read_header(path: Path) -> Header:
    """Return the columns of a csv or parquet file.

    Args:
        path: of the file.

    Raises:
        DataError: they cannot be the names of columns, or are values rather than names.
    """
    # As if packed: whether it is compressed would show in its first eight bytes, which may go beyond its first line.
    require_file(path, packed=True)
    if path.suffix == ".parquet":
        with readable(path):
            schema = polars.scan_parquet(path, glob=False, hive_partitioning=False).collect_schema()
        check_columns(schema, str(path))
        truths = frozenset(name for name, kind in schema.items() if kind == polars.Boolean)
        return Header(path.name, tuple(schema.names()), truths)
    with path.open("rb", buffering=0) as raw:
        return Header(path.name, parse_header(first_line(raw, str(path)), str(path)))


def first_line(raw: Bytes, where: str) -> bytes:
    """Return the first line of a file, reading nothing behind it.

    Args:
        raw: without a buffer, which would read on.
        where: the file, for the refusal of a line that is longer than any header.
    """
    line = bytearray()
    while (byte := raw.read(1)) and byte != b"\n":
        line += byte
        if len(line) > _LONGEST:
            raise DataError("has a first line of more than 1 MiB", where=where, allowed="a header line and rows")
    return bytes(line)


def parse_header(line: bytes, where: str) -> tuple[str, ...]:
    """Return the names in the first line of a csv; DataError where they are none.

    Args:
        line: its bytes.
        where: the file, in messages.
    """
    where = f"{where}, line 1"
    try:
        names = tuple(next(csv.reader([line.decode("utf-8-sig")], strict=True), ()))
    except UnicodeDecodeError as error:
        raise DataError("is not UTF-8 text", where=where, remedy="save the file as UTF-8") from error
    except csv.Error as error:
        raise DataError(f"cannot be read ({error})", where=where, allowed="names separated by commas") from error
    if not names:
        raise DataError("is empty", where=where, allowed="a header line and rows")
    check_header(where, names)
    if remedy := separated(names):
        raise DataError("has one column", where=where, remedy=remedy)
    # Without the values themselves: where the header is missing, they are those of a person.
    if all(_is_number(name) for name in names):
        raise DataError("holds numbers alone", where=where, allowed="the names of columns", remedy="add a header line")
    return names


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
