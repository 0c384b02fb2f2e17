"""Values as JSON and TOML that any reader takes: no literal for infinity in JSON, one way to write a value in TOML.

Not `tomli-w`: it breaks every list over several lines, so `graph.toml`, `config.toml` and agreements would change.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def number_to_json(value: float) -> float | str | None:
    """A number that JSON can hold: infinities become "inf" and "-inf", and what is no number `None`."""
    if math.isfinite(value):
        return value
    # None and no text: "nan" would be read back as a number that passes every comparison as false.
    return None if math.isnan(value) else ("inf" if value > 0 else "-inf")


def json_safe(value: object) -> Any:
    """`value` with every infinite or undefined number spelt as `number_to_json` does, in mappings and sequences too."""
    if isinstance(value, Mapping):
        return {str(key): json_safe(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_safe(item) for item in value]
    return number_to_json(value) if isinstance(value, float) else value


def to_json(value: object, *, indent: int | None = None) -> str:
    """Strict JSON text of a value: never a `NaN` or `Infinity` literal.

    Args:
        value: what is written; what JSON has no kind for is written as its text.
        indent: spaces a level; None writes one line.
    """
    return json.dumps(json_safe(value), indent=indent, ensure_ascii=False, allow_nan=False, default=str)


def toml_value(value: object) -> str:
    """One TOML value: a truth value, a number, a list of them, or a quoted string for anything else."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return repr(int(value))
    if isinstance(value, float):
        return repr(float(value))  # a plain one: NumPy's says its type; TOML's words for infinity are Python's
    if isinstance(value, list | tuple):
        return f"[{', '.join(toml_value(item) for item in value)}]"
    # A JSON string is a TOML one, but for the one control character that JSON leaves as it is.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_lines(values: Mapping[str, Any]) -> list[str]:
    """A line `key = value` for each entry of a table; keys are bare words."""
    return [f"{key} = {toml_value(value)}" for key, value in values.items()]
