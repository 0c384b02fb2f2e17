"""Answers about a folder of tables as options, and how a kind of column is typed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from graphveil.errors import InputError
from graphveil.files.columns import MOST_VALUES
from graphveil.graphs.value.schema import PRIVATE_PARTS

if TYPE_CHECKING:
    from graphveil.graphs.drafts.answers import Answers

NONE: Final = "none"
LEAVE_OUT: Final = "leave-out"
KINDS: Final = "number:LOW:HIGH, integer:LOW:HIGH, yes-no, category:A,B,C, ordinal:LOW,HIGH, tags:MOST:A,B,C"
_ROLES: Final = ("id", "label", "split", "source", "target")

_File = Annotated[Path | None, typer.Option(metavar="FILE", help="JSON or TOML with the keys of graph.toml.")]
_Private = Annotated[
    str | None, typer.Option(metavar="PARTS", help="What belongs to the people: features,labels,edges, or none.")
]
_Classes = Annotated[
    str | None, typer.Option(metavar="A,B,...", help="All classes in order; a number N stands for 0 to N - 1.")
]
_Directed = Annotated[str | None, typer.Option(metavar="yes|no", help="Whether edges have a direction.")]
_Columns = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=KIND", help=f"What columns called so may hold: {KINDS}. Repeatable; '*' fits all."),
]
_Missing = Annotated[
    list[str] | None, typer.Option(metavar="NAME=VALUE", help="What stands for a missing value; repeatable.")
]
_LeaveOut = Annotated[list[str] | None, typer.Option(metavar="NAME", help="A column not to read; repeatable.")]
_Id = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of nodes with ids.")]
_Label = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of nodes with labels, or none.")]
_Split = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of nodes: train, val or test; or none.")]
_Source = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of edges where each begins.")]
_Target = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of edges where each ends.")]
_Dimension = Annotated[int | None, typer.Option(help="Number of features of a features file.")]


@dataclass(frozen=True)
class Typed:
    """Answers as they are typed."""

    answers: _File = None
    private: _Private = None
    classes: _Classes = None
    directed: _Directed = None
    column: _Columns = None
    missing: _Missing = None
    leave_out: _LeaveOut = None
    id: _Id = None
    label: _Label = None
    split: _Split = None
    source: _Source = None
    target: _Target = None
    dimension: _Dimension = None


def answers_of(typed: Typed) -> Answers:
    """Return what is answered; an option wins over the file."""
    from graphveil.files.reading import read_json, read_toml
    from graphveil.graphs.drafts.answers import Answers

    answers = Answers()
    if typed.answers is not None:
        if not typed.answers.is_file():
            raise InputError("no such file", where=str(typed.answers), allowed="answers in JSON or TOML")
        content = read_toml(typed.answers) if typed.answers.suffix == ".toml" else read_json(typed.answers)
        if not isinstance(content, dict):
            raise InputError("is no object", where=str(typed.answers), allowed="the keys of graph.toml")
        answers = Answers.from_facts(content, str(typed.answers))
    for key in ("private", "classes", "directed", *_ROLES):
        if (text := getattr(typed, key)) is not None:
            answers = answered(answers, key, text)
    for text in typed.column or ():
        answers = answered(answers, f"columns.{_pair(text, '--column')[0]}", _pair(text, "--column")[1])
    for text in typed.missing or ():
        answers = with_missing(answers, text)
    leave_out = (*answers.leave_out, *(typed.leave_out or ()))
    return replace(answers, leave_out=leave_out, dimension=typed.dimension or answers.dimension)


def answered(answers: Answers, key: str, text: str) -> Answers:
    """Return the answers with one more.

    Args:
        answers: so far.
        key: of `Answers`, or a column behind "columns."; InputError for a text that does not answer it.
        text: as it was typed.
    """
    kind, _, column = key.partition(".")
    if column:
        if text == LEAVE_OUT:
            return replace(answers, leave_out=(*answers.leave_out, column))
        return replace(answers, columns={**answers.columns, column: kind_of(column, text)})
    values: dict[str, object] = {key: text}
    if kind == "private":
        values[key] = _parts(text)
    elif kind == "classes":
        values[key] = _classes(text)
    elif kind == "directed":
        if text not in ("yes", "no"):
            raise InputError(f"{text!r}", where="directed", allowed="yes, no")
        values[key] = text == "yes"
    elif kind == "dimension":
        values[key] = _number(text)
    return replace(answers, **values)  # type: ignore[arg-type]


def _parts(text: str) -> tuple[str, ...]:
    parts = () if text == NONE else words_of(text)
    if not set(parts) <= set(PRIVATE_PARTS):
        raise InputError(f"{text!r}", where="private", allowed=f"{', '.join(PRIVATE_PARTS)} or {NONE}")
    return parts


def _classes(text: str) -> tuple[str, ...]:
    names = tuple(map(str, range(min(int(text), MOST_VALUES)))) if text.isdecimal() else words_of(text)
    if len(names) < 2 or len(set(names)) < len(names) or "" in names:
        raise InputError(f"{text!r}", where="classes", allowed="at least two different names, or their number")
    return names


def with_missing(answers: Answers, text: str) -> Answers:
    """Return the answers with what stands for missing values of a column, typed as NAME=VALUE."""
    name, value = _pair(text, "--missing")
    try:
        stand: object = _number(value)
    except InputError:
        stand = value
    return replace(answers, missing={**answers.missing, name: stand})


def kind_of(column: str, text: str) -> object:
    """Return a kind as `columns` of a graph.toml declares it.

    Args:
        column: its name, for the refusal of a text that is no kind.
        text: such as `integer:0:120`.
    """
    from graphveil.graphs.declared.column_declaration import parse_columns

    word, _, rest = text.strip().partition(":")
    if word in ("number", "integer"):
        low, _, high = rest.partition(":")
        kind: object = {word: [_number(low), _number(high)]}
    elif word in ("category", "ordinal"):
        kind = {word: list(words_of(rest))}
    elif word == "tags":
        most, _, words = rest.partition(":")
        kind = {word: list(words_of(words)), "most": _number(most)}
    elif word == "yes-no" and not rest:
        kind = word
    else:
        raise InputError(f"{text!r} is no kind", where=column, allowed=KINDS)
    parse_columns({column: kind}, "--column")
    return kind


def typed_kind(kind: object) -> str | None:
    """Return a suggested kind as `kind_of` reads it."""
    if not isinstance(kind, dict):
        return None if kind is None else str(kind)
    return ":".join(str(part) for word, bounds in kind.items() for part in (word, *bounds))


def words_of(text: str) -> tuple[str, ...]:
    """Return words with commas between them."""
    return tuple(word.strip() for word in text.split(","))


def _pair(text: str, option: str) -> Sequence[str]:
    name, sign, value = text.partition("=")
    if not (sign and name):
        raise InputError(f"{text!r}", where=option, allowed="NAME=VALUE")
    return name, value


def _number(text: str) -> int | float:
    try:
        return int(text) if text.lstrip("-").isdecimal() else float(text)
    except ValueError as error:
        raise InputError(f"{text!r} is no number", allowed=KINDS) from error
