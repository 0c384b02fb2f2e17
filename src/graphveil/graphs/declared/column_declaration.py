"""The keys `columns` and `missing` of a declaration: what a column may hold, and what stands for a missing value.

What stands for it is declared, never computed from the data: a mean or a most frequent value would be a statistic of
private data, and nobody would have paid for it."""

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
    """Return the declared columns in order; DataError for a column that holds something else, by name.

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


def declared_columns(columns: Sequence[Column], missing: Mapping[str, float | str] = MappingProxyType({})) -> Declared:
    """Return the table `columns` of a declaration: name -> what `_declared_kind` says.

    Args:
        columns: in order.
        missing: column -> what stands for a missing value.
    """
    return {column.name: _declared_kind(column.kind, missing.get(column.name)) for column in columns}


Stand: TypeAlias = float | str
Missing: TypeAlias = tuple[tuple[str, Stand], ...]

KEY: Final = "missing"
_LONGEST_LINE: Final = 160


def parse_missing(
    content: Mapping[str, object], columns: tuple[Column, ...], where: str
) -> tuple[Missing, tuple[Column, ...]]:
    """Return what stands for missing values, and the columns with what that makes of them.

    Args:
        content: a declaration: its key `missing`, and that of each of its columns.
        columns: the declared ones; a missing value that is an answer of its own is one more of theirs.
        where: the declaration's name in messages.

    Raises:
        DataError: what does not fit the columns.
    """
    pairs = _listed(content, where)
    if not columns:
        return tuple((name, _number(name, value, where)) for name, value in pairs.items()), ()
    kinds = {column.name: column.kind for column in columns}
    for name in pairs:
        if name not in kinds:
            allowed = f"a table of declared columns: {', '.join(list(kinds)[:8])}"
            what = f"missing names {'all columns' if name == ALL else repr(name)}"
            raise DataError(what, where=where, allowed=allowed)
    stands = {name: _stand(name, kinds[name], value, where) for name, value in pairs.items()}
    changed = tuple(_with_own(column) if stands.get(column.name) == OWN_CATEGORY else column for column in columns)
    return tuple(stands.items()), changed


ALL: Final = "*"


def _listed(content: Mapping[str, object], where: str) -> dict[str, object]:
    """Column or pattern -> what is declared to stand for its missing values."""
    top, columns = content.get(KEY), content.get("columns")
    pairs = {str(name): value for name, value in top.items()} if isinstance(top, Mapping) else {}
    if top is not None and not pairs:
        pairs = {ALL: top}
    for name, kind in columns.items() if isinstance(columns, Mapping) else ():
        if isinstance(kind, Mapping) and KEY in kind:
            if str(name) in pairs:
                raise DataError(f"missing of the column {name!r} is declared twice", where=where, allowed="once")
            pairs[str(name)] = kind[KEY]
    return pairs


def _number(name: str, value: object, where: str) -> float:
    if not (is_number(value) and abs(value) < float("inf")):
        subject = "missing" if name == ALL else f"missing of {name!r}"
        allowed = "a number inside the declared range, or a table of such numbers"
        raise DataError(f"{subject} is {value!r}", where=where, allowed=allowed)
    return float(value)


def _stand(name: str, kind: Kind, value: object, where: str) -> Stand:
    """What stands for a missing value of a column, checked against what the column may hold."""
    if isinstance(kind, Tags):
        what = f"missing of the column {name!r} is {value!r}"
        raise DataError(what, where=where, allowed="no such key: an empty cell has no tags")
    if isinstance(kind, Number | Integer):
        inside = is_number(value) and kind.low <= value <= kind.high
        if inside and not (isinstance(kind, Integer) and value != int(value)):  # type: ignore[call-overload]
            return float(value)  # type: ignore[arg-type]
        whole = "a whole number" if isinstance(kind, Integer) else "a number"
        allowed = f"{whole} from {kind.low:g} to {kind.high:g}"
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
        # With `empty` a missing value is an answer already.
        return own if kind.empty else own + kind.values
    return own + YES_NO


def _with_own(column: Column) -> Column:
    kind = column.kind
    return replace(
        column, kind=replace(kind, empty=True) if isinstance(kind, Category) else Category(YES_NO, empty=True)
    )


def stand_for(name: str, missing: Missing) -> Stand | None:
    """Return what stands for a missing value of a column: of the first pattern that matches; else None.

    Args:
        missing: from `parse_missing`.
    """
    return next((value for pattern, value in missing if pattern == name or fnmatchcase(name, pattern)), None)


def filled_notes(filled: Sequence[tuple[str, int, Stand]]) -> tuple[str, ...]:
    """Return a note for each column of which values were missing: column, how many, and what stands for them."""
    entries = ((name, many, stand if isinstance(stand, str) else f"{stand:g}") for name, many, stand in filled if many)
    return tuple(f"{count_of(many, 'missing value')} of {name}: {stand}, as declared" for name, many, stand in entries)


def column_remedy(column: Column, *, in_file: bool) -> str:
    """Return what to do about a missing value of a declared column.

    Args:
        in_file: whether it is declared in a file, else in Python.
    """
    stand = _example(column.kind)
    if not in_file:
        return f"declare {_STANDS}missing={{{column.name!r}: {stand!r}}}"
    line = toml_lines({column.name: _declared_kind(column.kind, stand)})[0]
    if len(line) > _LONGEST_LINE:
        line = f"{toml_lines({column.name: 0})[0][:-1]}{{ ..., {toml_lines({KEY: stand})[0]} }}"
    return f"declare in graph.toml {_STANDS}{line}"


def range_remedy(name: str, low: float, high: float, *, alone: bool, in_file: bool) -> str:
    """Return what to do about a missing number.

    Args:
        alone: whether it has a range of its own.
        in_file: whether it is declared in a file, else in Python.
    """
    middle = (low + high) / 2
    stand = {name: middle} if alone else middle
    if not in_file:
        return f"declare {_STANDS}{KEY}={stand!r}"
    return f"declare in graph.toml {_STANDS}{toml_lines({KEY: stand})[0]}"


_STANDS: Final = "what stands for it, from what is public and not from the data, for example "


def _example(kind: Kind) -> Stand:
    if isinstance(kind, Number):
        return (kind.low + kind.high) / 2
    if isinstance(kind, Integer):
        return (kind.low + kind.high) // 2
    if isinstance(kind, Ordinal):
        return kind.levels[len(kind.levels) // 2]
    return OWN_CATEGORY
