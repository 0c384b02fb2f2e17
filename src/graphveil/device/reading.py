"""Readers of a task's facts; whatever deviates from the standard is `bad-task`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from fractions import Fraction

from graphveil.device.errors import DeviceError

#: At most nine digits after the point, so that sums of epsilons are whole numbers everywhere.
_DECIMAL = re.compile(r"(0|[1-9][0-9]{0,8})(\.[0-9]{1,9})?")
_REAL = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?(e-?[1-9][0-9]*)?")
_WHOLE = re.compile(r"0|[1-9][0-9]{0,99}")


def text(facts: Mapping[str, object], name: str) -> str:
    """Return a text that is not blank."""
    value = facts.get(name)
    # U+0020 only: languages differ in what else counts as a space.
    if not isinstance(value, str) or not value.strip(" "):
        raise DeviceError("bad-task", f"{name} is no text")
    return value


def texts(facts: Mapping[str, object], name: str) -> tuple[str, ...]:
    """Return a list of texts."""
    value = facts.get(name)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise DeviceError("bad-task", f"{name} is no list of texts")
    return tuple(value)


def named(facts: Mapping[str, object], name: str) -> tuple[str, ...]:
    """Return a list of names, one or more, all different."""
    names = texts(facts, name)
    if not names or len(set(names)) != len(names) or not all(names):
        raise DeviceError("bad-task", f"{name} is no list of different names")
    return names


def number(facts: Mapping[str, object], name: str) -> Fraction:
    """Return a decimal above 0, exactly."""
    value = facts.get(name)
    if not isinstance(value, str) or not _DECIMAL.fullmatch(value) or not Fraction(value):
        raise DeviceError("bad-task", f"{name} is not a decimal above 0 with at most nine digits after the point")
    return Fraction(value)


def real(facts: Mapping[str, object], name: str) -> float:
    """Return the binary64 number nearest to a decimal."""
    value = facts.get(name)
    if not isinstance(value, str) or not _REAL.fullmatch(value) or not math.isfinite(float(value)):
        raise DeviceError("bad-task", f"{name} is not a decimal")
    return float(value)


def whole(facts: Mapping[str, object], name: str, least: int, most: int) -> int:
    """Return a whole number of a range, given as a number or, from 2^53 on, as a text."""
    value = facts.get(name)
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise DeviceError("bad-task", f"{name} is no whole number from {least} to {most}")
    return value


def chosen(facts: Mapping[str, object], name: str, among: tuple[str, ...]) -> str:
    """Return one of some texts."""
    value = facts.get(name)
    if value not in among:
        raise DeviceError("bad-task", f"{name} is none of {', '.join(among)}")
    return str(value)
