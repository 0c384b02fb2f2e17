"""Tables of text read from csv or parquet, and errors that name the line an editor shows."""

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
    """Return "12" for "12.0" if every text that is not null is such a whole number; else the texts as they are."""
    if texts.len() == texts.null_count() or not texts.str.contains(_POINT).all():
        return texts
    return without_point(texts)


def without_point(texts: polars.Series) -> polars.Series:
    return texts.str.replace(_POINT, "$1")


def _written_otherwise(value: str, declared: Sequence[str]) -> str | None:
    """Return how to correct a cell that is not written as any declared name; None where no name is near."""
    if value.strip() in declared:
        return "remove the spaces around it"
    if (whole := re.sub(_POINT, r"\1", value)) == value:
        return None
    if whole in declared:
        return f"write {whole}: with a point it is taken only where every value of the column is such a whole number"
    return f"neither {value} nor {whole} is declared; pandas writes {whole} so in a column where some are missing"


#: Bytes of a csv that are read whole where a longer one would be read in parts.
IN_MEMORY: Final = 1 << 26


def some(names: Sequence[str]) -> str:
    """Return the first of many names, for a message."""
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")


@dataclass(frozen=True)
class Table:
    """One table: every column of a csv as text, of a parquet or a frame as stored."""

    title: str  # its name in messages: the path of its file, or what the caller calls it
    frame: polars.DataFrame | polars.LazyFrame | LongCsv  # its columns, in memory or on disk until they are asked for
    path: Path | None = None  # its file; None for a frame that was handed over
    row_names: Sequence[str] | None = None  # what messages call its rows, where they have better names than numbers

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
            # In quotation marks where a space is all that makes a name another one.
            there = ", ".join(column if column == column.strip() else repr(column) for column in names[:12])
            allowed = f"its columns are {there}"
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
            what: what is wrong; may show {column}, and as {value} what stands there.
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
        """Refuse lines of a csv with fewer fields than the header: cut off, they read as if the rest were empty."""
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
        for place, (line, fields) in enumerate(_records(self.path)):
            if len(fields) < width and place <= self.rows:
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
        """Return cells as an Enum of the declared names, null where one is empty.

        Whole numbers that stand with a point, as pandas writes them beside missing ones, are taken as whole ones where
        all of them are declared so.

        Args:
            cells: of the column `name`, as text.
            what: what a cell is not, in messages.

        Raises:
            DataError: another name; gives file and line.
        """
        names = polars.Enum(declared)
        for text in (cells, whole_texts(cells)):
            codes = text.cast(names, strict=False)
            if codes.null_count() == cells.null_count():
                return codes
        unknown = codes.is_null() & cells.is_not_null()
        remedy = _written_otherwise(str(cells[int(unknown.arg_true()[0])]), declared)
        self.refuse(unknown, f"{{column}} is {{value}}, {what}", name, some(declared), remedy)
        return codes

    def filled_numbers(
        self, name: str, stand: float | None = None, remedy: str | None = None
    ) -> tuple[polars.Series, int]:
        """Return a column as finite Float64, and how many were missing; DataError for another value, naming its line.

        Args:
            stand: what stands for a missing value; None: it is refused, with `remedy`.
        """
        series = self.column(name)
        text = series.str.strip_chars() if series.dtype == polars.String else series
        numbers = text.cast(polars.Float64, strict=False)
        if series.dtype.is_temporal():  # cast, a date would be its days since 1970
            numbers = polars.Series(name, [None] * len(series), dtype=polars.Float64)
        absent = series.is_null() | numbers.is_nan().fill_null(False)
        if series.dtype == polars.String:
            absent |= (text == "").fill_null(False)
        words = numbers.is_null() & ~absent
        # A column of words alone was never meant as numbers: it is a class, a category, a date.
        instead = _WORDS if bool((words | absent).all()) else _NO_WORD
        self.refuse(words, "{column} is {value}, not a number", name, None, instead)
        if stand is not None:
            numbers = numbers.set(absent, stand)
        else:
            self.refuse(series.is_null(), "{column} is missing", name, "a number in every row", remedy)
            self.refuse(absent, "{column} is {value}", name, "finite numbers, no NaN", remedy)
        self.refuse(numbers.is_infinite(), "{column} is {value}", name, "finite numbers, no NaN")
        return numbers, int(absent.sum())


_NO_WORD: Final = "leave the cell empty where a value is missing"
_WORDS: Final = "declare by columns what it may hold, name it as label, or leave it out of features = [...]"


def find_table(folder: Path, stem: str) -> Path | None:
    """Return the file `stem.csv` or `stem.parquet` in a folder, or None; DataError where both files are there.

    Args:
        folder, stem: where, and the name without its ending.
    """
    there = [path for path in (folder / f"{stem}.csv", folder / f"{stem}.parquet") if os.path.lexists(path)]
    # Refused, not chosen between: which of two tables is the newer one, only their owner knows.
    if len(there) > 1:
        raise DataError(f"found both {stem}.csv and {stem}.parquet", where=str(folder), remedy="remove one")
    return there[0] if there else None


def require_table(folder: Path, stem: str) -> Path:
    """As `find_table`; DataError where neither file is there.

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
    """As `read_table`, but the columns of a parquet file or a long csv stay on disk until they are asked for.

    Damage inside a column shows when that is read.

    Args:
        in_memory: bytes of a csv that are read whole; None: any number.
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
    most = min(LARGEST_TABLE, max(_ANY_TABLE, _CELLS_A_BYTE * path.stat().st_size))
    if rows * len(schema) > most:
        allowed = f"at most {most:,} cells in a file of its size"
        what = f"holds {count_of(rows, 'row')} of {count_of(len(schema), 'column')}"
        raise DataError(what, where=str(path), allowed=allowed)
    check_columns(schema, str(path))
    return table


@contextlib.contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn whatever damage a parquet file has into one error."""
    try:
        yield
    except BaseException as error:
        # Polars panics over some damaged files, which Python sees as something that is no Exception.
        panic = type(error).__name__ == "PanicException"
        if not (panic or isinstance(error, polars.exceptions.PolarsError | OSError | ValueError | OverflowError)):
            raise
        raise DataError(f"cannot be read ({_first_line(error)})", where=str(path)) from error


@contextlib.contextmanager
def _readable_csv(path: Path) -> Iterator[None]:
    """Turn whatever damage a csv has into one error, with the line where that can be told."""
    try:
        yield
    except (polars.exceptions.PolarsError, OSError, UnicodeDecodeError) as error:
        _name_line(path)
        raise DataError(f"cannot be read ({_first_line(error)})", where=str(path)) from error


def _check_header(path: Path) -> None:
    with path.open("rb") as raw:
        head = raw.read(1 << 16)
    if b"\r" in head[:-1] and b"\n" not in head:
        allowed = "line feeds, with or without carriage returns"
        raise DataError("its lines end in carriage returns alone, as on old Macs", where=str(path), allowed=allowed)
    check_header(f"{path}, line 1", next((fields for _, fields in _records(path)), []))


def check_header(where: str, names: Sequence[str]) -> None:
    """Refuse names of columns that a csv cannot have, by DataError.

    Args:
        where: their line, in messages.
    """
    _check_names(where, names)
    for place, name in enumerate(names, 1):
        # Left as it is, ` label` would be a feature, and nobody would have a label.
        if name != name.strip():
            remedy = "separate fields by commas alone, in the header and in every row"
            what = f"column {place} is {name!r}"
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
"""Cells that a table may hold: a parquet file of a few bytes may stand for any number of equal rows."""
_ANY_TABLE, _CELLS_A_BYTE = 1 << 27, 256
"""Cells that a file of any size may hold, and beyond them for each of its bytes: people's tables pack less well."""


def check_columns(columns: polars.Schema, where: str) -> None:
    """Refuse columns without a printable name of their own, or with lists or other nested values, by DataError.

    Args:
        where: its name in messages.
    """
    _check_names(where, columns.names())
    for name, kind in columns.items():
        if kind.is_nested() or kind in (polars.Binary, polars.Object, polars.Unknown):
            raise DataError(f"column {name!r} holds {kind}", where=where, allowed="text, numbers, true or false")


def _check_names(where: str, names: Sequence[str]) -> None:
    """Refuse columns without a name, with one that no screen can show, or with that of another."""
    for place, name in enumerate(names, 1):
        if not name.strip():
            remedy = "name it or leave it out; pandas writes such a column unless told index=False"
            raise DataError(f"column {place} has no name", where=where, remedy=remedy)
        if not name.isprintable():
            saved = "save the file as UTF-8, not UTF-16" if "\0" in name else separated(names)
            allowed = "names without control characters"
            raise DataError(f"column {place} is {name[:80]!r}", where=where, allowed=allowed, remedy=saved)
    if len(set(names)) < len(names):
        repeated = Counter(names).most_common(1)[0][0]
        raise DataError(f"has two columns {repeated!r}", where=where)


def separated(names: Sequence[str]) -> str | None:
    """Return how to separate fields where a header is read as one name that holds another separator."""
    marks = {";": "semicolons", "\t": "tabs"}
    used = [word for mark, word in marks.items() if len(names) == 1 and mark in names[0]]
    return f"separate fields by commas, not {used[0]}" if used else None


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)[:200]


def _name_line(path: Path) -> None:
    """Name the first line of a csv that is not UTF-8 or has another number of fields than the header."""
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
            # Decimal commas make fields of what semicolons separate.
            raise DataError(what, where=f"{path}, line {line}", allowed=allowed, remedy=separated(header))


def _records(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The records of a csv from the header on, with the line each starts on."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as text:
        reader = csv.reader(text)
        start = 1
        started = False
        with contextlib.suppress(csv.Error):  # from there on no line can be told
            for fields in reader:
                started = started or bool(fields)
                if started:
                    yield start, fields
                start = reader.line_num + 1
