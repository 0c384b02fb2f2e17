"""Suggestions for a mistyped name: the nearest one that is allowed."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable


def nearest(name: str, names: Iterable[str]) -> str | None:
    """``did you mean x?`` for the nearest of ``names``, if any is near.

    Args:
        name: as it was typed.
        names: the allowed names.

    Returns:
        A question to end an error with; None: no name is near.
    """
    matches = difflib.get_close_matches(name, list(names), n=1, cutoff=0.5)
    return f"did you mean {matches[0]}?" if matches else None


def suggested(message: str) -> str:
    """The message of an error, with the nearest allowed name after it if it refuses a name.

    Args:
        message: one line: what was wrong, and after "allowed:" what is accepted.
    """
    problem, allowed, listed = message.partition("; allowed: ")
    if not allowed or "did you mean" in listed:
        return message
    quoted = re.findall(r"'([^']+)'", problem)
    # The allowed values may include phrases such as "or inf"; only names are suggested.
    names = [name for name in listed.partition(";")[0].split(", ") if re.fullmatch(r"[a-z][a-z0-9_-]*", name)]
    question = nearest(quoted[-1].lower().replace("_", "-"), names) if quoted else None
    return f"{message}; {question}" if question else message
