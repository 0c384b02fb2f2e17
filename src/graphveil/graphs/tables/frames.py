"""Tables that a caller hands over: polars and pandas frames, mappings of columns, or the paths of files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from graphveil.errors import DataError, InputError
from graphveil.graphs.tables.tables import Table, check_columns, read_table

if TYPE_CHECKING:
    import polars


class PandasFrame(Protocol):
    """What is used of a pandas frame, so that pandas need not be installed."""

    @property
    def columns(self) -> Any: ...

    def __getitem__(self, name: Any, /) -> Any: ...


Frame = Mapping[str, object] | PandasFrame | str | os.PathLike[str]
"""A polars or pandas frame, a mapping of column names to values, or the path of a csv or parquet file."""

_FRAMES = "a polars or pandas frame, a dict of columns, or the path of a csv or parquet file"


def as_table(frame: Frame | polars.DataFrame, title: str) -> Table:
    """Return a frame as a table whose messages call it `title`.

    Args:
        frame: see `Frame`; columns keep their kinds.
        title: its name in messages; a file is called by its path.

    Raises:
        DataError: the file cannot be read, or a column holds what no table of people has.
        InputError: it is no frame.
    """
    import polars

    if isinstance(frame, str | os.PathLike):
        return read_table(_existing(Path(frame), title))
    # Collected once, here: a lazy frame could give other rows each time it is read.
    if isinstance(frame, polars.LazyFrame):
        frame = frame.collect()
    if not isinstance(frame, polars.DataFrame):
        return columns_table(_columns(frame, title), title)
    check_columns(frame.schema, title)
    return Table(title, frame)


def columns_table(columns: Mapping[str, object], title: str, row_names: Sequence[str] | None = None) -> Table:
    """Return columns of values as a table.

    Args:
        columns: name and values of each; title: the name of the table in messages.
        row_names: what messages call its rows; default: by number.

    Raises:
        DataError: columns are not equally long, or hold what no table of people has.
    """
    import polars

    series = {name: _column(title, name, values) for name, values in columns.items()}
    if len({len(values) for values in series.values()}) > 1:
        raise DataError("has columns of different lengths", where=title)
    frame = polars.DataFrame(series)
    check_columns(frame.schema, title)
    return Table(title, frame, row_names=row_names)


def _existing(path: Path, title: str) -> Path:
    if not path.exists():
        raise DataError(f"no file {str(path)!r}", where=title, allowed=_FRAMES)
    return path


def _columns(frame: object, title: str) -> dict[str, object]:
    """The columns of a mapping or pandas frame, each name once."""
    if isinstance(frame, Mapping):
        return {str(name): values for name, values in frame.items()}
    if not (hasattr(frame, "columns") and hasattr(frame, "iloc")):
        raise InputError(f"is a {type(frame).__name__}", where=title, allowed=_FRAMES)
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):  # a dict of them would lose one
        raise DataError(f"has two columns {next(name for name in names if names.count(name) > 1)!r}", where=title)
    return {name: frame.iloc[:, place] for place, name in enumerate(names)}


def _column(title: str, name: str, values: object) -> polars.Series:
    """One column as polars keeps it; what pandas and NumPy write for "missing" (None, NaN, NA) becomes null."""
    import polars

    if isinstance(values, polars.Series):
        return values.alias(name)
    if isinstance(values, list | tuple):  # NumPy would turn a missing number among texts into a text
        return _objects(title, name, list(values))
    # pandas' own missing marks and kinds go through NumPy, which needs no further package.
    array: np.ndarray = np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)
    if array.ndim != 1:
        raise DataError(f"column {name!r} has shape {array.shape}", where=title, allowed="one value a row")
    if array.dtype.kind in "biu":
        return polars.Series(name, array)
    if array.dtype.kind == "f":
        return polars.Series(name, array.astype(np.float64)).fill_nan(None)
    if array.dtype.kind not in "OUT":
        raise DataError(f"column {name!r} holds {array.dtype}", where=title, allowed="text, numbers, true or false")
    return _objects(title, name, array.tolist())


def _objects(title: str, name: str, values: list[Any]) -> polars.Series:
    """A column of Python values: of one kind, or else all as text."""
    import polars

    plain = [None if _is_missing(value) else _python(value) for value in values]
    kinds = {type(value) for value in plain if value is not None}
    if kinds <= {int, float} or kinds == {bool}:
        try:
            return polars.Series(name, plain, dtype=polars.Float64 if float in kinds else None)
        except (OverflowError, TypeError, polars.exceptions.PolarsError) as error:
            raise DataError(f"column {name!r} holds numbers that are too large", where=title) from error
    odd = kinds - {str, int, bool}
    if odd:
        kind = sorted(kind.__name__ for kind in odd)[0]
        raise DataError(f"column {name!r} holds a {kind}", where=title, allowed="text, numbers, true or false")
    return polars.Series(name, [None if value is None else str(value) for value in plain], dtype=polars.String)


def _python(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _is_missing(value: Any) -> bool:
    nan = isinstance(value, float) and value != value
    return value is None or nan or type(value).__name__ in ("NAType", "NaTType")
