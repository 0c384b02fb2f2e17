"""The key `columns` of a declaration: the name of each column and what it may hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from graphveil.columns import (
    WORDS,
    Category,
    Column,
    Integer,
    Kind,
    Number,
    Ordinal,
    Tags,
    YesNo,
)
from graphveil.errors import DataError, InputError

_SHAPES: Final = (
    '{ number = [0, 120] }, { integer = [0, 20] }, "yes-no", { category = ["a", "b"], empty = true }, '
    '{ ordinal = ["low", "high"] } or { tags = ["a", "b"], most = 2 }'
)
#: What else may stand beside the word of a kind.
_BESIDE: Final[Mapping[str, tuple[str, ...]]] = {"category": ("empty",), "tags": ("most",)}


def parse_columns(value: object, where: str) -> tuple[Column, ...]:
    """Return the declared columns in order.

    Args:
        value: a table of names, each with what the column may hold: as in a file, or as a `graphveil.columns` value.
        where: the declaration's name in messages.

    Raises:
        DataError: no table, or a column that holds something else; names it.
    """
    if not isinstance(value, Mapping) or not value:
        raise DataError(f"columns is {value!r}", where=where, allowed=f"a table of names, each with {_SHAPES}")
    return tuple(Column(str(name), _kind(str(name), said, where)) for name, said in value.items())


def _kind(name: str, said: object, where: str) -> Kind:
    if isinstance(said, Number | Integer | YesNo | Category | Ordinal | Tags):
        return said
    if said == YesNo.word:
        return YesNo()
    table = said if isinstance(said, Mapping) else {}
    # One word says the kind: with two it would be open which range counts.
    words = [word for word in WORDS if word in table]
    beside = _BESIDE.get(words[0], ()) if len(words) == 1 else ()
    if len(words) != 1 or set(table) - {words[0], *beside}:
        raise DataError(f"the column {name!r} is declared as {said!r}", where=where, allowed=_SHAPES)
    try:
        return _built(words[0], table)
    except (InputError, TypeError, ValueError) as error:
        what = error.what if isinstance(error, InputError) else f"{words[0]} is {table[words[0]]!r}"
        allowed = error.allowed if isinstance(error, InputError) else _SHAPES
        raise DataError(f"the column {name!r}: {what}", where=where, allowed=allowed) from error


def _built(word: str, table: Mapping[str, object]) -> Kind:
    said = table[word]
    if not isinstance(said, list | tuple):
        raise ValueError(word)
    if word == Number.word:
        low, high = said
        return Number(low, high)
    if word == Integer.word:
        low, high = said
        return Integer(low, high)
    if word == Category.word:
        return Category(tuple(said), table.get("empty", False))  # type: ignore[arg-type]
    if word == Ordinal.word:
        return Ordinal(tuple(said))
    return Tags(tuple(said), table.get("most", len(said)))  # type: ignore[arg-type]
