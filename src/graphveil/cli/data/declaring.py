"""``graphveil data init`` and ``import``: a folder of tables gets its declaration, from its owner's answers alone."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from graphveil.cli.base import options, tables
from graphveil.cli.base.console import complain, emit, working
from graphveil.cli.base.groups import spread
from graphveil.cli.base.terminal import InputEnded, Terminal
from graphveil.errors import InputError
from graphveil.files.columns import MOST_VALUES, YesNo
from graphveil.files.reading import read_json, read_toml
from graphveil.graphs.declared.declaration import FILE
from graphveil.graphs.drafts.answers import (
    NO_COLUMN,
    WHY_NOT,
    Answers,
    DeclarationFile,
    Question,
    declare,
    open_questions,
    unanswered,
)
from graphveil.graphs.drafts.draft import Draft, read_draft
from graphveil.reports.base.text import printable

if TYPE_CHECKING:
    from rich.console import RenderableType

    from graphveil.graphs.sources.rows import Imported

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder with nodes and edges, csv or parquet.")]
Replace = Annotated[bool, typer.Option("--replace", help="Overwrite an existing graph.toml.")]
DraftOnly = Annotated[bool, typer.Option("--draft", help="Write nothing: print suggestions and open questions.")]
Address = Annotated[str, typer.Argument(metavar="SOURCE", help="A file, or the address of a database.")]
New = Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Folder to create.")]
NodesQuery = Annotated[str | None, typer.Option(metavar="SQL", help="One row a node; of a database.")]
EdgesQuery = Annotated[str | None, typer.Option(metavar="SQL", help="One row an edge, its ends first; of a database.")]


LEAVE_OUT: Final = "leave-out"
KINDS: Final = "number:LOW:HIGH, integer:LOW:HIGH, yes-no, category:A,B,C, ordinal:LOW,HIGH, tags:MOST:A,B,C"

_File = Annotated[
    Path | None, typer.Option(metavar="FILE", help="JSON or TOML with keys of graph.toml, and leave_out.")
]
_PARTS = "Parts to protect: features,labels,edges, or none."
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
class AnswerOptions:
    """Answers, as options give them."""

    answers: _File = None
    private: _Private = None
    classes: _Classes = None
    directed: _Directed = None
    column: _Columns = None
    missing: _Missing = None
    leave_out: _LeaveOut = None
    settings: _Keys = None


@spread()
def init(
    folder: Folder,
    *,
    typed: AnswerOptions,
    overwrite: Replace = False,
    draft: DraftOnly = False,
    as_json: options.Json = False,
) -> None:
    """Write graph.toml from the names of columns and your answers alone, then check the folder against it.

    No value is read before it is written: a range or a list read off the data would leak it.

    At a terminal, what options leave open is asked. Public ranges, such as ages, need no answer.
    """
    from graphveil.graphs.drafts.folder import declare_folder, require_undeclared

    if not (overwrite or draft):
        require_undeclared(folder)
    answers, names = answers_of(typed), read_draft(folder)
    if draft:
        questions = open_questions(names, answers)
        toml = None if questions else declare(names, answers).toml
        facts = {**names.facts(), "toml": toml, "questions": [asdict(question) for question in questions]}
        emit(facts, as_json=as_json, screen=lambda: _drafted(names, questions))
        return
    interview = None if as_json else Interview.here()
    if interview is not None:
        answers = interview.complete(names, answers, everything=answers == Answers())
    declared = declare_folder(folder, answers, replace=overwrite)
    path = str(folder / FILE)
    # A table that is not as declared is refused in one line, which says that graph.toml stays.
    checked = _check(folder)
    complain(f"Written to {path}")
    answer = {"folder": str(folder), "path": path, **asdict(declared), "questions": [], "checked": checked}
    emit(answer, as_json=as_json, screen=lambda: _screen(answer))


@spread()
def import_(
    address: Address,
    out: New,
    nodes_query: NodesQuery = None,
    edges_query: EdgesQuery = None,
    *,
    typed: AnswerOptions,
    as_json: options.Json = False,
) -> None:
    """Copy a graph into a folder of tables: GraphML, node-link JSON, a PyG Data, a list of edges, a database.

    With answers, or at a terminal, graph.toml is written as by `data init`; else that is the next command.

    A PyG Data is read from safetensors or npz: nothing is unpickled. A password of PostgreSQL belongs in ~/.pgpass.
    """
    from graphveil.files.outputs import new_output
    from graphveil.graphs.sources.importing import import_source
    from graphveil.graphs.tables.write import new_graph_folder

    answers = answers_of(typed)

    def write(path: Path) -> tuple[Imported, DeclarationFile | None]:
        with new_graph_folder(path, owner_only=True) as partial:
            imported = import_source(address, partial, (nodes_query, edges_query))
            return imported, _declare(partial, answers, imported, as_json=as_json)

    with new_output(out, out, say=complain) as output:
        imported, declared = output.write(write, paid=False)
    complain(f"Written to {output.path}: raw data, which you alone may read")
    direction = "" if imported.directed is None else f" --directed {'yes' if imported.directed else 'no'}"
    next_command = f"graphveil data init {shlex.quote(str(output.path))}{direction}"
    answer: dict[str, Any] = {"folder": str(output.path), "notes": imported.notes, "toml": None, "next": next_command}
    if declared is not None:
        notes = (*imported.notes, *declared.notes)
        answer |= {"notes": notes, "toml": declared.toml, "next": None, "checked": _check(output.path)}
    emit(answer, as_json=as_json, screen=lambda: _screen(answer))


def _declare(folder: Path, answers: Answers, imported: Imported, *, as_json: bool) -> DeclarationFile | None:
    """Declare what was imported; None: nobody is there to answer, or there is no column of features yet."""
    from graphveil.graphs.drafts.folder import declare_folder

    interview = None if as_json else Interview.here()
    everything = answers == Answers()
    if everything and (interview is None or len(read_draft(folder).nodes.columns) < 2):
        return None
    if answers.directed is None:
        answers = replace(answers, directed=imported.directed)
    if interview is not None:
        answers = interview.complete(read_draft(folder), answers, everything=everything)
    return declare_folder(folder, answers)


def _check(folder: Path) -> str:
    from graphveil.graphs.drafts.folder import check_folder

    with working():
        return check_folder(folder)


def _drafted(names: Draft, questions: list[Question]) -> RenderableType:
    suggested = [f"{role}: {column}" for role, column in names.roles.items() if column]
    for entry in names.features:
        if entry.is_settled:
            kind = LEAVE_OUT if entry.suggestion.identifies else kind_text(entry.suggestion.kind)
            suggested.append(f"{entry.name}: {kind} ({entry.suggestion.reason})")
    unsettled = [f"{question.key}: {question.text}" for question in questions] or ["nothing"]
    return tables.pairs([*tables.listed("Suggested", suggested), *tables.listed("Open", unsettled)])


def _screen(answer: Mapping[str, Any]) -> RenderableType:
    next_command = answer.get("next") or f"graphveil data describe {shlex.quote(answer['folder'])}"
    checked = [("Checked", answer["checked"])] if "checked" in answer else []
    return tables.pairs([*tables.listed("Notes", answer["notes"]), *checked, ("Next", next_command)])


_QUESTIONS: Final = {
    "id": "Which column of nodes identifies a person?",
    "label": "Which column is the label, which a network learns to predict? (none: there is no such column)",
    "split": "Which column says train, val or test? (none: there is no such column)",
    "source": "Which column of edges is the source?",
    "target": "Which column of edges is the target?",
    "private": "What must be protected, out of features, labels and edges? (with commas between; or none)",
    "classes": "Which classes are there, including those that nobody has? (in order, with commas; 7 stands for 0 to 6)",
    "directed": "Do edges have a direction? (yes, no)",
    "dimension": "How many features does the features file have?",
}
_MISSING: Final = "What stands for a missing value? (such as age=60 or team=own category; Enter: nothing more)"


class Interview(Terminal):
    """What the owner of a folder is asked, a question for each fact; what everybody knows is the default."""

    def complete(self, draft: Draft, answers: Answers, *, everything: bool) -> Answers:
        """Return the answers, completed by the person, or as far as they were when the input ended.

        Args:
            answers: given as options.
            everything: whether also what the names of columns suggest is asked.
        """
        if not everything and not open_questions(draft, answers):
            return answers
        self.say(WHY_NOT)
        for table in draft.tables:
            self.say(f"{table.file}: {', '.join(map(printable, table.columns))}")
        try:
            for key, question in _QUESTIONS.items():
                is_open = key in {entry.key for entry in open_questions(draft, answers)}
                if is_open or (everything and draft.roles.get(key)):
                    answers = self._ask(draft, answers, key, question, None if is_open else draft.roles[key])
            self.say(f"Kinds of columns: {KINDS}; {LEAVE_OUT}: nothing reads it")
            for entry in unanswered(draft, answers):
                if everything or not entry.is_settled:
                    many = f" ({len(entry.columns)} columns)" if len(entry.columns) > 1 else ""
                    reason = f" ({entry.suggestion.reason})" if entry.is_settled else ""
                    question = f"What may {printable(entry.name)}{many} hold?{reason}"
                    default = LEAVE_OUT if entry.suggestion.identifies else kind_text(entry.suggestion.kind)
                    answers = self._ask(draft, answers, f"columns.{entry.name}", question, default)
            before = None
            while answers != before:
                before, answers = answers, self._ask(draft, answers, "missing", _MISSING, "")
        except InputEnded:
            self.say("")
        return answers

    def _ask(self, draft: Draft, answers: Answers, key: str, question: str, default: str | None) -> Answers:
        """Ask until an answer is accepted."""
        while True:
            text = self.typed(question, printable(default or "")) or default
            if text == "":
                return answers
            try:
                if text is not None:
                    changed = with_answer(answers, key, text)
                    # Refuses a column that is not there; the last question, also what does not fit together.
                    _ = declare(draft, changed) if key == "missing" else open_questions(draft, changed)
                    return changed
            except InputError as error:
                self.say(f"{error.what}{f'; allowed: {error.allowed}' if error.allowed else ''}; please try again")


def answers_of(typed: AnswerOptions) -> Answers:
    """Return the answers of file and options; an option wins over the file."""
    answers = Answers() if typed.answers is None else _read(typed.answers)
    pairs = [(key, text) for key in ("private", "classes", "directed") if (text := getattr(typed, key)) is not None]
    pairs += [_pair(text, "--set") for text in typed.settings or ()]
    pairs += [(f"columns.{name}", kind) for name, kind in (_pair(text, "--column") for text in typed.column or ())]
    pairs += [(f"columns.{name}", LEAVE_OUT) for name in typed.leave_out or ()]
    pairs += [("missing", text) for text in typed.missing or ()]
    for key, text in pairs:
        answers = with_answer(answers, key, text)
    return answers


def _read(path: Path) -> Answers:
    if not path.is_file():
        raise InputError("no such file", where=str(path), allowed="answers in JSON or TOML")
    content = read_toml(path) if path.suffix == ".toml" else read_json(path)
    if not isinstance(content, dict):
        raise InputError("is no object", where=str(path), allowed="the keys of graph.toml")
    return Answers.from_facts(content, str(path))


def with_answer(answers: Answers, key: str, text: str) -> Answers:
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
#: What to do instead of kinds that people often type, and that do not exist.
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
        raise InputError(f"{text!r} is not a kind", where=column, allowed=KINDS, remedy=_INSTEAD.get(word))
    return kind


def kind_text(kind: object) -> str | None:
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
        raise InputError(f"{text!r} is not a number", allowed=KINDS) from error
