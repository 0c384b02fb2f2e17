"""Checks of parameters; a refusal names the parameter: `dropout is 1.0; allowed: a number in [0, 1)`.

Parameters are passed by the names that users know. NaN lies in no interval, and True, an int to Python, is no number.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final, TypeGuard

from graphveil.errors import InputError
from graphveil.runtime.words import nearest

#: The name of each type in refusals.
KINDS: Final = {
    bool: "true or false",
    int: "a whole number",
    float: "a number, or inf",
    str: "a text",
    list: "a list",
    dict: "a table",
}


def is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def require_number(interval: str, where: str | None = None, advice: str = "", /, **named: object) -> None:
    """Raise InputError for what is no number in an interval.

    Args:
        interval: as mathematics writes it, "(0, 1]" or "[0, inf)".
        advice: how to choose a value, printed after what is allowed.

    >>> require_number("(0, 1]", share=0.0)
    Traceback (most recent call last):
    graphveil.errors.InputError: share is 0.0; allowed: a number in (0, 1]
    """
    low, high = map(float, interval[1:-1].split(","))
    for name, value in named.items():
        inside = is_number(value) and low <= value <= high
        if not inside or (value == low and interval[0] == "(") or (value == high and interval[-1] == ")"):
            least = f"{'above' if interval[0] == '(' else 'of at least'} {low:g}"
            above = f"a number {least}, or inf" if interval[-1] == "]" else f"a finite number {least}"
            allowed = above if high == math.inf else f"a number in {interval}"
            raise InputError(f"{name} is {value_text(value)}", where=where, allowed=allowed + advice)


def require_whole(low: int, high: int | None = None, where: str | None = None, /, **named: object) -> None:
    """Raise InputError for what is no whole number in low..high; None: no upper end."""
    for name, value in named.items():
        if not is_whole(value) or value < low or (high is not None and value > high):
            allowed = f"of at least {low}" if high is None else f"in {low}..{high}"
            raise InputError(f"{name} is {value_text(value)}", where=where, allowed=f"a whole number {allowed}")


def as_path(value: str | os.PathLike[str], name: str = "path") -> Path:
    """Return a text or path as a Path; InputError for anything else.

    Args:
        name: of the parameter.
    """
    if not isinstance(value, str | os.PathLike):
        raise InputError(f"{name} is {value_text(value)}", allowed="a text or a path")
    return Path(value)


def require_trained(nodes: int) -> None:
    """Raise InputError where a training has no nodes."""
    if nodes == 0:
        raise InputError("no training node carries a label", remedy="give the split some training nodes")


def require_choice(allowed: Collection[str], where: str | None = None, /, **named: object) -> None:
    """Raise InputError for what is none of the texts allowed."""
    for name, value in named.items():
        # Lists and tables cannot be hashed, so that looking one up would raise another error.
        if not isinstance(value, str) or value not in allowed:
            raise InputError(f"{name} is {value!r}", where=where, allowed=", ".join(allowed))


def require_known(
    keys: Iterable[str],
    allowed: Collection[str],
    where: str,
    unknown: str = "unknown key",
    refusal: type[InputError] = InputError,
) -> None:
    """Raise an error for a key that is none of those allowed, which names the nearest of them."""
    for key in keys:
        if key not in allowed:
            what = f"{unknown} {key!r}"
            raise refusal(what, where=where, allowed=", ".join(allowed), remedy=nearest(key, allowed))


def value_text(value: object) -> str:
    """A value as refusals print it."""
    try:
        return repr(value)
    except ValueError:  # Python writes no whole number of more than 4,300 digits
        return "a number of more than 4300 digits"
