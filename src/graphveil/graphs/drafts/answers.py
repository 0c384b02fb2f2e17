"""What the owner of a folder answers, and the `graph.toml` that follows from it."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from typing import Final, TypeAlias

from graphveil.errors import DataError, InputError
from graphveil.files.columns import Number
from graphveil.files.reading import parse_toml
from graphveil.files.serial import toml_lines, toml_value
from graphveil.graphs.declared.declaration import FILE, parse_declaration
from graphveil.graphs.drafts.draft import EDGES_ROLES, ENTRIES_VALUE, NODES_ROLES, Draft, Feature
from graphveil.graphs.value.schema import PRIVATE_PARTS

Content: TypeAlias = dict[str, object]
NO_COLUMN: Final = "none"
"""The answer that there is no column of a role."""
WHY_NOT: Final = (
    "A range or a list read off the data would leak it: only the names of columns were read. What they may hold has to "
    "come from a form, a law or a sensor's manual."
)
_HEAD: Final = (
    "# What is public about this graph: answered by its owner, column by column, and never read off a value.\n"
)


@dataclass(frozen=True)
class Answers:
    """The keys of a `graph.toml`, as far as they are answered; None: open, or as the draft suggests."""

    private: tuple[str, ...] | None = None
    classes: tuple[str, ...] | None = None
    directed: bool | None = None
    columns: Mapping[str, object] = field(default_factory=dict)  # name or pattern -> kind, as in graph.toml
    missing: Mapping[str, object] = field(default_factory=dict)  # name or pattern -> what stands for a missing value
    leave_out: tuple[str, ...] = ()  # names or patterns of columns that nothing reads
    id: str | None = None  # with label, split, source, target: a column; NO_COLUMN: there is none
    label: str | None = None
    split: str | None = None
    source: str | None = None
    target: str | None = None
    dimension: int | None = None  # of a features file
    name: str | None = None
    label_separator: str | None = None
    out_of_range: str | None = None
    public_edges: str | None = None
    private_nodes: str | None = None

    @classmethod
    def from_facts(cls, content: Mapping[str, object], where: str = "answers") -> Answers:
        """Return answers that are written as JSON or TOML.

        Args:
            content: the keys of a graph.toml, with patterns allowed in `columns`, and `leave_out`.
            where: the file, in messages; InputError names a key that is unknown or of another type.
        """
        for key, value in content.items():
            if key not in _TYPES:
                near = difflib.get_close_matches(key, _TYPES, n=1)
                remedy = f"did you mean {near[0]}?" if near else None
                raise InputError(f"unknown key {key!r}", where=where, allowed=", ".join(_TYPES), remedy=remedy)
            kind, allowed = _TYPES[key]
            if value is not None and not (isinstance(value, kind) and (kind is bool or not isinstance(value, bool))):
                raise InputError(f"{key} is {value!r}", where=where, allowed=allowed)
            if isinstance(value, list) and not all(isinstance(word, str) for word in value):
                raise InputError(f"{key} is {value!r}", where=where, allowed=allowed)
        lists = {key: tuple(value) if isinstance(value, list) else value for key, value in content.items()}
        return cls(**{key: value for key, value in lists.items() if value is not None})  # type: ignore[arg-type]

    def facts(self) -> Content:
        """Return what is answered as JSON facts, which `from_facts` reads back."""
        values = {part.name: getattr(self, part.name) for part in fields(self)}
        lists = {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}
        return {key: value for key, value in lists.items() if value not in (None, [], {})}


_WORD: Final = (str, "a text")
_LIST: Final = (list, 'a list such as ["a", "b"]')
_TYPES: Final[dict[str, tuple[type, str]]] = {
    **{part.name: _WORD for part in fields(Answers)},
    **dict.fromkeys(("private", "classes", "leave_out"), _LIST),
    **dict.fromkeys(("columns", "missing"), (dict, "a table of columns")),
    "directed": (bool, "true or false"),
    "dimension": (int, "a whole number"),
}


@dataclass(frozen=True)
class Question:
    """What has to be answered before a declaration can be written."""

    key: str  # of `Answers`; of a column its name or pattern behind "columns."
    text: str


def open_questions(draft: Draft, answers: Answers) -> tuple[Question, ...]:
    """Return what neither the answers nor the names of columns say.

    Args:
        draft: of the folder.
        answers: so far; InputError where one is about no column of the folder.
    """
    return tuple(_open(draft, answers))


def _open(draft: Draft, answers: Answers) -> Iterator[Question]:
    roles = _roles(draft, answers)
    for role in ("id", "label", "source", "target"):
        if roles[role] is None:
            also = f" ({NO_COLUMN}: there is no such column)" if role == "label" else ""
            yield Question(role, f"which column is the {role}{also}")
    if answers.private is None:
        yield Question("private", f"what belongs to the people, out of {', '.join(PRIVATE_PARTS)}")
    if answers.classes is None:
        yield Question("classes", "all classes in order, also those that nobody has")
    if answers.directed is None:
        yield Question("directed", "whether edges have a direction")
    if draft.has_entries and answers.dimension is None:
        yield Question("dimension", "the number of features of the features file")
    for feature in unanswered(draft, answers):
        if not feature.is_settled:
            yield Question(f"columns.{feature.name}", f"what {feature.name} may hold")


def unanswered(draft: Draft, answers: Answers) -> tuple[Feature, ...]:
    """Return the features about which nothing is answered, whether or not their names suggest something.

    Args:
        draft: of the folder.
        answers: so far.
    """
    reserved = _reserved(draft, answers)
    return tuple(
        feature
        for feature in draft.features
        if any(
            not _leaves_out(name, answers) and _kind_of(name, feature, answers) is None
            for name in feature.columns
            if name not in reserved
        )
    )


def _roles(draft: Draft, answers: Answers) -> dict[str, str | None]:
    """The column of each role; None: nobody knows, NO_COLUMN: there is none."""
    roles: dict[str, str | None] = {}
    for table, names in ((draft.nodes, NODES_ROLES), (draft.edges, EDGES_ROLES)):
        given = {role: getattr(answers, role) for role in names}
        for role, column in given.items():
            if column not in (None, NO_COLUMN, *table):
                raise InputError(f"no column {column!r}", where=role, allowed=", ".join(table[:12]))
            # What is answered of one role takes the column away from the suggestions of others.
            free = draft.roles[role] if draft.roles[role] not in given.values() else None
            roles[role] = free if column is None else column
    return {**roles, "split": roles["split"] or NO_COLUMN}


def _reserved(draft: Draft, answers: Answers) -> set[str | None]:
    """The columns of nodes that are no features."""
    return set() if draft.has_entries else {*_roles(draft, answers).values(), answers.private_nodes}


def _kind_of(name: str, feature: Feature, answers: Answers) -> object | None:
    # No pattern makes a feature of what tells who somebody is.
    by_name = {key: kind for key, kind in answers.columns.items() if key in (name, feature.name)}
    return _answer(name, by_name if feature.suggestion.identifies else answers.columns)


def _answer(name: str, answers: Mapping[str, object]) -> object | None:
    """What is answered of a column by its name, else by the first pattern that fits it."""
    if name in answers:
        return answers[name]
    return next((value for pattern, value in answers.items() if fnmatchcase(name, pattern)), None)


def _leaves_out(name: str, answers: Answers) -> bool:
    return name not in answers.columns and any(fnmatchcase(name, pattern) for pattern in answers.leave_out)


@dataclass(frozen=True)
class Declared:
    """A declaration that `load_graph` reads."""

    toml: str  # the content of graph.toml
    notes: tuple[str, ...]  # what was taken as the names of columns suggest, and which columns nothing reads


def declare(draft: Draft, answers: Answers) -> Declared:
    """Return the declaration of a folder.

    Args:
        draft: of the folder.
        answers: of its owner.

    Raises:
        InputError: a question is open, or an answer is about no column; names all of them.
        DataError: an answer contradicts another, or is none that a declaration may hold.
    """
    _refuse_strangers(draft, answers)
    questions = open_questions(draft, answers)
    if questions:
        listed = "; ".join(f"{question.key}: {question.text}" for question in questions)
        count = "an open question" if len(questions) == 1 else f"{len(questions)} open questions"
        raise InputError(f"{count}: {listed}", where=FILE, remedy="graphveil data init --help says how to answer")
    roles = _roles(draft, answers)
    if roles["label"] == NO_COLUMN and "label" in draft.nodes:
        raise InputError("a column called 'label' is read as the label", where="label", remedy="rename the column")
    kinds, notes = _kinds(draft, answers)
    content = _content(draft, answers, roles, kinds)
    parse_declaration(content, FILE)
    top = {key: value for key, value in content.items() if key != "columns"}
    lines = [*toml_lines(top), *(["", "[columns]", *toml_lines(kinds)] if "columns" in content else [])]
    text = _HEAD + "\n".join(lines) + "\n"
    if parse_toml(text, where=FILE) != content:
        raise DataError("holds what TOML cannot write", where=FILE, remedy="use plain names and values")
    return Declared(text, notes)


def _refuse_strangers(draft: Draft, answers: Answers) -> None:
    """Refuse answers about columns that are not there: a misspelt one would be another column's."""
    columns = (ENTRIES_VALUE,) if draft.has_entries else draft.nodes
    for key in ("columns", "missing", "leave_out"):
        for name in getattr(answers, key):
            if not any(name == column or fnmatchcase(column, name) for column in columns):
                near = difflib.get_close_matches(name, columns, n=1)
                remedy = f"did you mean {near[0]}?" if near else None
                raise InputError(f"no column {name!r}", where=key, allowed=", ".join(columns[:12]), remedy=remedy)


def _kinds(draft: Draft, answers: Answers) -> tuple[dict[str, object], tuple[str, ...]]:
    """What each feature column may hold, as a declaration says it, and the notes of it."""
    kinds: dict[str, object] = {}
    notes: dict[str, None] = {}
    absent = []
    reserved = _reserved(draft, answers)
    for name, feature in [(name, group) for group in draft.features for name in group.columns]:
        suggestion, kind = feature.suggestion, _kind_of(name, feature, answers)
        if name in reserved:
            continue
        if _leaves_out(name, answers) or (kind is None and suggestion.identifies):
            absent.append(name)
            continue
        if kind is None:
            kind = suggestion.kind
            notes[f"{feature.name}: {toml_value(kind)}, as suggested: {suggestion.reason}"] = None
        elif suggestion.identifies:
            notes[f"{name} is a feature, though {suggestion.reason}"] = None
        stand = _answer(name, answers.missing)
        table = {kind: True} if isinstance(kind, str) else kind
        kinds[name] = {**table, "missing": stand} if stand is not None and isinstance(table, Mapping) else kind
    return kinds, (*notes, *((f"left out: {', '.join(absent)}",) if absent else ()))


def _content(draft: Draft, answers: Answers, roles: Mapping[str, str | None], kinds: Mapping[str, object]) -> Content:
    """The keys of graph.toml in the order in which they are written."""
    content: Content = {
        "name": answers.name,
        "private": list(answers.private or ()),
        "classes": list(answers.classes or ()),
        "directed": answers.directed,
        **{role: column for role, column in roles.items() if column not in (NO_COLUMN, _DEFAULTS.get(role))},
        "label_separator": answers.label_separator,
        "out_of_range": answers.out_of_range,
        "public_edges": answers.public_edges,
        "private_nodes": answers.private_nodes,
        "dimension": answers.dimension,
        **_features(draft, kinds, {*roles.values(), answers.private_nodes, "label"}),
    }
    return {key: value for key, value in content.items() if value is not None}


_DEFAULTS: Final = {"id": "id", "source": "source", "target": "target"}


def _features(draft: Draft, kinds: Mapping[str, object], reserved: set[str | None]) -> Content:
    """The features: one range where all are numbers of one, else a line for each column."""
    if not kinds:
        raise InputError("no column of features is left", where="nodes", remedy="add columns, or leave out fewer")
    first = next(iter(kinds.values()))
    if not (isinstance(first, Mapping) and Number.word in first and all(kind == first for kind in kinds.values())):
        if draft.has_entries:
            raise InputError(f"is {first!r}", where=f"columns.{ENTRIES_VALUE}", allowed="{ number = [low, high] }")
        return {"columns": dict(kinds)}
    content: Content = {"range": first[Number.word], "missing": first.get("missing")}
    if not draft.has_entries and set(draft.nodes) - {*reserved, *kinds}:
        content["features"] = list(kinds)
    return content
