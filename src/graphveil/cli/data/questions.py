"""The questions of `graphveil data init` at a terminal: one for each fact, with what everybody knows as the default."""

from __future__ import annotations

from typing import Final

from graphveil.cli.base.terminal import InputEnded, Terminal
from graphveil.cli.data.typed import KINDS, LEAVE_OUT, answered, typed_kind
from graphveil.errors import InputError
from graphveil.graphs.drafts.answers import WHY_NOT, Answers, declare, open_questions, unanswered
from graphveil.graphs.drafts.draft import Draft
from graphveil.reports.base.text import printable

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
    """What the owner of a folder is asked."""

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
