"""Tables read from csv or parquet, and errors that name the line as an editor numbers it."""

from __future__ import annotations

import contextlib
import csv
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Final

from graphveil.engine import Block
from graphveil.errors import DataError
from graphveil.files.reading import require_file
from graphveil.graphs.tables.long_csv import LongCsv
from graphveil.runtime.late import polars
from graphveil.runtime.words import count_of

_POINT: Final = r"^(-?(?:0|[1-9][0-9]*))\.0$"


def whole_texts(texts: polars.Series) -> polars.Series:
    """Return "12" for "12.0" if every text that is not null ends in ".0"; else the texts unchanged."""
    if texts.len() == texts.null_count() or not texts.str.contains(_POINT).all():
        return texts
    return without_point(texts)


def without_point(texts: polars.Series) -> polars.Series:
    return texts.str.replace(_POINT, "$1")


def _spelling_remedy(value: str, declared: Sequence[str]) -> str | None:
    """Return how to correct a cell that almost matches a declared name; None where none is close."""
    if value.strip() in declared:
        return "remove the spaces around it"
    if (number := re.sub(_POINT, r"\1", value)) == value:
        return None
    if number in declared:
        return f"write {number}: with a point it is taken only where every value of the column is such a whole number"
    return f"neither {value} nor {number} is declared; pandas writes {number} so in a column where some are missing"


#: The largest csv that is read whole, in bytes; a longer one is read in parts.
IN_MEMORY: Final = 1 << 26


def first_names(names: Sequence[str]) -> str:
    """Return the first eight names, for a message."""
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")


@dataclass(frozen=True)
class Table:
    """One table: every column of a csv as text, of a parquet or a frame as stored."""

    title: str  # its name in messages: the path of its file, or the caller's word
    frame: polars.DataFrame | polars.LazyFrame | LongCsv  # its columns, in memory, or on disk until they are read
    path: Path | None = None  # its file; None for a frame
    row_names: Sequence[str] | None = None  # the names of its rows in messages; None: their numbers

    @cached_property
    def names(self) -> list[str]:
        return self.frame.names if isinstance(self.frame, LongCsv) else self.frame.collect_schema().names()

    @cached_property
    def rows(self) -> int:
        if isinstance(self.frame, LongCsv):
            return self.frame.rows
        return int(self.frame.lazy().select(polars.len()).collect().item())

    @property
    def short_title(self) -> str:
        return self.title if self.path is None else self.path.name

    def where(self, row: int) -> str:
        """Return the place of data row `row` (from 0) for a message: a line of a csv, else a row."""
        if self.row_names is not None:
            return f"{self.title}, {self.row_names[row]}"
        if self.path is None or self.path.suffix == ".parquet":
            return f"{self.title}, row {row + 1}"
        lines = (line for line, _ in _records(self.path))
        line = next(islice(lines, row + 1, None), None)
        return f"{self.path}, line {line}" if line else f"{self.path}, row {row + 1}"

    def column(self, name: str) -> polars.Series:
        """Return a column by name; DataError where no column has that name."""
        return self.part(name, Block(0, 0, self.rows))

    def part(self, name: str, block: Block) -> polars.Series:
        """Return a block of rows of a column.

        Args:
            name, block: DataError as of `column`, or where the file has changed.
        """
        if name not in self.names:
            names = self.names
            # Quoted where a name differs from another by spaces alone.
            columns = ", ".join(column if column == column.strip() else repr(column) for column in names[:12])
            allowed = f"its columns are {columns}"
            raise DataError(f"has no column {name!r}", where=self.title, allowed=allowed, remedy=separated(names))
        if isinstance(self.frame, polars.DataFrame):
            return self.frame[name][block.rows]
        rows = block.stop - block.start
        if isinstance(self.frame, LongCsv):
            with _readable_csv(self.frame.path):
                part = self.frame.column(name, block)
        else:
            with readable(Path(self.title)):
                part = self.frame.select(name).slice(block.start, rows).collect().to_series()
        if len(part) != rows:
            raise DataError("became shorter while it was read", where=self.title)
        return part

    def refuse(
        self, bad: polars.Series, what: str, column: str, allowed: str | None = None, remedy: str | None = None
    ) -> None:
        """Refuse the first row where `bad` is true: DataError names file and line.

        Args:
            bad: one truth a row.
            what: what is wrong, with the fields {column} and {value}.
            column, allowed, remedy: for the message.
        """
        if bad.any():
            raise self.fault(int(bad.arg_true()[0]), what, column, allowed, remedy)

    def fault(
        self, row: int, what: str, column: str, allowed: str | None = None, remedy: str | None = None
    ) -> DataError:
        """Return the error for a row (from 0).

        Args:
            row, what, column, allowed, remedy: as of `refuse`.
        """
        value = self.part(column, Block(0, row, row + 1))[0]
        text = repr(str(value).lower() if isinstance(value, bool) else value)  # as `text` reads it
        message = what.format(column=column, value=text if len(text) <= 80 else f"{text[:80]}...")
        return DataError(message, where=self.where(row), allowed=allowed, remedy=remedy)

    def refuse_short_lines(self) -> None:
        """Refuse lines of a csv with fewer fields than the header, which polars reads as if the rest were empty."""
        if self.path is None or self.path.suffix == ".parquet":
            return
        width = len(self.names)
        if not width or not self.column(self.names[-1]).has_nulls():
            return
        commas, quoted = 0, False
        with self.path.open("rb") as raw:
            while chunk := raw.read(1 << 20):
                commas += chunk.count(b",")
                quoted = quoted or b'"' in chunk
        if not quoted and commas == (self.rows + 1) * (width - 1):
            return
        for row, (line, fields) in enumerate(_records(self.path)):
            if len(fields) < width and row <= self.rows:
                what, where = f"has {count_of(len(fields), 'field')}", f"{self.path}, line {line}"
                raise DataError(what, where=where, allowed=f"{width}, as in the header")

    def text(self, name: str) -> polars.Series:
        """Return a column as text, null where missing; whole numbers stored as floats lose their point."""
        series = self.column(name)
        if series.dtype.is_float():
            series = series.fill_nan(None)
        if series.dtype.is_float() and bool((series.drop_nulls() == series.drop_nulls().round()).all()):
            series = series.cast(polars.Int64, strict=False)
        return series.cast(polars.String)

    def codes_of(self, cells: polars.Series, name: str, declared: Sequence[str], what: str) -> polars.Series:
        """Return cells as an Enum of the declared names, null where a cell is empty.

        "12.0", as pandas writes whole numbers in a column with missing ones, counts as "12" where every cell then is a
        declared name.

        Args:
            cells: of the column `name`, as text.
            what: the message about any other cell, such as "not a declared class".

        Raises:
            DataError: another name; gives file and line.
        """
        names = polars.Enum(declared)
        for text in (cells, whole_texts(cells)):
            codes = text.cast(names, strict=False)
            if codes.null_count() == cells.null_count():
                return codes
        unknown = codes.is_null() & cells.is_not_null()
        remedy = _spelling_remedy(str(cells[int(unknown.arg_true()[0])]), declared)
        self.refuse(unknown, f"{{column}} is {{value}}, {what}", name, first_names(declared), remedy)
        return codes

    def read_numbers(
        self, name: str, fill_value: float | None = None, remedy: str | None = None
    ) -> tuple[polars.Series, int]:
        """Return a column as finite Float64, and how many were missing; DataError for another value, naming its line.

        Args:
            fill_value: replaces a missing value; None: a missing value is refused, with `remedy`.
        """
        series = self.column(name)
        text = series.str.strip_chars() if series.dtype == polars.String else series
        numbers = text.cast(polars.Float64, strict=False)
        if series.dtype.is_temporal():  # cast, a date would be its days since 1970
            numbers = polars.Series(name, [None] * len(series), dtype=polars.Float64)
        absent = series.is_null() | numbers.is_nan().fill_null(False)
        if series.dtype == polars.String:
            absent |= (text == "").fill_null(False)
        not_numbers = numbers.is_null() & ~absent
        # A column without any number was never meant as one: it is a class, a category, a date.
        advice = _NOT_NUMERIC if bool((not_numbers | absent).all()) else _LEAVE_EMPTY
        self.refuse(not_numbers, "{column} is {value}, not a number", name, None, advice)
        if fill_value is not None:
            numbers = numbers.set(absent, fill_value)
        else:
            self.refuse(series.is_null(), "{column} is missing", name, "a number in every row", remedy)
            self.refuse(absent, "{column} is {value}", name, "finite numbers, no NaN", remedy)
        self.refuse(numbers.is_infinite(), "{column} is {value}", name, "finite numbers, no NaN")
        return numbers, int(absent.sum())


_LEAVE_EMPTY: Final = "leave the cell empty where a value is missing"
_NOT_NUMERIC: Final = "declare by columns what it may hold, name it as label, or leave it out of features = [...]"


def find_table(folder: Path, stem: str) -> Path | None:
    """Return the csv or parquet file of a table in a folder, or None; DataError where both exist.

    Args:
        stem: the name of the file without its ending.
    """
    present = [path for path in (folder / f"{stem}.csv", folder / f"{stem}.parquet") if os.path.lexists(path)]
    # Refused: only their owner knows which of the two is current.
    if len(present) > 1:
        raise DataError(f"found both {stem}.csv and {stem}.parquet", where=str(folder), remedy="remove one")
    return present[0] if present else None


def require_table(folder: Path, stem: str) -> Path:
    """As `find_table`; DataError where neither file exists.

    Args:
        folder, stem: as there.
    """
    path = find_table(folder, stem)
    if path is None:
        raise DataError(f"found neither {stem}.csv nor {stem}.parquet", where=str(folder))
    return path


def read_table(path: Path) -> Table:
    """Read a csv (UTF-8, comma, one header line) or parquet file; DataError where any of it is damaged."""
    table = open_table(path, in_memory=None)
    if not isinstance(table.frame, polars.LazyFrame):
        return table
    with readable(path):
        return replace(table, frame=table.frame.collect())


def open_table(path: Path, *, in_memory: int | None = IN_MEMORY) -> Table:
    """As `read_table`, but the columns of a parquet file or a long csv stay on disk until they are read.

    Damage inside a column is found when that column is read.

    Args:
        in_memory: the largest csv that is read whole, in bytes; None: any.
    """
    require_file(path)
    size = path.stat().st_size
    if size == 0:
        raise DataError("is empty", where=str(path), allowed="a header line and rows")
    if path.suffix == ".parquet":
        return _open_parquet(path)
    if in_memory is not None and size > in_memory:
        with _readable_csv(path):
            lines = LongCsv.of(path)
        if lines is not None:
            _check_header(path)
            return Table(str(path), lines, path)
    return _read_csv(path)


def _open_parquet(path: Path) -> Table:
    with readable(path):
        # The footer alone: a parquet file of a kilobyte can declare more cells than there is memory.
        frame = polars.scan_parquet(path, glob=False, hive_partitioning=False)
        table = Table(str(path), frame, path)
        rows, schema = table.rows, frame.collect_schema()
    largest = min(LARGEST_TABLE, max(_SMALL_TABLE, _CELLS_A_BYTE * path.stat().st_size))
    if rows * len(schema) > largest:
        allowed = f"at most {largest:,} cells in a file of its size"
        what = f"holds {count_of(rows, 'row')} of {count_of(len(schema), 'column')}"
        raise DataError(what, where=str(path), allowed=allowed)
    check_columns(schema, str(path))
    return table


@contextlib.contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn every error of a damaged parquet file into DataError."""
    try:
        yield
    except BaseException as error:
        # Polars panics on some damaged files, and a panic is no subclass of Exception.
        panic = type(error).__name__ == "PanicException"
        if not (panic or isinstance(error, polars.exceptions.PolarsError | OSError | ValueError | OverflowError)):
            raise
        raise DataError(f"cannot be read ({_first_line(error)})", where=str(path)) from error


@contextlib.contextmanager
def _readable_csv(path: Path) -> Iterator[None]:
    """Turn every error of a damaged csv into DataError, with its line if that can be determined."""
    try:
        yield
    except (polars.exceptions.PolarsError, OSError, UnicodeDecodeError) as error:
        _refuse_bad_line(path)
        raise DataError(f"cannot be read ({_first_line(error)})", where=str(path)) from error


def _check_header(path: Path) -> None:
    with path.open("rb") as raw:
        head = raw.read(1 << 16)
    if b"\r" in head[:-1] and b"\n" not in head:
        allowed = "line feeds, with or without carriage returns"
        raise DataError("its lines end in carriage returns alone, as on old Macs", where=str(path), allowed=allowed)
    check_header(f"{path}, line 1", next((fields for _, fields in _records(path)), []))


def check_header(where: str, names: Sequence[str]) -> None:
    """Refuse names of columns that a csv must not have, by DataError.

    Args:
        where: their line, in messages.
    """
    _check_names(where, names)
    for number, name in enumerate(names, 1):
        # Otherwise ` label` would be a feature, and nobody would have a label.
        if name != name.strip():
            remedy = "separate fields by commas alone, in the header and in every row"
            what = f"column {number} is {name!r}"
            raise DataError(what, where=where, allowed="names without spaces around", remedy=remedy)


def _read_csv(path: Path) -> Table:
    with _readable_csv(path):
        frame = polars.read_csv(path, infer_schema=False, glob=False)
    _check_header(path)
    while frame.height and all(column[-1] is None for column in frame):  # blank lines at the end
        frame = frame[:-1]
    table = Table(str(path), frame, path)
    with path.open("rb") as raw:
        holds_nul = any(b"\0" in chunk for chunk in iter(lambda: raw.read(1 << 20), b""))
    for name in frame.columns if holds_nul else ():
        nul = frame[name].str.contains("\0", literal=True).fill_null(False)
        table.refuse(nul, "{column} is {value}", name, "no NUL character")
    return table


LARGEST_TABLE: Final = 20_000_000_000
"""The most cells of any table: a parquet file of a few bytes may declare any number of equal rows."""
_SMALL_TABLE: Final = 1 << 27
"""Cells that a file of any size may hold."""
_CELLS_A_BYTE: Final = 256
"""Cells that a larger table may hold for each byte of its file: real tables do not compress that well."""


def check_columns(columns: polars.Schema, where: str) -> None:
    """Refuse columns without a printable name of their own, or with lists or other nested values, by DataError.

    Args:
        where: the name of the table in messages.
    """
    _check_names(where, columns.names())
    for name, kind in columns.items():
        if kind.is_nested() or kind in (polars.Binary, polars.Object, polars.Unknown):
            raise DataError(f"column {name!r} holds {kind}", where=where, allowed="text, numbers, true or false")


def _check_names(where: str, names: Sequence[str]) -> None:
    """Refuse columns with an empty, unprintable or repeated name."""
    for number, name in enumerate(names, 1):
        if not name.strip():
            remedy = "name it or leave it out; pandas writes such a column unless told index=False"
            raise DataError(f"column {number} has no name", where=where, remedy=remedy)
        if not name.isprintable():
            encoding = "save the file as UTF-8, not UTF-16" if "\0" in name else separated(names)
            allowed = "names without control characters"
            raise DataError(f"column {number} is {name[:80]!r}", where=where, allowed=allowed, remedy=encoding)
    if len(set(names)) < len(names):
        repeated = Counter(names).most_common(1)[0][0]
        raise DataError(f"has two columns {repeated!r}", where=where)


def separated(names: Sequence[str]) -> str | None:
    """Return how to separate fields if the only name of a header holds semicolons or tabs; else None."""
    marks = {";": "semicolons", "\t": "tabs"}
    used = [word for mark, word in marks.items() if len(names) == 1 and mark in names[0]]
    return f"separate fields by commas, not {used[0]}" if used else None


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)[:200]


def _refuse_bad_line(path: Path) -> None:
    """Refuse the first line of a csv that is not UTF-8, or has more fields than the header."""
    with path.open("rb") as raw:
        for number, content in enumerate(raw, 1):
            try:
                content.decode("utf-8")
            except UnicodeDecodeError as error:
                remedy = "save the file as UTF-8"
                raise DataError("is not UTF-8 text", where=f"{path}, line {number}", remedy=remedy) from error
    header: list[str] = []
    for line, fields in _records(path):
        header = header or fields
        if len(fields) > len(header):
            what, allowed = f"has {count_of(len(fields), 'field')}", f"{len(header)}, as in the header"
            # With semicolons as separators, decimal commas look like more fields.
            raise DataError(what, where=f"{path}, line {line}", allowed=allowed, remedy=separated(header))


def _records(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The records of a csv from the header on, with the line each starts on."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as text:
        reader = csv.reader(text)
        start = 1
        started = False
        with contextlib.suppress(csv.Error):  # after an error no line number is certain
            for fields in reader:
                started = started or bool(fields)
                if started:
                    yield start, fields
                start = reader.line_num + 1
