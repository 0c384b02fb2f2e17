"""The key `columns` of a declaration: the name of each column and what it may hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeAlias

from graphveil.errors import DataError, InputError
from graphveil.files.columns import WORDS, Category, Column, Integer, Kind, Number, Ordinal, Tags, YesNo

Declared: TypeAlias = dict[str, object]
_SHAPES: Final = (
    '{ number = [0, 120] }, { integer = [0, 20] }, "yes-no", { category = ["a", "b"], empty = true }, '
    '{ ordinal = ["low", "high"] } or { tags = ["a", "b"], most = 2 }'
)
#: What else may stand beside the word of a kind; `missing` may beside each, see `graphs.declared.missing`.
_BESIDE: Final[Mapping[str, tuple[str, ...]]] = {"category": ("empty",), "tags": ("most",)}
YES_NO: Final = ("no", "yes")
"""The values of a column of yes and no, where nothing is a third."""


def parse_columns(value: object, where: str) -> tuple[Column, ...]:
    """Return the declared columns in order; DataError names a column that holds something else.

    Args:
        value: name -> what the column may hold, as in a file, or as a `graphveil.files.columns` value.
        where: the declaration's name in messages.
    """
    if not isinstance(value, Mapping) or not value:
        raise DataError(f"columns is {value!r}", where=where, allowed=f"a table of names, each with {_SHAPES}")
    return tuple(Column(str(name), _kind(str(name), declared, where)) for name, declared in value.items())


def _kind(name: str, declared: object, where: str) -> Kind:
    if isinstance(declared, Number | Integer | YesNo | Category | Ordinal | Tags):
        return declared
    table = {key: value for key, value in declared.items() if key != "missing"} if isinstance(declared, Mapping) else {}
    if declared == YesNo.word or table == {YesNo.word: True}:
        return YesNo()
    # One word says the kind: with two it would be open which range counts.
    words = [word for word in WORDS if word in table]
    beside = _BESIDE.get(words[0], ()) if len(words) == 1 else ()
    if len(words) != 1 or set(table) - {words[0], *beside}:
        raise DataError(f"the column {name!r} is declared as {declared!r}", where=where, allowed=_SHAPES)
    try:
        return _built(words[0], table)
    except (InputError, TypeError, ValueError) as error:
        what = error.what if isinstance(error, InputError) else f"{words[0]} is {table[words[0]]!r}"
        allowed = error.allowed if isinstance(error, InputError) else _SHAPES
        raise DataError(f"the column {name!r}: {what}", where=where, allowed=allowed) from error


def _built(word: str, table: Mapping[str, object]) -> Kind:
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


def declared_kind(kind: Kind, missing: float | str | None = None) -> object:
    """Return what a declaration says of a column, which `parse_columns` reads back.

    Args:
        kind: what the column may hold.
        missing: what stands for a missing value, where that is declared.
    """
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


def declared_columns(columns: Sequence[Column], missing: Mapping[str, float | str] = MappingProxyType({})) -> Declared:
    """Return the table `columns` of a declaration: name -> what `declared_kind` says.

    Args:
        columns: in order; missing: column -> what stands for a missing value.
    """
    return {column.name: declared_kind(column.kind, missing.get(column.name)) for column in columns}
