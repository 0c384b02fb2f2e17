"""What a collection may ask, and of whom: the declaration of a data set, or of a folder without data."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from graphveil.device.errors import DeviceError
from graphveil.device.people.canonical_id import require_distinct
from graphveil.errors import InputError
from graphveil.files.columns import Category, Column, Integer, Kind, Number, Ordinal, Tags, YesNo, width_of
from graphveil.graphs.declared.declaration import FILE, Declaration, read_declaration
from graphveil.graphs.load import is_name, load_parts
from graphveil.graphs.tables.headers import read_header
from graphveil.graphs.tables.tables import find_table
from graphveil.graphs.value.parts import GraphParts
from graphveil.graphs.value.schema import GraphSchema


@dataclass(frozen=True)
class Subject:
    """What may be asked, and of whom.

    Args:
        names: of the columns, as people read them.
        ids: of everybody, in order.
        parts: the graph, if any, for plans.
    """

    schema: GraphSchema
    names: tuple[str, ...]
    ids: tuple[str, ...]
    parts: GraphParts | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        # A person's number, on the wire and in every neighbour list, is their index in this list.
        if not self.ids:
            raise InputError("there is no id", where=self.schema.name, allowed="one for each person")
        require_people(self.ids, self.schema.name)


def require_people(ids: Sequence[str], where: str) -> None:
    """Raise InputError where a person is listed twice, even in two spellings of one id, or no device reads an id.

    Args:
        ids: of everybody.
    """
    try:
        require_distinct(ids)
    except DeviceError as error:
        alike = "ids that differ in more than case, spaces, accents written apart and letters that nobody sees"
        raise InputError(
            error.detail, where=where, allowed=alike, remedy="give each person one id that is theirs alone"
        ) from error


def subject_of(data: str, root: Path | None = None, people: Path | None = None) -> Subject:
    """Return what may be asked about a data set; InputError for no such data, or no people.

    Args:
        data: its name or folder; a folder needs only a `graph.toml`, since only its declaration is used.
        people: a file with an id a line, or a csv file with a column of ids; None: the nodes of the data.
    """
    folder = Path(data)
    has_declaration = not is_name(data) and (folder / FILE).is_file()
    declared = read_declaration(folder / FILE) if has_declaration else None
    # A collection begins before there is any data, so a declaration must be enough.
    if declared is not None and find_table(folder, "nodes") is None:
        columns, parts = declared.columns, None
        dimension = width_of(columns) if columns else len(declared.features or ()) or declared.dimension
        if dimension is None:
            remedy = "add features = [...], or [columns]; where none are asked for, dimension = 1 and range = [0, 1]"
            raise InputError("no features are declared", where=str(folder / FILE), remedy=remedy)
        schema = GraphSchema(
            declared.name or folder.resolve().name,
            dimension,
            declared.low,
            declared.high,
            declared.classes,
            directed=declared.directed,
            private=declared.private,
            source=f"declared by the owner in {FILE}",
            columns=columns,
        )
    else:
        parts = load_parts(data, root)
        schema = parts.schema
    if people is not None:
        ids = _listed(people, "id" if declared is None else declared.id)
    elif parts is None:
        raise InputError(f"{folder} lists nobody", where="--ids", remedy="name a file with the ids of the people")
    else:
        ids = tuple(map(str, range(parts.num_nodes) if parts.ids is None else parts.ids))
    return Subject(schema, _names(schema, declared, folder), ids, parts)


def _listed(path: Path, heading: str) -> tuple[str, ...]:
    if not path.is_file():
        raise InputError(f"{path} is no file", where="--ids", allowed="a text with an id a line, or a csv file")
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            # An id may hold a comma, so the file's name decides and not its content.
            if path.suffix != ".csv":
                return tuple(line.strip() for line in file if line.strip())
            rows = csv.DictReader(file)
            # The heading of the nodes file serves a list of people too.
            column = next((name for name in (heading, "id") if name in (rows.fieldnames or ())), None)
            if column is None:
                allowed = " or ".join(dict.fromkeys((heading, "id")))
                raise InputError("no column of ids", where=str(path), allowed=f"a csv file with a column {allowed}")
            return tuple(row[column] for row in rows)
    except UnicodeDecodeError as error:
        raise InputError("is not UTF-8 text", where=str(path)) from error


def _names(schema: GraphSchema, declared: Declaration | None, folder: Path) -> tuple[str, ...]:
    if schema.columns:
        return tuple(name for column in schema.columns for name in _names_of(column))
    if declared is not None:
        nodes = find_table(folder, "nodes")
        # None where features have a file of their own.
        listed = () if nodes is None or find_table(folder, "features") is not None else read_header(nodes).columns
        features = declared.features_in(listed)
        if len(features) == schema.dimension:
            return tuple(_named(name, declared) for name in features)
    return tuple(f"feature {index}" for index in range(schema.dimension))


def _names_of(column: Column) -> Iterator[str]:
    """Yield the names of the numbers that encode a column: its values, where each value has a number of its own."""
    # Shown to people before they answer, so each name should say what its number stands for.
    kind = column.kind
    values = kind.values if isinstance(kind, Category) else kind.vocabulary if isinstance(kind, Tags) else ()
    if kind.width == 1:
        yield f"{column.name}{_scale(kind)}"
    else:
        for index in range(kind.width):
            yield f"{column.name}: {values[index] if index < len(values) else index}"


def _named(name: str, declared: Declaration) -> str:
    # Columns with a range of their own are scaled to 0 and 1; a range for all columns is the task's own.
    bounds = next((Number(*pair) for pattern, *pair in declared.ranges if fnmatchcase(name, pattern)), None)
    return name if bounds is None else f"{name}{_scale(bounds)}"


def _scale(kind: Kind) -> str:
    """Return what 0 and 1 mean in a column that is asked for as a number from 0 to 1."""
    # Without a comma, which separates names and numbers where people type them.
    if isinstance(kind, YesNo):
        return " (no 0 / yes 1)"
    if isinstance(kind, Ordinal):
        last = max(len(kind.levels) - 1, 1)
        return f" ({' / '.join(f'{level} {index / last:.4g}' for index, level in enumerate(kind.levels))})"
    if isinstance(kind, Number | Integer) and (kind.low, kind.high) != (0, 1):
        return f" ({kind.low:.15g} to {kind.high:.15g} as 0 to 1)"
    return ""
