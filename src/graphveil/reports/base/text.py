"""Numbers and names as people read them. Pure functions; an epsilon or delta is printed by `rounded_up` alone."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path


def printable(text: object) -> str:
    """``text`` on one line without control characters, so that no name moves the cursor or forges a line."""
    return re.sub(r"\s+", " ", "".join(c if c.isprintable() else " " for c in str(text))).strip()


def spreadsheet(text: str) -> str:
    """``text`` as a cell that no spreadsheet evaluates and no terminal executes: an apostrophe is put before ``=``,
    ``+``, ``-`` and ``@``, unless the cell is a plain number; control characters are escaped.
    """
    plain = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    formula = plain.lstrip().startswith(("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20"))
    return f"'{plain}" if formula and not _NUMBER.fullmatch(plain) else plain


_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def number(value: float) -> str:
    """A parameter as people write it: ``1``, ``0.25``, ``1e-06``, ``inf``."""
    return "inf" if value == math.inf else f"{value:.6g}"


def percent(value: float) -> str:
    """A fraction as per cent with one decimal, without the sign: ``0.8213`` -> ``82.1``."""
    return f"{100 * value:.1f}"


def points(value: float) -> str:
    """A difference of fractions in signed percentage points: ``+1.2``."""
    text = f"{100 * value:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text


def seconds(value: float) -> str:
    """``0.42`` -> ``0.4 s``, ``95`` -> ``1 min 35 s``, ``4000`` -> ``1 h 6 min``."""
    if value < 59.95:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def memory(megabytes: float) -> str:
    """``512.3`` -> ``512 MB``, ``2048`` -> ``2.0 GB``."""
    return f"{megabytes:.0f} MB" if megabytes < 1000 else f"{megabytes / 1000:.1f} GB"


def moment(value: str) -> str:
    """``2026-01-02T03:04:05+00:00`` -> ``2026-01-02 03:04``."""
    return value[:16].replace("T", " ")


def is_price(name: str) -> bool:
    """Whether a setting or a field is an epsilon or a delta, by its name: ``epsilon_x``, ``delta``."""
    return bool({"epsilon", "delta"} & set(name.split("_")))


def setting_text(name: str, value: object) -> str:
    """The value of a setting as :func:`value_text`, an epsilon or delta rounded up.

    Args:
        name: decides whether the value is an epsilon or delta.
    """
    if not (is_price(name) and isinstance(value, float)):
        return value_text(value)
    from graphveil.privacy.accounting.printed import rounded_up  # late: it imports numpy, which help texts do not need

    return rounded_up(value)


def value_text(value: object) -> str:
    """The value of a setting: ``yes``, ``no``, ``none``, a number as people write it, anything else as text."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    return number(value) if isinstance(value, float) else str(value)


def settings(values: Mapping[str, object]) -> str:
    """Settings on one line: ``epochs = 100, model = sage; not set: hops``."""
    listed = ", ".join(f"{key} = {setting_text(key, value)}" for key, value in values.items() if value is not None)
    unset = ", ".join(key for key, value in values.items() if value is None)
    return "; ".join(part for part in (listed, f"not set: {unset}" if unset else "") if part) or "none"


def markdown(value: object) -> str:
    r"""A value on one line, with Markdown's markup escaped (``a|b`` -> ``a\|b``)."""
    literal = re.sub(r"([\\`*<>|~])", r"\\\1", printable(value))
    literal = re.sub(r"\](?=[(:])", r"\\]", literal)  # a link, or the definition of one
    return re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", literal)


def plain_name(data: str) -> str:
    """A data set's name, or the last part of its path, as a valid file name: ``/x/my data`` -> ``my-data``."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", Path(data).name).strip(".-")[:60] or "data"
