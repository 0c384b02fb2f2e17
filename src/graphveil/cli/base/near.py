"""The name that was meant: the nearest of those that are allowed."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str | None:
    """``did you mean x?`` for the nearest of ``known``, if any is near.

    Args:
        name: as it was typed.
        known: the names that are allowed.

    Returns:
        A question to end an error with; None where nothing is like it.
    """
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"did you mean {near[0]}?" if near else None


def suggested(message: str) -> str:
    """A refusal of a name with the nearest allowed one behind it; others as they are.

    Args:
        message: of one line, as errors are: what was found, and after "allowed:" what would have been accepted.
    """
    what, allowed, names = message.partition("; allowed: ")
    if not allowed or "did you mean" in names:
        return message
    quoted = re.findall(r"'([^']+)'", what)
    # Sentences among what is allowed are no names: "or inf" is not what somebody meant.
    known = [name for name in names.partition(";")[0].split(", ") if re.fullmatch(r"[a-z][a-z0-9_-]*", name)]
    near = nearest(quoted[-1].lower().replace("_", "-"), known) if quoted else None
    return f"{message}; {near}" if near else message
