"""The keys `columns` and `missing` of a declaration: what a column may hold, and what fills in for a missing value.

Fill values are declared, never computed from the data: a mean or a most frequent value would be a statistic of private
data that no budget covers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Final, TypeAlias

from graphveil.errors import DataError, InputError
from graphveil.files.columns import WORDS, Category, Column, Integer, Kind, Number, Ordinal, Tags, YesNo
from graphveil.files.serial import toml_lines
from graphveil.graphs.value.schema import OWN_CATEGORY
from graphveil.runtime.checks import is_number
from graphveil.runtime.words import count_of

_SHAPES: Final = (
    '{ number = [0, 120] }, { integer = [0, 20] }, "yes-no", { category = ["a", "b"], empty = true }, '
    '{ ordinal = ["low", "high"] } or { tags = ["a", "b"], most = 2 }'
)
#: Further keys of each kind; every kind may have `missing` too.
_FURTHER_KEYS: Final[Mapping[str, tuple[str, ...]]] = {"category": ("empty",), "tags": ("most",)}
YES_NO: Final = ("no", "yes")
"""The categories of a yes-no column in which a missing value is a category of its own."""


def parse_columns(value: object, where: str) -> tuple[Column, ...]:
    """Return the declared columns in order; DataError names a column whose declaration cannot be used.

    Args:
        value: name -> what the column may hold, as in a file, or as a `graphveil.files.columns` value.
        where: the declaration's name in messages.
    """
    if not isinstance(value, Mapping) or not value:
        raise DataError(f"columns is {value!r}", where=where, allowed=f"a table of names, each with {_SHAPES}")
    return tuple(Column(str(name), _parse_kind(str(name), declared, where)) for name, declared in value.items())


def _parse_kind(name: str, declared: object, where: str) -> Kind:
    if isinstance(declared, Number | Integer | YesNo | Category | Ordinal | Tags):
        return declared
    table = {key: value for key, value in declared.items() if key != "missing"} if isinstance(declared, Mapping) else {}
    if declared == YesNo.word or table == {YesNo.word: True}:
        return YesNo()
    # Exactly one word: with two kinds it would be unclear which range counts.
    words = [word for word in WORDS if word in table]
    if len(words) != 1 or set(table) - {words[0], *_FURTHER_KEYS.get(words[0], ())}:
        raise DataError(f"the column {name!r} is declared as {declared!r}", where=where, allowed=_SHAPES)
    try:
        return _kind_from(words[0], table)
    except (InputError, TypeError, ValueError) as error:
        what = error.what if isinstance(error, InputError) else f"{words[0]} is {table[words[0]]!r}"
        allowed = error.allowed if isinstance(error, InputError) else _SHAPES
        raise DataError(f"the column {name!r}: {what}", where=where, allowed=allowed) from error


def _kind_from(word: str, table: Mapping[str, object]) -> Kind:
    value = table[word]
    if not isinstance(value, list | tuple):
        raise ValueError(word)
    if word == Number.word:
        low, high = value
        return Number(low, high)
    if word == Integer.word:
        low, high = value
        return Integer(low, high)
    if word == Category.word:
        return Category(tuple(value), table.get("empty", False))  # type: ignore[arg-type]
    if word == Ordinal.word:
        return Ordinal(tuple(value))
    return Tags(tuple(value), table.get("most", len(value)))  # type: ignore[arg-type]


def _declared_kind(kind: Kind, missing: float | str | None = None) -> object:
    """Return what a declaration says of a column, which `parse_columns` reads back."""
    table: dict[str, object]
    if isinstance(kind, Number | Integer):
        table = {kind.word: [kind.low, kind.high]}
    elif isinstance(kind, Category):
        table = {kind.word: list(kind.values), **({"empty": True} if kind.empty else {})}
    elif isinstance(kind, Ordinal):
        table = {kind.word: list(kind.levels)}
    elif isinstance(kind, Tags):
        table = {kind.word: list(kind.vocabulary), "most": kind.most}
    else:
        table = {kind.word: True}
    if missing is None:
        return kind.word if isinstance(kind, YesNo) else table
    return {**table, "missing": missing}


def declared_columns(
    columns: Sequence[Column], missing: Mapping[str, float | str] = MappingProxyType({})
) -> dict[str, object]:
    """Return the table `columns` of a declaration, which `parse_columns` reads back.

    Args:
        columns: in order.
        missing: column -> fill value.
    """
    return {column.name: _declared_kind(column.kind, missing.get(column.name)) for column in columns}


FillValue: TypeAlias = float | str
Missing: TypeAlias = tuple[tuple[str, FillValue], ...]

_KEY: Final = "missing"
_LONGEST_LINE: Final = 160


def parse_missing(
    content: Mapping[str, object], columns: tuple[Column, ...], where: str
) -> tuple[Missing, tuple[Column, ...]]:
    """Return the fill values, and the columns: one whose missing values are a category of their own gets that category.

    Args:
        content: a declaration: its key `missing`, and that of each of its columns.
        columns: the declared columns.
        where: the declaration's name in messages.

    Raises:
        DataError: a fill value does not fit its column.
    """
    pairs = _missing_pairs(content, where)
    if not columns:
        return tuple((name, _number(name, value, where)) for name, value in pairs.items()), ()
    kinds = {column.name: column.kind for column in columns}
    for name in pairs:
        if name not in kinds:
            allowed = f"a table of declared columns: {', '.join(list(kinds)[:8])}"
            what = f"missing names {'all columns' if name == ALL else repr(name)}"
            raise DataError(what, where=where, allowed=allowed)
    missing = {name: _fill_value(name, kinds[name], value, where) for name, value in pairs.items()}
    own = {name for name, value in missing.items() if value == OWN_CATEGORY}
    return tuple(missing.items()), tuple(_with_own_category(c) if c.name in own else c for c in columns)


ALL: Final = "*"


def _missing_pairs(content: Mapping[str, object], where: str) -> dict[str, object]:
    """Column or pattern -> its declared fill value."""
    top, columns = content.get(_KEY), content.get("columns")
    pairs = {str(name): value for name, value in top.items()} if isinstance(top, Mapping) else {}
    if top is not None and not pairs:
        pairs = {ALL: top}
    for name, kind in columns.items() if isinstance(columns, Mapping) else ():
        if isinstance(kind, Mapping) and _KEY in kind:
            if str(name) in pairs:
                raise DataError(f"missing of the column {name!r} is declared twice", where=where, allowed="once")
            pairs[str(name)] = kind[_KEY]
    return pairs


def _number(name: str, value: object, where: str) -> float:
    if not (is_number(value) and abs(value) < float("inf")):
        subject = "missing" if name == ALL else f"missing of {name!r}"
        allowed = "a number inside the declared range, or a table of such numbers"
        raise DataError(f"{subject} is {value!r}", where=where, allowed=allowed)
    return float(value)


def _fill_value(name: str, kind: Kind, value: object, where: str) -> FillValue:
    """The fill value of a column, checked against what the column may hold."""
    if isinstance(kind, Tags):
        what = f"missing of the column {name!r} is {value!r}"
        raise DataError(what, where=where, allowed="no such key: an empty cell has no tags")
    if isinstance(kind, Number | Integer):
        inside = is_number(value) and kind.low <= value <= kind.high
        if inside and not (isinstance(kind, Integer) and value != int(value)):  # type: ignore[call-overload]
            return float(value)  # type: ignore[arg-type]
        noun = "a whole number" if isinstance(kind, Integer) else "a number"
        allowed = f"{noun} from {kind.low:g} to {kind.high:g}"
    else:
        word = {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
        if word in _words(kind):
            return word
        allowed = ", ".join(map(repr, _words(kind)[:8]))
    raise DataError(f"missing of the column {name!r} is {value!r}", where=where, allowed=allowed)


def _words(kind: Kind) -> tuple[str, ...]:
    if isinstance(kind, Ordinal):
        return kind.levels
    own = (OWN_CATEGORY,)
    if isinstance(kind, Category):
        # With `empty` a missing value is a category already.
        return own if kind.empty else own + kind.values
    return own + YES_NO


def _with_own_category(column: Column) -> Column:
    kind = column.kind
    return replace(
        column, kind=replace(kind, empty=True) if isinstance(kind, Category) else Category(YES_NO, empty=True)
    )


def fill_value_for(name: str, missing: Missing) -> FillValue | None:
    """Return the fill value of a column, from the first pattern that matches; else None.

    Args:
        missing: from `parse_missing`.
    """
    return next((value for pattern, value in missing if pattern == name or fnmatchcase(name, pattern)), None)


def filling_notes(fillings: Sequence[tuple[str, int, FillValue]]) -> tuple[str, ...]:
    """Return a note for each column with missing values; `fillings`: column, how many were missing, fill value."""
    entries = ((name, count, value if isinstance(value, str) else f"{value:g}") for name, count, value in fillings)
    return tuple(
        f"{count_of(count, 'missing value')} of {name}: {value}, as declared" for name, count, value in entries if count
    )


def column_remedy(column: Column, *, in_file: bool) -> str:
    """Return what to do about a missing value of a declared column.

    Args:
        in_file: whether it is declared in a file, else in Python.
    """
    fill_value = _example(column.kind)
    if not in_file:
        return f"declare {_FILL_ADVICE}missing={{{column.name!r}: {fill_value!r}}}"
    line = toml_lines({column.name: _declared_kind(column.kind, fill_value)})[0]
    if len(line) > _LONGEST_LINE:
        line = f"{toml_lines({column.name: 0})[0][:-1]}{{ ..., {toml_lines({_KEY: fill_value})[0]} }}"
    return f"declare in graph.toml {_FILL_ADVICE}{line}"


def range_remedy(name: str, low: float, high: float, *, own_range: bool, in_file: bool) -> str:
    """Return what to do about a missing number.

    Args:
        name, low, high: its column and range.
        own_range: whether the column has a range of its own.
        in_file: whether it is declared in a file, else in Python.
    """
    middle = (low + high) / 2
    fill_value = {name: middle} if own_range else middle
    if not in_file:
        return f"declare {_FILL_ADVICE}{_KEY}={fill_value!r}"
    return f"declare in graph.toml {_FILL_ADVICE}{toml_lines({_KEY: fill_value})[0]}"


_FILL_ADVICE: Final = "what stands for it, from what is public and not from the data, for example "


def _example(kind: Kind) -> FillValue:
    if isinstance(kind, Number):
        return (kind.low + kind.high) / 2
    if isinstance(kind, Integer):
        return (kind.low + kind.high) // 2
    if isinstance(kind, Ordinal):
        return kind.levels[len(kind.levels) // 2]
    return OWN_CATEGORY
