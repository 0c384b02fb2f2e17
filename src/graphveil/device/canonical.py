"""Canonical JSON: one spelling for each value, so that a hash of the bytes is a hash of the value.

Objects with ASCII keys in ascending order, arrays, texts, whole numbers of size below 2^53, true and false; no
spaces, no fractions (they are texts), no null, at most 32 levels of arrays and objects; texts as UTF-8 with JSON's
shortest escapes.  Bytes with another spelling are refused.
"""

from __future__ import annotations

import json
from typing import Any

from graphveil.device.errors import DeviceError

#: Larger whole numbers are not exact in every language.
LIMIT = 1 << 53
#: Levels of nested arrays and objects; readers differ in how many they accept.
DEEPEST = 32


def canonical(value: object) -> bytes:
    """Return the canonical bytes of a value; DeviceError `not-canonical`, for a value that has none."""
    _check(value, DEEPEST)
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise DeviceError("not-canonical", "a text that is not Unicode") from error


def parse(data: bytes) -> Any:
    """Return the value of canonical bytes; DeviceError `not-canonical`, where the bytes are no JSON or another
    spelling."""
    try:
        value = json.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise DeviceError("not-canonical", "no JSON in UTF-8") from error
    # One comparison finds all deviations: spaces, double or unordered keys, 1.0 for 1, longer escapes.
    if canonical(value) != data:
        raise DeviceError("not-canonical", "another spelling than the canonical one")
    return value


def _check(value: object, levels: int) -> None:
    if isinstance(value, dict | list | tuple) and not levels:
        raise DeviceError("not-canonical", f"more than {DEEPEST} arrays and objects inside each other")
    if isinstance(value, dict):
        if not all(isinstance(key, str) and key.isascii() for key in value):
            raise DeviceError("not-canonical", "a key that is not ASCII")
        for item in value.values():
            _check(item, levels - 1)
    elif isinstance(value, list | tuple):
        for item in value:
            _check(item, levels - 1)
    elif isinstance(value, int) and not isinstance(value, bool):
        if not -LIMIT < value < LIMIT:
            raise DeviceError("not-canonical", f"the number {value}, of size 2^53 or more")
    elif not isinstance(value, str | bool):
        raise DeviceError("not-canonical", f"a {type(value).__name__}; fractions are texts")
