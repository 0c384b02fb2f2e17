"""Tables of text read from csv or parquet, and errors that name the line an editor shows."""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from graphveil.errors import DataError

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True)
class Table:
    """One file: every column of a csv as text, of a parquet as stored."""

    path: Path
    frame: polars.DataFrame

    def where(self, row: int) -> str:
        """The place of data row `row` (from 0) for a message: a line of a csv, a row of a parquet."""
        if self.path.suffix == ".parquet":
            return f"{self.path}, row {row + 1}"
        lines = (line for line, _ in _records(self.path))
        line = next(islice(lines, row + 1, None), None)
        return f"{self.path}, line {line}" if line else f"{self.path}, row {row + 1}"

    def column(self, name: str) -> polars.Series:
        """A column by name.

        Raises:
            DataError: there is none; names those there are.
        """
        if name not in self.frame.columns:
            there = ", ".join(self.frame.columns[:12])
            raise DataError(f"has no column {name!r}", where=str(self.path), allowed=f"its columns are {there}")
        return self.frame[name]

    def refuse(self, bad: polars.Series, what: str, column: str, allowed: str | None = None) -> None:
        """Refuse the first row where `bad` is true; `what` may show its value as {value}.

        Raises:
            DataError: if any is; names file and line.
        """
        if not bad.any():
            return
        row = int(bad.arg_true()[0])
        text = what.format(column=column, value=repr(self.frame[column][row]))
        raise DataError(text, where=self.where(row), allowed=allowed)

    def text(self, name: str) -> polars.Series:
        """A column as text, null where missing; whole numbers stored as floats lose their point."""
        import polars

        series = self.column(name)
        if series.dtype.is_float() and bool((series.drop_nulls() == series.drop_nulls().round()).all()):
            series = series.cast(polars.Int64, strict=False)
        return series.cast(polars.String)

    def numbers(self, name: str) -> polars.Series:
        """A column as finite Float64.

        Raises:
            DataError: a value is missing, not a number, NaN or infinite; names file and line.
        """
        import polars

        series = self.column(name)
        self.refuse(series.is_null(), "{column} is missing", name, "a number in every row")
        text = series.str.strip_chars() if series.dtype == polars.String else series
        numbers = text.cast(polars.Float64, strict=False)
        self.refuse(numbers.is_null(), "{column} is {value}, not a number", name)
        self.refuse(~numbers.is_finite(), "{column} is {value}", name, "finite numbers, no NaN")
        return numbers


def find_table(folder: Path, stem: str, *, required: bool = True) -> Path | None:
    """The file `stem.csv` or `stem.parquet` in a folder; None when neither is there and none is required.

    Raises:
        DataError: both are there, or none although one is required.
    """
    found = [path for path in (folder / f"{stem}.csv", folder / f"{stem}.parquet") if path.is_file()]
    if len(found) > 1:
        raise DataError(f"both {stem}.csv and {stem}.parquet are there", where=str(folder), remedy="remove one")
    if not found and required:
        raise DataError(f"there is neither {stem}.csv nor {stem}.parquet", where=str(folder))
    return found[0] if found else None


def read_table(path: Path) -> Table:
    """Read a csv (UTF-8, comma, one header line) or parquet file.

    Raises:
        DataError: the file is empty or damaged, or a line has more fields than the header.
    """
    import polars

    if path.stat().st_size == 0:
        raise DataError("is empty", where=str(path), allowed="a header line and rows")
    try:
        if path.suffix == ".parquet":
            return Table(path, polars.read_parquet(path))
        frame = polars.read_csv(path, infer_schema=False)
    except (polars.exceptions.PolarsError, OSError, UnicodeDecodeError) as error:
        _name_line(path)
        raise DataError(f"cannot be read ({str(error).splitlines()[0]})", where=str(path)) from error
    names = next((fields for _, fields in _records(path)), [])
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise DataError(f"has two columns {repeated!r}", where=f"{path}, line 1")
    while frame.height and all(column[-1] is None for column in frame):  # blank lines at the end
        frame = frame[:-1]
    return Table(path, frame)


def _name_line(path: Path) -> None:
    """Name the first line of a csv that is not UTF-8 or has another number of fields than the header."""
    if path.suffix == ".parquet":
        return
    with path.open("rb") as raw:
        for number, content in enumerate(raw, 1):
            try:
                content.decode("utf-8")
            except UnicodeDecodeError as error:
                raise DataError("is not UTF-8 text", where=f"{path}, line {number}") from error
    width = 0
    for line, fields in _records(path):
        width = width or len(fields)
        if len(fields) > width:
            raise DataError(
                f"has {len(fields)} fields",
                where=f"{path}, line {line}",
                allowed=f"{width}, as in the header",
            )


def _records(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The records of a csv from the header on, with the line each starts on."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as text:
        reader = csv.reader(text)
        start = 1
        begun = False
        with contextlib.suppress(csv.Error):  # from there on no line can be told
            for fields in reader:
                begun = begun or bool(fields)
                if begun:
                    yield start, fields
                start = reader.line_num + 1
