"""Tables written row by row, so that a source may be larger than memory. Cells are copied and not checked."""

from __future__ import annotations

import csv
import datetime
import decimal
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final, TypeAlias

from graphveil.errors import DataError
from graphveil.files.writing import whole_file
from graphveil.graphs.declared.typed_columns import SEPARATOR
from graphveil.graphs.tables.headers import require_names
from graphveil.runtime.late import polars

WriteRow: TypeAlias = Callable[[Sequence[object]], None]
#: Raw data of people: only the owner may read it.
_OWNER_ONLY: Final = 0o600
_AS_TEXT: Final = (int, float, decimal.Decimal, datetime.date, datetime.time, uuid.UUID)
EDGES: Final = ("source", "target")


@dataclass(frozen=True)
class Imported:
    """What a source says beside its rows."""

    directed: bool | None = None  # None: it does not say
    notes: tuple[str, ...] = ()  # what was left out


@contextmanager
def new_table(folder: Path, stem: str, columns: Sequence[str], where: str) -> Iterator[WriteRow]:
    """Give a function that adds a row to a new csv.

    Args:
        folder, stem: of the csv; `stem` is its name without the ending.
        where: the source, in messages; DataError for names or values that no table may hold.
    """
    require_names(columns, where)
    with (
        whole_file(folder / f"{stem}.csv", mode=_OWNER_ONLY) as partial,
        partial.open("w", encoding="utf-8", newline="") as text,
    ):
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        numbers = count(1)

        def write_row(values: Sequence[object]) -> None:
            number = next(numbers)
            try:
                writer.writerow([_cell(value) for value in values])
            except TypeError as error:
                allowed = "text, numbers, true or false"
                raise DataError(f"holds a {error}", where=f"{where}, {stem[:-1]} {number}", allowed=allowed) from error

        yield write_row


def write_frames(folder: Path, frames: Mapping[str, polars.DataFrame]) -> None:
    """Write whole tables as parquet.

    Args:
        frames: stem -> table.
    """
    for stem, frame in frames.items():
        with whole_file(folder / f"{stem}.parquet", mode=_OWNER_ONLY) as partial:
            frame.write_parquet(partial)


def left_out_note(names: Iterable[str]) -> tuple[str, ...]:
    """Return a note on attributes of edges that are not copied."""
    text = ", ".join(names)
    return (f"left out of the edges: {text}",) if text else ()


def free_names(names: Sequence[str]) -> list[str]:
    """Return names of attributes as names of columns; an attribute called `id` is renamed."""
    return [f"{name}_attribute" if name == "id" else name for name in names]


def _cell(value: object) -> str:
    """A value as text; TypeError names an unsupported type."""
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple | set):
        return SEPARATOR.join(map(_cell, value))
    if isinstance(value, _AS_TEXT):
        return str(value)
    if not isinstance(value, str):
        raise TypeError(type(value).__name__)
    # JSON can hold lone surrogates, which UTF-8 cannot.
    return value.encode("utf-8", "replace").decode()
