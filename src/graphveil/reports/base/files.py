"""JSON as we write it; files and folders are written whole by `graphveil.files.writing`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from graphveil.errors import ModelFileError
from graphveil.files.serial import json_safe, to_json
from graphveil.files.writing import new_folder, refuse_used_folder, write_bytes, write_text

__all__ = [
    "json_safe",
    "new_folder",
    "refuse_used_folder",
    "sealed",
    "to_json",
    "unsealed",
    "write_bytes",
    "write_text",
]

_SEAL: Final = "sha256"


def sealed(content: Mapping[str, Any]) -> str:
    """Return the text of a file that carries a hash of what it holds: an edit is noticed, a forger is not."""
    # The hash is of the values and not of the text: indentation may change with a version, what was found may not.
    return to_json({**content, _SEAL: _hash(content)}, indent=2) + "\n"


def unsealed(content: Mapping[str, Any], file: Path) -> dict[str, Any]:
    """Return what `sealed` was given.

    Args:
        file: for the ModelFileError, where it was changed.
    """
    plain = {name: value for name, value in content.items() if name != _SEAL}
    if content.get(_SEAL) != _hash(plain):
        remedy = "put the file back as it was written, or remove it to have it made again"
        raise ModelFileError("was changed since it was written", where=str(file), remedy=remedy)
    return plain


def _hash(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(to_json(content).encode("utf-8", "replace")).hexdigest()
