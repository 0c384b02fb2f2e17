"""What is publicly declared about a graph before anybody's data is read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from graphveil.errors import InputError
from graphveil.files.columns import Column, blocks_of, column_facts, column_from, require_columns, width_of
from graphveil.runtime.checks import is_number, is_whole

PRIVATE_PARTS = ("features", "labels", "edges")
"""The parts of a graph that a schema may declare private."""


#: How `source` begins where an extractor computed the features.
EXTRACTED = "declared with the feature extractor: "


def with_edges(private: Sequence[str]) -> tuple[str, ...]:
    """Return the private parts of a graph of which some edges are private, in order: edges among them."""
    return tuple(dict.fromkeys((*private, "edges")))


_LARGEST = 1e15
LARGEST_DIMENSION = 2**24
RANGES = (
    f"two finite numbers from -{_LARGEST:g} to {_LARGEST:g}, low < high, at least 1e-15 apart and a millionth of the "
    "larger one: features are kept in 32 bits, and squared in training"
)
DIMENSIONS = f"a whole number from 1 to {LARGEST_DIMENSION:,}"


def usable_range(low: float, high: float) -> bool:
    """Whether 32-bit numbers tell values between the bounds apart, and squares of them do not overflow."""
    numbers = is_number(low) and is_number(high)
    if not (numbers and abs(low) < math.inf and abs(high) < math.inf and low < high):
        return False
    size = max(abs(low), abs(high))
    # With bounds that float32 cannot tell apart every scaled feature would be 0 or 1, and noise would hide nothing.
    return size <= _LARGEST and high - low >= max(1e-15, 1e-6 * size)


def usable_dimension(value: object) -> bool:
    return is_whole(value) and 1 <= value <= LARGEST_DIMENSION


@dataclass(frozen=True)
class FeatureNumbers:
    """`dimension` numbers a node in [low, high], in place of a graph's features; `source`: where they come from."""

    dimension: int
    low: float
    high: float
    source: str


@dataclass(frozen=True)
class GraphSchema:
    """The public facts every mechanism is built from; nothing here is computed from private data.

    Args:
        dimension: d, features per node.
        low, high: declared bounds of every feature value.
        classes: class names in order; the index is the label. All of them, whether or not a node has them.
        directed: False when every edge is stored in both directions.
        private: the parts that belong to the people in the graph, out of `PRIVATE_PARTS`.
        source: where the declared range and classes come from.
        notes: what loading changed, with counts. Counts describe the data, so they are for the data owner.
        columns: what each column of a person's data may hold, where that is declared; features are then their encoded
            blocks, in 0..1.
        missing: what stands for a missing value, where that is declared: pairs of a column (or a pattern of columns)
            and a number or one of the column's values.

    Raises:
        InputError: a field that cannot be used, named.

    Example:
        >>> from graphveil.graphs import GraphSchema
        >>> schema = GraphSchema("clubs", 6, 0.0, 40.0, ("runs", "swims"), private=("features", "labels"))
        >>> schema.dimension, "edges" in schema.private
        (6, False)
    """

    name: str
    dimension: int
    low: float
    high: float
    classes: tuple[str, ...]
    directed: bool = False
    private: tuple[str, ...] = ("features", "labels")
    source: str = "declared by the caller"
    notes: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    missing: tuple[tuple[str, float | str], ...] = ()

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and self.name):
            raise _refuse("name", self.name, "a word")
        for field in ("classes", "private", "notes"):
            words = getattr(self, field)
            # A text is a sequence of texts too: "ab" would be two classes.
            if not isinstance(words, tuple | list) or not all(isinstance(value, str) for value in words):
                raise _refuse(field, words, "a tuple of words")
            object.__setattr__(self, field, tuple(words))
        if not isinstance(self.directed, bool):
            raise _refuse("directed", self.directed, "True or False")
        if not usable_dimension(self.dimension):
            raise _refuse("dimension", self.dimension, DIMENSIONS)
        if not usable_range(self.low, self.high):
            raise _refuse("low, high", (self.low, self.high), RANGES)
        if len(self.classes) < 2 or len(set(self.classes)) != len(self.classes):
            raise _refuse("classes", self.classes, "at least two different class names")
        unknown = [part for part in self.private if part not in PRIVATE_PARTS]
        if unknown:
            raise _refuse("private", unknown[0], ", ".join(PRIVATE_PARTS))
        if self.columns:
            # Mechanisms find a column's block by its position: with another width they would read another column.
            require_columns(self.columns)
            width = width_of(self.columns)
            if (self.dimension, self.low, self.high) != (width, 0, 1):
                features = f"{self.dimension} numbers in [{self.low:g}, {self.high:g}]"
                allowed = f"{width} in [0, 1], the width of all blocks"
                raise InputError(f"columns with features of {features}", where="GraphSchema", allowed=allowed)
        if not self.source:
            raise _refuse("source", self.source, "a sentence that says where the range comes from")

    def noted(self, *notes: str) -> GraphSchema:
        """The same schema with further notes."""
        return replace(self, notes=self.notes + notes)

    def derived(
        self,
        *,
        selected: Sequence[int] | None = None,
        numbers: FeatureNumbers | None = None,
        name: str | None = None,
        private: Sequence[str] | None = None,
        notes: tuple[str, ...] | None = None,
    ) -> GraphSchema:
        """Return the schema of a graph that is made from one with this schema: the only way to derive one.

        Args:
            selected: the features that stay, ascending places from 0 on; of declared columns whole blocks, or
                InputError.
            numbers: what replaces the features, which are then no longer what the columns declare.
            name, private, notes: in place of this schema's.

        Raises:
            InputError: a declared column would be cut.
        """
        changed: dict[str, Any] = {"name": name, "notes": notes}
        changed["private"] = None if private is None else tuple(private)
        schema = replace(self, **{key: value for key, value in changed.items() if value is not None})
        if selected is not None:
            columns = self._whole_columns(selected)
            names = {column.name for column in columns}
            # Without columns a pattern may stand for any of the features, whose names nobody keeps.
            missing = tuple(pair for pair in self.missing if pair[0] in names or not self.columns)
            schema = replace(schema, dimension=len(selected), columns=columns, missing=missing)
        if numbers is not None:
            schema = replace(schema, **asdict(numbers), columns=(), missing=())
        return schema

    def _whole_columns(self, selected: Sequence[int]) -> tuple[Column, ...]:
        """The declared columns whose blocks are kept."""
        features, columns = {int(feature) for feature in selected}, []
        for column, block in zip(self.columns, blocks_of(self.columns), strict=True):
            inside = features & set(range(block.start, block.stop))
            if inside and len(inside) < column.kind.width:
                what = f"{len(inside)} of the {column.kind.width} features of the column {column.name!r}"
                raise InputError(what, where="derived", allowed="whole columns")
            columns += [column] if inside else []
        return tuple(columns)

    @property
    def extracted(self) -> bool:
        """Whether an extractor made the features of raw data, see `methods.release.extractor`."""
        return self.source.startswith(EXTRACTED)

    @property
    def missing_words(self) -> tuple[str, ...]:
        """What stands for a missing value, a sentence each; public."""
        return tuple(_missing_words(name, value) for name, value in self.missing)


OWN_CATEGORY = "own category"
"""The word of a declaration in which a missing value is a category of its own."""


def _missing_words(name: str, value: float | str) -> str:
    text = value if isinstance(value, str) else f"{value:g}"
    subject = "of any feature" if name == "*" else f"of {name}"
    meant = "is an answer of its own" if value == OWN_CATEGORY else f"counts as {text}"
    return f"a missing value {subject} {meant}, as declared"


def schema_from(facts: Mapping[str, Any]) -> GraphSchema:
    """Return a schema saved with `schema_facts`."""
    lists = {name: tuple(facts[name]) for name in ("classes", "private", "notes")}
    columns = tuple(map(column_from, facts.get("columns", ())))
    missing = tuple((str(name), value) for name, value in facts.get("missing", ()))
    return GraphSchema(**{**facts, **lists, "columns": columns, "missing": missing})


def schema_facts(schema: GraphSchema) -> dict[str, Any]:
    """Return a schema as JSON facts, less its notes: they count what loading met in private data (values clipped)."""
    facts = asdict(replace(schema, notes=(), columns=()))
    columns = [column_facts(column) for column in schema.columns]
    declared = {"columns": columns, "missing": [list(pair) for pair in schema.missing]}
    del facts["columns"], facts["missing"]
    return {**facts, **{key: value for key, value in declared.items() if value}}


def _refuse(field: str, value: object, allowed: str) -> InputError:
    return InputError(f"{field} is {value!r}", where="GraphSchema", allowed=allowed)
