"""`graph.toml`: the public facts that the owner of a folder declares before any data is read."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TypeVar

from graphveil.errors import DataError
from graphveil.files.columns import Column
from graphveil.files.reading import read_toml
from graphveil.graphs.declared.column_declaration import ALL, Missing, parse_columns, parse_missing
from graphveil.graphs.tables.tables import find_table
from graphveil.graphs.value.schema import (
    DIMENSIONS,
    PRIVATE_PARTS,
    RANGES,
    GraphSchema,
    usable_dimension,
    usable_range,
    with_edges,
)
from graphveil.runtime.checks import is_number, require_known

FILE = "graph.toml"

_T = TypeVar("_T")


@dataclass(frozen=True)
class Declaration:
    """The content of a `graph.toml`; None where a column is not declared.

    `ranges` has (column pattern, low, high) for each group of columns, whose values are scaled to 0..1.
    """

    private: tuple[str, ...]  # the private parts, out of `PRIVATE_PARTS`
    classes: tuple[str, ...]  # all class names in order
    low: float  # with high: bounds of every feature; 0 and 1 when `ranges` scales them
    high: float
    ranges: tuple[tuple[str, float, float], ...]
    directed: bool = False
    out_of_range: str = "refuse"  # "refuse" or "clip" feature values outside the range
    name: str | None = None
    id: str = "id"  # with label, split: columns of the nodes file
    label: str | None = None
    label_separator: str | None = None  # between the names where a node has several labels; None: one label
    split: str | None = None
    features: tuple[str, ...] | None = None  # feature columns of the nodes file; None for all the others
    columns: tuple[Column, ...] = ()  # feature columns with what each may hold; none: all are numbers in the range
    missing: Missing = ()  # column or pattern, and its fill value; none: missing values are refused
    source: str = "source"  # with target: columns of the edges file
    target: str = "target"
    dimension: int | None = None  # d of the sparse features file
    public_edges: str | None = None  # column of the edges file: which edges everybody knows; None: none
    private_nodes: str | None = None  # column of the nodes file: who may have private edges; None: everybody
    release: bool = False  # whether the folder was published and holds a `release.json`

    @property
    def clips(self) -> bool:
        return self.out_of_range == "clip"

    def features_in(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return the feature columns of a nodes file: the declared ones, or all columns without another role."""
        reserved = {self.id, self.label or "label", self.split, self.private_nodes}
        return self.features or tuple(name for name in columns if name not in reserved)

    def schema(self, name: str, dimension: int, *, source: str, notes: tuple[str, ...]) -> GraphSchema:
        """Return the schema of a graph of this declaration.

        Args:
            name: of the graph, unless it is declared.
            dimension, source, notes: as of `GraphSchema`.
        """
        return GraphSchema(
            self.name or name,
            dimension,
            self.low,
            self.high,
            self.classes,
            self.directed,
            self.private,
            source=source,
            notes=notes,
            columns=self.columns,
            missing=self.missing,
        )


_REQUIRED = ("private", "range", "classes", "directed")
#: The fields that come from these four keys; every other field is a key itself.
_FROM_REQUIRED = {"private", "low", "high", "ranges", "classes", "directed"}
KEYS = (*_REQUIRED, *(field.name for field in fields(Declaration) if field.name not in _FROM_REQUIRED))


def read_declaration(path: Path) -> Declaration:
    """Read and check a `graph.toml`; DataError where it is absent or no TOML, or a key is missing, unknown or wrong."""
    where = str(path)
    try:
        content = read_toml(path)
    except FileNotFoundError as error:
        raise _undeclared(path.parent) from error
    # Unknown keys are refused: with a misspelt `private`, a part would be left unprotected.
    require_known(content, KEYS, where, refusal=DataError)
    for key in _REQUIRED:
        if key not in content and not (key == "range" and "columns" in content):
            raise DataError(f"{key} is not declared", where=where, remedy=_EXAMPLE)
    return parse_declaration(content, where)


_EXAMPLE = 'write for example: private = ["features", "labels"], range = [0, 1], classes = ["a", "b"], directed = false'
#: Other folders that graphveil writes, by a file in them: what they are, and which commands take them.
_NO_GRAPHS = {
    "collection.json": (
        "an exported collection: reports, whose true values nobody holds",
        "graphveil train METHOD DATA",
    ),
    "result.json": ("a run", "graphveil predict, attack, report or compare-runs"),
    "organiser.key": ("an organiser's folder of a collection", "graphveil collect"),
    "agreement.toml": ("a party's folder of a federation", "graphveil federation"),
}


def _undeclared(folder: Path) -> DataError:
    """Return the refusal of a folder without a `graph.toml`; it says what the folder is where graphveil wrote it."""
    for file, (what, commands) in _NO_GRAPHS.items():
        if (folder / file).is_file():
            remedy = f"name a folder with {FILE}; this is for {commands}"
            return DataError(f"is {what}, and no graph", where=str(folder), remedy=remedy)
    draft_advice = f"graphveil data init {shlex.quote(str(folder))} writes one from names of columns and your answers"
    remedy = _EXAMPLE if find_table(folder, "nodes") is None else draft_advice
    return DataError("no graph.toml found", where=str(folder / FILE), remedy=remedy)


def parse_declaration(content: Mapping[str, object], where: str) -> Declaration:
    """Check the keys of a declaration; `private`, `classes` and one of `range` and `columns` are required.

    Args:
        content: the keys of a `graph.toml` and their values; DataError refuses a wrong one.
    """
    private = _words(content, "private", where)
    unknown = [part for part in private if part not in PRIVATE_PARTS]
    if unknown:
        raise DataError(f"private names {unknown[0]!r}", where=where, allowed=", ".join(PRIVATE_PARTS))
    # Whoever declares public edges means the rest to be private; a release has no private edges.
    if ("public_edges" in content or "private_nodes" in content) and not content.get("release"):
        private = with_edges(private)
    classes = _words(content, "classes", where)
    # Declared and never counted from labels: the width of an output must not reveal which classes occur.
    if len(classes) < 2 or len(set(classes)) != len(classes) or "" in classes:
        raise DataError(f"classes are {list(classes)}", where=where, allowed="at least two different names")
    missing, columns = parse_missing(content, _typed_columns(content, where), where)
    low, high, ranges = (0.0, 1.0, ()) if columns else _ranges(content["range"], where)
    if not columns:
        _refuse_outside(missing, ranges or ((ALL, low, high),), where)
    policy = content.get("out_of_range", "refuse")
    if policy not in ("refuse", "clip"):
        raise DataError(f"out_of_range is {policy!r}", where=where, allowed="refuse, clip")
    declaration = Declaration(
        private=private,
        classes=classes,
        low=low,
        high=high,
        ranges=ranges,
        directed=_truth(content, "directed", where),
        out_of_range=str(policy),
        name=_word(content, "name", where),
        id=_word(content, "id", where) or "id",
        label=_word(content, "label", where),
        label_separator=_word(content, "label_separator", where),
        split=_word(content, "split", where),
        features=_words(content, "features", where) if "features" in content else None,
        columns=columns,
        missing=missing,
        source=_word(content, "source", where) or "source",
        target=_word(content, "target", where) or "target",
        dimension=_checked(content, "dimension", where, DIMENSIONS, usable_dimension, None),
        public_edges=_word(content, "public_edges", where),
        private_nodes=_word(content, "private_nodes", where),
        release=_truth(content, "release", where),
    )
    _refuse_shared_columns(declaration, where)
    return declaration


def _typed_columns(content: Mapping[str, object], where: str) -> tuple[Column, ...]:
    """The columns whose kinds are declared; refused beside a key that says the same of all columns."""
    if "columns" not in content:
        return ()
    for key in ("range", "features", "dimension"):
        if key in content:
            raise DataError(f"columns and {key} are both declared", where=where, remedy=f"remove {key}")
    return parse_columns(content["columns"], where)


def _refuse_shared_columns(declared: Declaration, where: str) -> None:
    """Refuse a column with two roles, and feature columns without a name or listed twice."""
    nodes, edges = (
        {key: getattr(declared, key) for key in keys}
        for keys in (("id", "label", "split", "private_nodes"), ("source", "target", "public_edges"))
    )
    for columns in (nodes, edges):
        named = [(key, name) for key, name in columns.items() if name is not None]
        for index, (key, name) in enumerate(named):
            for other, same in named[index + 1 :]:
                if name == same:
                    raise DataError(f"{key} and {other} are both the column {name!r}", where=where, remedy=_TWO_COLUMNS)
    for name in declared.features or [column.name for column in declared.columns]:
        if not name.strip():
            raise DataError("features names a column without a name", where=where)
        for key, reserved in nodes.items():
            if name == reserved:
                raise DataError(
                    f"features names {name!r}, which is the column of {key}", where=where, remedy=_TWO_COLUMNS
                )
    if len(set(declared.features or ())) < len(declared.features or ()):
        raise DataError("features names a column twice", where=where, allowed="each column once")


_TWO_COLUMNS = "name two different columns"


def _checked(
    content: Mapping[str, object], key: str, where: str, allowed: str, fits: Callable[[object], bool], default: _T
) -> _T:
    value = content.get(key, default)
    if value is not default and not fits(value):
        raise DataError(f"{key} is {value!r}", where=where, allowed=allowed)
    return value  # type: ignore[return-value]


def _truth(content: Mapping[str, object], key: str, where: str) -> bool:
    return _checked(content, key, where, "true or false", lambda value: isinstance(value, bool), False)


def _word(content: Mapping[str, object], key: str, where: str) -> str | None:
    return _checked(content, key, where, "a word", lambda value: isinstance(value, str) and value != "", None)


def _words(content: Mapping[str, object], key: str, where: str) -> tuple[str, ...]:
    values = content[key]
    if not isinstance(values, list) or not all(
        isinstance(value, str | int) and not isinstance(value, bool) for value in values
    ):
        raise DataError(f"{key} is {values!r}", where=where, allowed='a list such as ["a", "b"]')
    return tuple(str(value) for value in values)


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number with more than 308 digits
        return math.inf


def _ranges(value: object, where: str) -> tuple[float, float, tuple[tuple[str, float, float], ...]]:
    if isinstance(value, dict) and value:
        return 0.0, 1.0, tuple((str(group), *_pair(pair, where)) for group, pair in value.items())
    return *_pair(value, where), ()


def _refuse_outside(missing: Missing, ranges: tuple[tuple[str, float, float], ...], where: str) -> None:
    """Refuse a fill value that no range of its columns contains."""
    for name, value in missing:
        candidates = [(low, high) for pattern, low, high in ranges if pattern == name or ALL in (pattern, name)]
        if candidates and not any(low <= float(value) <= high for low, high in candidates):
            allowed = " or ".join(f"{low:g} to {high:g}" for low, high in candidates)
            raise DataError(f"missing is {value:g}", where=where, allowed=f"{allowed}, the declared range")


def _pair(value: object, where: str) -> tuple[float, float]:
    numbers = value if isinstance(value, list) else []
    if len(numbers) != 2 or not all(map(is_number, numbers)):
        allowed = "[low, high], or one such pair for each group of columns"
        raise DataError(f"range is {value!r}", where=where, allowed=allowed)
    low, high = (_float(number) for number in numbers)
    if not usable_range(low, high):
        raise DataError(f"range is [{low:g}, {high:g}]", where=where, allowed=RANGES)
    return low, high
