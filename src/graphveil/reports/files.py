"""JSON as we write it; files and folders are written whole by `graphveil.writing`."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from graphveil.writing import new_folder, refuse_used_folder, write_bytes, write_text

__all__ = ["json_safe", "new_folder", "refuse_used_folder", "to_json", "write_bytes", "write_text"]


def json_safe(value: Any) -> Any:
    """``value`` with every infinite or undefined number spelt as a word, since JSON has no literal for them.

    Mappings and sequences are walked; ``inf`` becomes ``"inf"``, ``-inf`` ``"-inf"`` and ``nan`` ``None``.
    """
    if isinstance(value, Mapping):
        return {str(key): json_safe(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_safe(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value


def to_json(value: Any, *, indent: int | None = None) -> str:
    """Strict JSON text of ``value``: never a ``NaN`` or ``Infinity`` literal."""
    return json.dumps(json_safe(value), indent=indent, ensure_ascii=False, allow_nan=False, default=str)
