"""What to type next, for an advice."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from graphveil.cli import choices
from graphveil.privacy.printed import rounded_up

if TYPE_CHECKING:
    from graphveil.methods.advise.advice import Advice


def command_of(advice: Advice, data: str) -> str | None:
    """The command to run next, or None where nothing should be run.

    Args:
        advice: what was found.
        data: as it was typed.
    """
    if advice.rule is None or advice.rule.method is None:
        return None
    # A folder's name may hold spaces, and a user pastes this line.
    where = shlex.quote(data)
    words = [f"{choices.flag(key)} {_spelt(value)}" for key, value in advice.settings.items()]
    # A federation is no training of one party, and a release is a command of its own.
    if advice.trust == "federation":
        made = f"graphveil federation split {where} --out parts"
        joined = "graphveil federation init --from parts --out run --mode guesses --set unit=person"
        return f"{made} && {joined} {' '.join(words)}"
    if advice.trust == "release":
        return f"graphveil release {advice.rule.method} {where} {' '.join(words)} --out runs/released"
    return f"graphveil train {advice.rule.method} {where} {' '.join(words)}"


def question_command(advice: Advice, data: str) -> str | None:
    """The command that also asks people without a label one question, where labels alone are advised.

    Args:
        advice: what was found.
        data: as it was typed.
    """
    rule = advice.rule
    if rule is None or rule.method != "label-pool" or "features" not in advice.facts.hidden or advice.epsilon is None:
        return None
    asked = shlex.quote(f"question={advice.facts.question}")
    return f"graphveil train answer-pool {shlex.quote(data)} --epsilon {_spelt(advice.epsilon)} --set {asked}"


def _spelt(epsilon: float | None) -> str:
    return "none" if epsilon is None else rounded_up(epsilon)


def told(advice: Advice, data: str) -> dict[str, object]:
    """The advice as JSON types, with the next command."""
    asked = question_command(advice, data)
    more = {} if asked is None else {"question_command": asked}
    return {**advice.to_dict(), "command": command_of(advice, data), **more}
