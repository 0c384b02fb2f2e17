"""What the owner of a folder answers, and the `graph.toml` that follows from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from typing import Final, TypeAlias

from graphveil.errors import DataError, InputError
from graphveil.files.columns import Number
from graphveil.files.reading import parse_toml
from graphveil.files.serial import toml_lines, toml_value
from graphveil.graphs.declared.column_declaration import parse_columns
from graphveil.graphs.declared.declaration import FILE, parse_declaration
from graphveil.graphs.drafts.draft import EDGES_ROLES, NODES_ROLES, Draft, Feature
from graphveil.graphs.value.schema import PRIVATE_PARTS
from graphveil.runtime.checks import KINDS, require_known
from graphveil.runtime.words import nearest

Content: TypeAlias = dict[str, object]
NO_COLUMN: Final = "none"
"""The answer that there is no column of a role."""
WHY_NOT: Final = (
    "A range or a list read off the data would leak it: only the names of columns were read. What they may hold has to "
    "come from a form, a law or a sensor's manual."
)
_HEAD: Final = "# What is public about this graph: answered by its owner, column by column, never read off a value.\n"


@dataclass(frozen=True)
class Answers:
    """The keys of a `graph.toml` that are answered so far; None: open, or as the draft suggests."""

    private: tuple[str, ...] | None = None
    classes: tuple[str, ...] | None = None
    directed: bool | None = None
    columns: Mapping[str, object] = field(default_factory=dict)  # name or pattern -> kind, as in graph.toml
    missing: Mapping[str, object] = field(default_factory=dict)  # name or pattern -> fill value
    leave_out: tuple[str, ...] = ()  # names or patterns of columns that are not read
    id: str | None = None  # with label, split, source, target: a column, or NO_COLUMN
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
        names = [part.name for part in fields(cls)]
        values: dict[str, object] = {}
        require_known(content, names, where)
        for key, value in content.items():
            kind = _TYPES.get(key, str)
            if value is not None and type(value) is not kind:
                raise InputError(f"{key} is {value!r}", where=where, allowed=KINDS[kind])
            values[key] = tuple(map(str, value)) if isinstance(value, list) else value
        return cls(**{key: value for key, value in values.items() if value is not None})  # type: ignore[arg-type]

    def __post_init__(self) -> None:
        # Each answer is checked at once, by the rules of the declaration; placeholders stand for open ones.
        content = {"private": [*(self.private or ())], "classes": [*(self.classes or "ab")], "range": [0, 1]}
        parse_declaration({**content, "dimension": self.dimension}, "answers")
        if self.columns:
            parse_columns(self.columns, "answers")


_TYPES: Final[dict[str, type]] = {
    **dict.fromkeys(("private", "classes", "leave_out"), list),
    **dict.fromkeys(("columns", "missing"), dict),
    "directed": bool,
    "dimension": int,
}


@dataclass(frozen=True)
class Question:
    """What has to be answered before a declaration can be written."""

    key: str  # of `Answers`; of a column its name or pattern behind "columns."
    text: str


def open_questions(draft: Draft, answers: Answers) -> list[Question]:
    """Return the questions that neither the answers nor the names of columns settle.

    Args:
        answers: so far; InputError where one names no column of the folder.
    """
    roles = _roles(draft, answers)
    texts = {
        **{role: f"which column is the {role}" for role, column in roles.items() if column is None},
        **({"label": f"which column is the label, or {NO_COLUMN}"} if roles["label"] is None else {}),
        "private": f"what must be protected, out of {', '.join(PRIVATE_PARTS)}",
        "classes": "all classes in order, including those that nobody has",
        "directed": "whether edges have a direction",
        **({"dimension": "the number of features of the features file"} if draft.entries is not None else {}),
    }
    facts = [Question(key, text) for key, text in texts.items() if getattr(answers, key) is None]
    columns = [entry.name for entry in unanswered(draft, answers) if not entry.is_settled]
    return facts + [Question(f"columns.{name}", f"what {name} may hold") for name in columns]


def unanswered(draft: Draft, answers: Answers) -> list[Feature]:
    """Return the features without an answer so far, whether or not their names suggest something."""
    features = {
        feature.name: feature
        for feature, name in _columns(draft, answers)
        if not _leaves_out(name, answers) and _kind_of(name, feature, answers) is None
    }
    return list(features.values())


def _columns(draft: Draft, answers: Answers) -> Iterator[tuple[Feature, str]]:
    """Each feature column, behind the feature that it belongs to."""
    reserved = set() if draft.entries is not None else {*_roles(draft, answers).values(), answers.private_nodes}
    for feature in draft.features:
        yield from ((feature, name) for name in feature.columns if name not in reserved)


def _roles(draft: Draft, answers: Answers) -> dict[str, str | None]:
    """The column of each role; None: open, NO_COLUMN: there is none."""
    roles: dict[str, str | None] = {}
    for table, names in ((draft.nodes.columns, NODES_ROLES), (draft.edges.columns, EDGES_ROLES)):
        answered = {role: getattr(answers, role) for role in names}
        for role, column in answered.items():
            if column not in (None, NO_COLUMN, *table):
                raise InputError(f"no column {column!r}", where=role, allowed=", ".join(table[:12]))
            # A column that is answered for one role is no longer suggested for another.
            free = draft.roles[role] if draft.roles[role] not in answered.values() else None
            roles[role] = free if column is None else column
    return {**roles, "split": roles["split"] or NO_COLUMN}


def _kind_of(name: str, feature: Feature, answers: Answers) -> object | None:
    if feature.suggestion.identifies:  # a pattern must not turn an identifying column into a feature
        return answers.columns.get(name, answers.columns.get(feature.name))
    return _answer(name, answers.columns)


def _answer(name: str, answers: Mapping[str, object]) -> object | None:
    """The answer for a column: by its name, else by the first pattern that fits."""
    if name in answers:
        return answers[name]
    return next((value for pattern, value in answers.items() if fnmatchcase(name, pattern)), None)


def _leaves_out(name: str, answers: Answers) -> bool:
    return name not in answers.columns and any(fnmatchcase(name, pattern) for pattern in answers.leave_out)


@dataclass(frozen=True)
class DeclarationFile:
    """A complete declaration."""

    toml: str  # the content of graph.toml
    notes: tuple[str, ...]  # which kinds follow suggestions, and which columns are left out


def declare(draft: Draft, answers: Answers) -> DeclarationFile:
    """Return the declaration of a folder.

    Args:
        draft: of the folder.
        answers: of its owner.

    Raises:
        InputError: questions are open, which it lists, or an answer names no column.
        DataError: an answer contradicts another, or cannot be part of a declaration.
    """
    columns = {name: None for feature in draft.features for name in feature.columns}
    for name in {*answers.columns} & {*answers.leave_out}:
        raise InputError(f"{name!r} is declared and left out", where="leave_out", allowed="one of the two")
    # A misspelt name would silently have no effect.
    for key in ("columns", "missing", "leave_out"):
        for name in getattr(answers, key):
            if name not in columns and not any(fnmatchcase(column, name) for column in columns):
                allowed = ", ".join([*columns][:12])
                raise InputError(f"no column {name!r}", where=key, allowed=allowed, remedy=nearest(name, columns))
    if questions := open_questions(draft, answers):
        texts = "; ".join(f"{question.key}: {question.text}" for question in questions)
        count = "an open question" if len(questions) == 1 else f"{len(questions)} open questions"
        raise InputError(f"{count}: {texts}", where=FILE, remedy="graphveil data init --help says how to answer")
    if _roles(draft, answers)["label"] == NO_COLUMN and "label" in draft.nodes.columns:
        raise InputError("a column called 'label' is read as the label", where="label", remedy="rename the column")
    kinds, notes = _kinds(draft, answers)
    content = _content(draft, answers, kinds)
    parse_declaration(content, FILE)
    top = toml_lines({key: value for key, value in content.items() if key != "columns"})
    text = "\n".join((*top, *(("", "[columns]", *toml_lines(kinds)) if "columns" in content else ()), ""))
    if parse_toml(text, where=FILE) != content:
        raise DataError("holds a value that TOML cannot store", where=FILE, remedy="use plain names and values")
    return DeclarationFile(_HEAD + text, notes)


def _kinds(draft: Draft, answers: Answers) -> tuple[Content, tuple[str, ...]]:
    """What each feature column may hold, as a declaration says it, and notes."""
    kinds: Content = {}
    notes: dict[str, None] = {}
    left_out = []
    for feature, name in _columns(draft, answers):
        suggestion, kind = feature.suggestion, _kind_of(name, feature, answers)
        if _leaves_out(name, answers) or (kind is None and suggestion.identifies):
            left_out.append(name)
            continue
        if kind is None:
            kind = suggestion.kind
            notes[f"{feature.name}: {toml_value(kind)}, as suggested: {suggestion.reason}"] = None
        elif suggestion.identifies:
            notes[f"{name} is a feature, though {suggestion.reason}"] = None
        fill_value = _answer(name, answers.missing)
        table = {kind: True} if isinstance(kind, str) else kind
        kinds[name] = (
            {**table, "missing": fill_value} if fill_value is not None and isinstance(table, Mapping) else kind
        )
    return kinds, (*notes, *((f"left out: {', '.join(left_out)}",) if left_out else ()))


def _content(draft: Draft, answers: Answers, kinds: Content) -> Content:
    """The keys of graph.toml in the order in which they are written."""
    roles = _roles(draft, answers)
    content: Content = {
        "name": answers.name,
        "private": list(answers.private or ()),
        "classes": list(answers.classes or ()),
        "directed": answers.directed,
        # The default name of the columns id, source and target is the role itself.
        **{
            role: name
            for role, name in roles.items()
            if name != NO_COLUMN and (name != role or role in ("label", "split"))
        },
        **{key: getattr(answers, key) for key in ("label_separator", "out_of_range", "public_edges", "private_nodes")},
        "dimension": answers.dimension,
        **_features(draft, kinds, {*roles.values(), answers.private_nodes, "label"}),
    }
    return {key: value for key, value in content.items() if value is not None}


def _features(draft: Draft, kinds: Content, reserved: set[str | None]) -> Content:
    """The keys about features: one range where all are numbers in the same range, else an entry for each column."""
    if not kinds:
        raise InputError("no column of features is left", where="nodes", remedy="add columns, or leave out fewer")
    first = next(iter(kinds.values()))
    if not isinstance(first, Mapping) or Number.word not in first or any(kind != first for kind in kinds.values()):
        if draft.entries is not None:
            raise InputError(f"columns is {kinds!r}", where=FILE, allowed="{ number = [low, high] } of a features file")
        return {"columns": dict(kinds)}
    unread_columns = draft.entries is None and set(draft.nodes.columns) - {*reserved, *kinds}
    return {
        "range": first[Number.word],
        "missing": first.get("missing"),
        "features": list(kinds) if unread_columns else None,
    }
