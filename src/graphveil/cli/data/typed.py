"""Answers about a folder of tables as options, and how a kind of column is typed."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Final

import typer

from graphveil.errors import InputError
from graphveil.files.columns import MOST_VALUES, YesNo
from graphveil.files.reading import read_json, read_toml
from graphveil.graphs.drafts.answers import NO_COLUMN, Answers

LEAVE_OUT: Final = "leave-out"
KINDS: Final = "number:LOW:HIGH, integer:LOW:HIGH, yes-no, category:A,B,C, ordinal:LOW,HIGH, tags:MOST:A,B,C"

_File = Annotated[
    Path | None, typer.Option(metavar="FILE", help="JSON or TOML with keys of graph.toml, and leave_out.")
]
_PARTS = "What belongs to the people: features,labels,edges, or none."
_Private = Annotated[str | None, typer.Option(metavar="PARTS", help=_PARTS)]
_CLASSES = "All classes in order; a number N stands for 0 to N - 1."
_Classes = Annotated[str | None, typer.Option(metavar="A,B,...", help=_CLASSES)]
_Directed = Annotated[str | None, typer.Option(metavar="yes|no", help="Whether edges have a direction.")]
_COLUMNS = f"What columns called so may hold: {KINDS}. Repeatable; '*' fits all."
_Columns = Annotated[list[str] | None, typer.Option(metavar="NAME=KIND", help=_COLUMNS)]
_STANDS = "What stands for a missing value; repeatable."
_Missing = Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help=_STANDS)]
_LeaveOut = Annotated[list[str] | None, typer.Option(metavar="NAME", help="A column not to read; repeatable.")]
_KEYS = "Any other key of graph.toml: id, label, split, source, target, dimension, ...; repeatable."
_Keys = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help=_KEYS)]


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
    settings: _Keys = None


def answers_of(typed: Typed) -> Answers:
    """Return what is answered; an option wins over the file."""
    answers = Answers() if typed.answers is None else _read(typed.answers)
    pairs = [(key, text) for key in ("private", "classes", "directed") if (text := getattr(typed, key)) is not None]
    pairs += [_pair(text, "--set") for text in typed.settings or ()]
    pairs += [(f"columns.{name}", kind) for name, kind in (_pair(text, "--column") for text in typed.column or ())]
    pairs += [(f"columns.{name}", LEAVE_OUT) for name in typed.leave_out or ()]
    pairs += [("missing", text) for text in typed.missing or ()]
    for key, text in pairs:
        answers = answered(answers, key, text)
    return answers


def _read(path: Path) -> Answers:
    if not path.is_file():
        raise InputError("no such file", where=str(path), allowed="answers in JSON or TOML")
    content = read_toml(path) if path.suffix == ".toml" else read_json(path)
    if not isinstance(content, dict):
        raise InputError("is no object", where=str(path), allowed="the keys of graph.toml")
    return Answers.from_facts(content, str(path))


def answered(answers: Answers, key: str, text: str) -> Answers:
    """Return the answers with one more.

    Args:
        key: of `Answers`, or a column behind "columns."; InputError for a text that does not answer it.
    """
    kind, _, column = key.partition(".")
    if column and text == LEAVE_OUT:
        return replace(answers, leave_out=(*answers.leave_out, column))
    if column:
        return replace(answers, columns={**answers.columns, column: _kind(column, text)})
    if kind == "missing":
        name, value = _pair(text, "missing")
        return replace(answers, missing={**answers.missing, name: _number(value, value)})
    if kind not in {part.name for part in fields(Answers)} - {"columns", "leave_out"}:
        raise InputError(f"unknown key {kind!r}", where="--set", allowed="id, label, split, source, target, dimension")
    readers = {"private": _parts, "classes": _classes, "directed": _truth, "dimension": _number}
    return replace(answers, **{kind: readers.get(kind, str)(text)})  # type: ignore[arg-type]


def _parts(text: str) -> tuple[str, ...]:
    return () if text == NO_COLUMN else words_of(text)


def _classes(text: str) -> tuple[str, ...]:
    return tuple(map(str, range(min(int(text), MOST_VALUES)))) if text.isdecimal() else words_of(text)


def _truth(text: str) -> bool:
    if text not in ("yes", "no"):
        raise InputError(f"{text!r}", where="directed", allowed="yes, no")
    return text == "yes"


_DATE: Final = "write dates as whole numbers, such as years, and declare integer:1900:2030; or leave the column out"
_TEXT: Final = "list all values that there may be, as category:A,B,C; or leave the column out"
#: What is often typed for a kind that there is none of.
_INSTEAD: Final = {
    **dict.fromkeys(("date", "datetime", "time", "timestamp", "day"), _DATE),
    **dict.fromkeys(("text", "string", "str"), _TEXT),
}


def _kind(column: str, text: str) -> object:
    """A kind as `columns` of a graph.toml declares it, from a text such as `integer:0:120`."""
    word, _, rest = text.strip().partition(":")
    kind: object = word
    if word in ("number", "integer"):
        kind = {word: [_number(bound) for bound in rest.split(":")]}
    elif word in ("category", "ordinal"):
        kind = {word: list(words_of(rest))}
    elif word == "tags":
        most, _, words = rest.partition(":")
        kind = {word: list(words_of(words)), "most": _number(most)}
    elif text.strip() != YesNo.word:
        raise InputError(f"{text!r} is no kind", where=column, allowed=KINDS, remedy=_INSTEAD.get(word))
    return kind


def typed_kind(kind: object) -> str | None:
    """Return a suggested kind as it is typed."""
    if not isinstance(kind, dict):
        return None if kind is None else str(kind)
    return ":".join(str(part) for word, bounds in kind.items() for part in (word, *bounds))


def words_of(text: str) -> tuple[str, ...]:
    """Return words with commas between them."""
    return tuple(word.strip() for word in text.split(","))


def _pair(text: str, option: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not (sign and name):
        raise InputError(f"{text!r}", where=option, allowed="NAME=VALUE")
    return name, value


def _number(text: str, otherwise: str | None = None) -> int | float | str:
    try:
        return int(text) if text.lstrip("-").isdecimal() else float(text)
    except ValueError as error:
        if otherwise is not None:
            return otherwise
        raise InputError(f"{text!r} is no number", allowed=KINDS) from error
