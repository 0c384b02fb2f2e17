"""The questions of `graphveil data init` at a terminal: one for each fact, with what everybody knows as the default."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from graphveil.cli.base.console import complain
from graphveil.cli.data.typed import KINDS, LEAVE_OUT, NONE, answered, typed_kind, with_missing
from graphveil.errors import InputError
from graphveil.graphs.drafts.answers import WHY_NOT, Answers, declare, open_questions, unanswered
from graphveil.graphs.drafts.draft import Draft, Feature
from graphveil.reports.base.text import printable

_QUESTIONS: Final = {
    "id": "Which column of nodes identifies a person?",
    "label": f"Which column is the label, which a network learns to predict? ({NONE}: there is no such column)",
    "source": "Which column of edges is the source?",
    "target": "Which column of edges is the target?",
    "private": f"What belongs to the people, out of features, labels and edges? (with commas between; {NONE})",
    "classes": "Which classes are there, also those that nobody has? (in order, with commas between; N: 0 to N - 1)",
    "directed": "Do edges have a direction? (yes, no)",
    "dimension": "How many features does the features file have?",
}
_MISSING: Final = "What stands for a missing value? (such as age=60 or team=own category; Enter: nothing more)"


class _EndError(Exception):
    """The person has ended the input."""


@dataclass(frozen=True)
class Interview:
    """A person at a terminal."""

    hear: Callable[[], str | None]  # the next line typed; None: the input has ended
    say: Callable[[str], None]  # prints a line
    show: Callable[[str], None]  # prints a question

    @classmethod
    def here(cls) -> Interview | None:
        """Return an interview on this terminal; None: there is no terminal."""
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            return None
        return cls(lambda: sys.stdin.readline() or None, complain, _show)

    def completed(self, draft: Draft, answers: Answers, *, everything: bool) -> Answers:
        """Return the answers, completed by the person, or as far as they were when the input ended.

        Args:
            draft: of the folder.
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
                if is_open or (everything and key in draft.roles):
                    default = None if is_open else draft.roles[key]
                    answers = self._ask(question, default, partial(_accepted, draft, answers, key))
            self.say(f"Kinds of columns: {KINDS}; {LEAVE_OUT}: nothing reads it")
            for feature in unanswered(draft, answers):
                if everything or not feature.is_settled:
                    answers = self._about(draft, answers, feature)
            return self._missing(draft, answers)
        except _EndError:
            self.say("")
            return answers

    def _about(self, draft: Draft, answers: Answers, feature: Feature) -> Answers:
        suggestion = feature.suggestion
        many = f" ({len(feature.columns)} columns)" if len(feature.columns) > 1 else ""
        reason = f" ({suggestion.reason})" if feature.is_settled else ""
        default = LEAVE_OUT if suggestion.identifies else typed_kind(suggestion.kind)
        question = f"What may {printable(feature.name)}{many} hold?{reason}"
        return self._ask(question, default, partial(_accepted, draft, answers, f"columns.{feature.name}"))

    def _missing(self, draft: Draft, answers: Answers) -> Answers:
        while True:
            changed = self._ask(_MISSING, "", partial(_with_missing, draft, answers))
            if changed == answers:
                return answers
            answers = changed

    def _ask(self, question: str, default: str | None, accept: Callable[[str], Answers]) -> Answers:
        """Ask until an answer is accepted."""
        while True:
            self.show(f"{question}{f' [{printable(default)}]' if default else ''}: ")
            line = self.hear()
            if line is None:
                raise _EndError
            text = line.strip() or default
            if text is None:
                continue
            try:
                return accept(text)
            except InputError as error:
                self.say(f"  {error.what}{f'; allowed: {error.allowed}' if error.allowed else ''}; once more, please")


def _accepted(draft: Draft, answers: Answers, key: str, text: str) -> Answers:
    changed = answered(answers, key, text)
    # Refuses a column that is not there.
    open_questions(draft, changed)
    return changed


def _with_missing(draft: Draft, answers: Answers, text: str) -> Answers:
    changed = with_missing(answers, text) if text else answers
    declare(draft, changed)
    return changed


def _show(question: str) -> None:
    sys.stderr.write(question)
    sys.stderr.flush()
