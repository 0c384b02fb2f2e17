"""The name that was meant: the nearest of those that are allowed."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable


def nearest(name: str, names: Iterable[str]) -> str | None:
    """``did you mean x?`` for the nearest of ``names``, if any is near.

    Args:
        name: as it was typed.
        names: the names that are allowed.

    Returns:
        A question to end an error with; None where nothing is like it.
    """
    matches = difflib.get_close_matches(name, list(names), n=1, cutoff=0.5)
    return f"did you mean {matches[0]}?" if matches else None


def suggested(message: str) -> str:
    """A refusal of a name with the nearest allowed one behind it; others as they are.

    Args:
        message: of one line, as errors are: what was found, and after "allowed:" what would have been accepted.
    """
    problem, allowed, listed = message.partition("; allowed: ")
    if not allowed or "did you mean" in listed:
        return message
    quoted = re.findall(r"'([^']+)'", problem)
    # Sentences among what is allowed are no names: "or inf" is not what somebody meant.
    names = [name for name in listed.partition(";")[0].split(", ") if re.fullmatch(r"[a-z][a-z0-9_-]*", name)]
    question = nearest(quoted[-1].lower().replace("_", "-"), names) if quoted else None
    return f"{message}; {question}" if question else message
