"""The public types of columns of people's data, and how each is encoded.

A column becomes a block of numbers in [0, 1]: a number its position in the range, a category one-hot, tags a 1 for
each. The blocks, side by side in the order of the columns, are the matrix that mechanisms and networks read.

No data is read here. Every room may import this: mechanisms are built from it and graphs declare it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Final, TypeAlias

from graphveil.errors import InputError
from graphveil.runtime.checks import is_number, is_whole

# Bounds estimates, which have a column for each value, and reports, which may name most of them.
MOST_VALUES: Final = 4096


@dataclass(frozen=True)
class Number:
    """A number in [low, high], encoded as its position in the range."""

    low: float
    high: float
    word: ClassVar[str] = "number"
    width: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not (_finite(self.low) and _finite(self.high) and self.low < self.high):
            raise _refuse(self.word, (self.low, self.high), "[low, high], finite, the lower first")


@dataclass(frozen=True)
class Integer:
    """A whole number from low to high, encoded as its position in the range."""

    low: int
    high: int
    word: ClassVar[str] = "integer"
    width: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not (_exact_whole(self.low) and _exact_whole(self.high) and self.low < self.high):
            raise _refuse(self.word, (self.low, self.high), "[low, high], whole numbers, the lower first")


@dataclass(frozen=True)
class YesNo:
    """Yes or no, encoded as 1 or 0."""

    word: ClassVar[str] = "yes-no"
    width: ClassVar[int] = 1


@dataclass(frozen=True)
class Category:
    """One of 2 to 4096 values without an order, encoded as one 1 among zeros."""

    values: tuple[str, ...]  # all of them, also those that nobody has
    empty: bool = False  # whether an empty cell is an answer too, encoded as zeros
    word: ClassVar[str] = "category"

    def __post_init__(self) -> None:
        _require_names(self.word, self.values, 2)
        if not isinstance(self.empty, bool):
            raise _refuse("empty", self.empty, "true or false")

    @property
    def width(self) -> int:
        return len(self.values)

    @property
    def answers(self) -> int:
        """How many different answers there are, an empty cell included where that is allowed."""
        return len(self.values) + self.empty


@dataclass(frozen=True)
class Ordinal:
    """One of several levels in an order, encoded as equal steps from 0 to 1."""

    levels: tuple[str, ...]
    word: ClassVar[str] = "ordinal"
    width: ClassVar[int] = 1

    def __post_init__(self) -> None:
        _require_names(self.word, self.levels, 2)


@dataclass(frozen=True)
class Tags:
    """At most `most` words out of a vocabulary, encoded as a 1 for each."""

    vocabulary: tuple[str, ...]
    most: int
    word: ClassVar[str] = "tags"

    def __post_init__(self) -> None:
        _require_names(self.word, self.vocabulary, 1)
        if not (_exact_whole(self.most) and 1 <= self.most <= len(self.vocabulary)):
            raise _refuse("most", self.most, f"a whole number from 1 to {len(self.vocabulary)}")

    @property
    def width(self) -> int:
        return len(self.vocabulary)


Kind: TypeAlias = Number | Integer | YesNo | Category | Ordinal | Tags

_KINDS: Final[tuple[type[Any], ...]] = (Number, Integer, YesNo, Category, Ordinal, Tags)
WORDS: Final = tuple(kind.word for kind in _KINDS)
"""The words by which declarations name the kinds."""


@dataclass(frozen=True)
class Column:
    """A column and what it may hold, which is public and never read off the data."""

    name: str
    kind: Kind

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and self.name.strip()):
            raise _refuse("the name of a column", self.name, "a word")
        if not isinstance(self.kind, _KINDS):
            raise _refuse(self.name, self.kind, ", ".join(WORDS))


def blocks_of(columns: Sequence[Column]) -> tuple[slice, ...]:
    """Return the position of each column's block among the encoded columns.

    >>> blocks_of([Column("age", Number(0, 120)), Column("team", Category(("red", "blue"))), Column("vip", YesNo())])
    (slice(0, 1, None), slice(1, 3, None), slice(3, 4, None))
    """
    ends = [0]
    for column in columns:
        ends.append(ends[-1] + column.kind.width)
    return tuple(slice(start, stop) for start, stop in itertools.pairwise(ends))


def width_of(columns: Sequence[Column]) -> int:
    """Return how many encoded columns there are."""
    return sum(column.kind.width for column in columns)


def column_facts(column: Column) -> dict[str, Any]:
    """Return a column as JSON facts."""
    return {"name": column.name, "kind": column.kind.word, **asdict(column.kind)}


def column_from(facts: Mapping[str, Any]) -> Column:
    """Return a column saved with `column_facts`; KeyError, TypeError or InputError for anything else."""
    kind = next(kind for kind in _KINDS if kind.word == facts["kind"])
    parts = {key: value for key, value in facts.items() if key not in ("name", "kind")}
    return Column(
        facts["name"], kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in parts.items()})
    )


def require_columns(columns: Sequence[Column]) -> None:
    """Refuse two columns of one name with InputError."""
    names = [column.name for column in columns]
    repeated = [name for index, name in enumerate(names) if name in names[:index]]
    if repeated:
        raise InputError(f"the column {repeated[0]!r} is declared twice", where="columns", allowed="each name once")


def _require_names(kind: str, names: object, least: int) -> None:
    listed = names if isinstance(names, tuple) else ()
    valid = all(isinstance(name, str) and name for name in listed)
    if not (valid and least <= len(listed) <= MOST_VALUES and len(set(listed)) == len(listed)):
        raise _refuse(kind, names, f"{least} to {MOST_VALUES} different names")


def _finite(value: object) -> bool:
    return is_number(value) and math.isfinite(value)


def _exact_whole(value: object) -> bool:
    # Features are float32: beyond 2^24 two neighbouring whole numbers would be equal.
    return is_whole(value) and abs(value) <= 2**24


def _refuse(kind: str, value: object, allowed: str) -> InputError:
    text = repr(value)
    return InputError(f"{kind} is {text[:60]}{'...' if len(text) > 60 else ''}", where="columns", allowed=allowed)
