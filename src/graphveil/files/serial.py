"""Values as JSON, TOML and YAML that any parser reads: no literal for infinity in JSON, one form for each value.

Not `tomli-w`, which breaks every list over several lines; not PyYAML: cards hold only mappings and lists of JSON
values.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from graphveil.errors import ModelFileError

_SEAL: Final = "sha256"


def number_to_json(value: float) -> float | str | None:
    """A number that JSON can hold: infinities become "inf" and "-inf", NaN becomes None."""
    if math.isfinite(value):
        return value
    # None and not "nan", which would be read back as a number for which every comparison is false.
    return None if math.isnan(value) else ("inf" if value > 0 else "-inf")


def json_safe(value: object) -> Any:
    """`value` with `number_to_json` applied to every float, also in mappings and sequences."""
    if isinstance(value, Mapping):
        return {str(key): json_safe(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_safe(item) for item in value]
    return number_to_json(value) if isinstance(value, float) else value


def to_json(value: object, *, indent: int | None = None) -> str:
    """Return a value as strict JSON text.

    Args:
        value: any part that JSON has no type for is written as its text.
        indent: spaces a level; None writes one line.
    """
    return json.dumps(json_safe(value), indent=indent, ensure_ascii=False, allow_nan=False, default=str)


def seal(content: Mapping[str, Any]) -> str:
    """Return the text of a file with a hash of its content: it detects edits, not forgery."""
    # The hash is of the values and not of the text, whose indentation may change with a version.
    return to_json({**content, _SEAL: _hash(content)}, indent=2) + "\n"


def unseal(content: Mapping[str, Any], file: Path) -> dict[str, Any]:
    """Return the content that was sealed.

    Args:
        content: as read from the file.
        file: for the ModelFileError if it was changed.
    """
    plain = {name: value for name, value in content.items() if name != _SEAL}
    if content.get(_SEAL) != _hash(plain):
        remedy = "put the file back as it was written, or remove it to have it made again"
        raise ModelFileError("was changed since it was written", where=str(file), remedy=remedy)
    return plain


def _hash(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(to_json(content).encode("utf-8", "replace")).hexdigest()


def toml_value(value: object) -> str:
    """One TOML value: a boolean, a number, a list or an inline table of them, else a quoted string."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return repr(int(value))
    if isinstance(value, float):
        return repr(float(value))  # not NumPy's repr, which names the type; TOML spells infinity as Python does
    if isinstance(value, list | tuple):
        return f"[{', '.join(toml_value(item) for item in value)}]"
    if isinstance(value, Mapping):
        return f"{{ {', '.join(toml_lines(value))} }}"
    # JSON strings are TOML strings, except for DEL, which JSON does not escape.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_lines(values: Mapping[str, Any]) -> list[str]:
    """A line `key = value` for each entry of a table; keys that are no bare words are quoted."""
    return [f"{_toml_key(key)} = {toml_value(value)}" for key, value in values.items()]


def _toml_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else toml_value(key)


def yaml_lines(values: Mapping[str, Any]) -> list[str]:
    """A block of YAML for a mapping with bare words as keys: mappings and lists inside, and JSON values.

    Every text is quoted, so that none is read as another type of value, ends the block or names an object. Markup is
    escaped, so that none of it is HTML, a link or code to a Markdown reader without front matter.
    """
    return [line for key, value in values.items() for line in _yaml_entry(key, value)]


def _yaml_entry(key: str, value: object) -> list[str]:
    lines = _yaml_block(value)
    nested = isinstance(value, Mapping | list | tuple) and value
    return [f"{key}:", *(f"  {line}" for line in lines)] if nested else [f"{key}: {lines[0]}"]


def _yaml_block(value: object) -> list[str]:
    if isinstance(value, Mapping) and value:
        return yaml_lines(value)
    if isinstance(value, list | tuple) and value:
        return [line for item in value for line in _yaml_item(item)]
    return [_yaml_text(value) if isinstance(value, str) else _yaml_number(value)]


def _yaml_item(item: object) -> list[str]:
    first, *rest = _yaml_block(item)
    return [f"- {first}", *(f"  {line}" for line in rest)]


def _yaml_text(value: str) -> str:
    plain = re.sub(r"[<>&`]|\](?=[(:])", lambda match: _yaml_escape(match[0]), to_json(value))
    # JSON does not escape characters that YAML forbids or reads as line breaks.
    return "".join(c if c.isprintable() else _yaml_escape(c) for c in plain)


def _yaml_escape(character: str) -> str:
    return f"\\U{ord(character):08x}"


def _yaml_number(value: object) -> str:
    text = to_json(value)
    # YAML 1.1 reads 1e-05, which JSON writes, as a text: a number needs a point.
    return text.replace("e", ".0e") if isinstance(value, float) and "e" in text and "." not in text else text
