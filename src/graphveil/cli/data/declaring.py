"""``graphveil data init`` and ``import``: a folder of tables gets its declaration, from its owner's answers alone."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from graphveil.cli.base import options, tables
from graphveil.cli.base.console import complain, emit, working
from graphveil.cli.base.groups import spread
from graphveil.cli.base.terminal import InputEnded, Terminal
from graphveil.cli.data.typed import KINDS, LEAVE_OUT, Typed, answered, answers_of, typed_kind
from graphveil.errors import InputError
from graphveil.graphs.declared.declaration import FILE
from graphveil.graphs.drafts.answers import WHY_NOT, Answers, Declared, Question, declare, open_questions, unanswered
from graphveil.graphs.drafts.draft import Draft
from graphveil.graphs.drafts.draft import draft as read_draft
from graphveil.reports.base.text import printable

if TYPE_CHECKING:
    from rich.console import RenderableType

    from graphveil.graphs.sources.rows import Imported

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder with nodes and edges, csv or parquet.")]
Replace = Annotated[bool, typer.Option("--replace", help="Write a graph.toml that is there anew.")]
DraftOnly = Annotated[bool, typer.Option("--draft", help="Write nothing: print suggestions and open questions.")]
Address = Annotated[str, typer.Argument(metavar="SOURCE", help="A file, or the address of a database.")]
New = Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Folder to create.")]
NodesQuery = Annotated[str | None, typer.Option(metavar="SQL", help="One row a node; of a database.")]
EdgesQuery = Annotated[str | None, typer.Option(metavar="SQL", help="One row an edge, its ends first; of a database.")]


@spread()
def init(
    folder: Folder, *, typed: Typed, anew: Replace = False, draft: DraftOnly = False, as_json: options.Json = False
) -> None:
    """Write graph.toml from the names of columns and your answers alone, then check the folder against it.

    No value is read before it is written: a range or a list read off the data would leak it.

    At a terminal, what options leave open is asked. What everybody knows, such as ages, needs no answer.
    """
    from graphveil.graphs.drafts.folder import declare_folder, require_undeclared

    if not (anew or draft):
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
        answers = interview.completed(names, answers, everything=answers == Answers())
    declared = declare_folder(folder, answers, replace=anew)
    path = str(folder / FILE)
    complain(f"Written to {path}")
    answer = {"folder": str(folder), "path": path, **asdict(declared), "questions": [], "checked": _checked(folder)}
    emit(answer, as_json=as_json, screen=lambda: _screen(answer))


@spread()
def import_(
    address: Address,
    out: New,
    nodes_query: NodesQuery = None,
    edges_query: EdgesQuery = None,
    *,
    typed: Typed,
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

    def write(path: Path) -> tuple[Imported, Declared | None]:
        with new_graph_folder(path, own=True) as inside:
            imported = import_source(address, inside, (nodes_query, edges_query))
            return imported, _declared(inside, answers, imported, as_json=as_json)

    with new_output(out, out, say=complain) as output:
        imported, declared = output.write(write, paid=False)
    complain(f"Written to {output.path}: raw data, which you alone may read")
    direction = "" if imported.directed is None else f" --directed {'yes' if imported.directed else 'no'}"
    following = f"graphveil data init {shlex.quote(str(output.path))}{direction}"
    answer: dict[str, Any] = {"folder": str(output.path), "notes": imported.notes, "toml": None, "next": following}
    if declared is not None:
        notes = (*imported.notes, *declared.notes)
        answer |= {"notes": notes, "toml": declared.toml, "next": None, "checked": _checked(output.path)}
    emit(answer, as_json=as_json, screen=lambda: _screen(answer))


def _declared(folder: Path, answers: Answers, imported: Imported, *, as_json: bool) -> Declared | None:
    """Declare what was imported; None: nobody is there to answer, or there is no column of features yet."""
    from graphveil.graphs.drafts.folder import declare_folder

    interview = None if as_json else Interview.here()
    everything = answers == Answers()
    if everything and (interview is None or len(read_draft(folder).nodes.columns) < 2):
        return None
    if answers.directed is None:
        answers = replace(answers, directed=imported.directed)
    if interview is not None:
        answers = interview.completed(read_draft(folder), answers, everything=everything)
    return declare_folder(folder, answers)


def _checked(folder: Path) -> str:
    from graphveil.graphs.drafts.folder import check_folder

    with working():
        return check_folder(folder)


def _drafted(names: Draft, questions: list[Question]) -> RenderableType:
    suggested = [f"{role}: {column}" for role, column in names.roles.items() if column]
    for entry in names.features:
        if entry.is_settled:
            kind = LEAVE_OUT if entry.suggestion.identifies else typed_kind(entry.suggestion.kind)
            suggested.append(f"{entry.name}: {kind} ({entry.suggestion.reason})")
    unsettled = [f"{question.key}: {question.text}" for question in questions] or ["nothing"]
    return tables.pairs([*tables.listed("Suggested", suggested), *tables.listed("Open", unsettled)])


def _screen(answer: Mapping[str, Any]) -> RenderableType:
    following = answer.get("next") or f"graphveil data describe {shlex.quote(answer['folder'])}"
    checked = [("Checked", answer["checked"])] if "checked" in answer else []
    return tables.pairs([*tables.listed("Notes", answer["notes"]), *checked, ("Next", following)])


_QUESTIONS: Final = {
    "id": "Which column of nodes identifies a person?",
    "label": "Which column is the label, which a network learns to predict? (none: there is no such column)",
    "split": "Which column says train, val or test? (none: there is no such column)",
    "source": "Which column of edges is the source?",
    "target": "Which column of edges is the target?",
    "private": "What belongs to the people, out of features, labels and edges? (with commas between; or none)",
    "classes": "Which classes are there, also those that nobody has? (in order, with commas; 7 stands for 0 to 6)",
    "directed": "Do edges have a direction? (yes, no)",
    "dimension": "How many features does the features file have?",
}
_MISSING: Final = "What stands for a missing value? (such as age=60 or team=own category; Enter: nothing more)"


class Interview(Terminal):
    """What the owner of a folder is asked, a question for each fact; what everybody knows is the default."""

    def completed(self, draft: Draft, answers: Answers, *, everything: bool) -> Answers:
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
                    default = LEAVE_OUT if entry.suggestion.identifies else typed_kind(entry.suggestion.kind)
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
                    changed = answered(answers, key, text)
                    # Refuses a column that is not there; the last question, also what does not fit together.
                    _ = declare(draft, changed) if key == "missing" else open_questions(draft, changed)
                    return changed
            except InputError as error:
                self.say(f"{error.what}{f'; allowed: {error.allowed}' if error.allowed else ''}; once more, please")
