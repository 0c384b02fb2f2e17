"""``graphveil config``: the schema of files for ``--config``."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from graphveil.cli.train.configured import DATA, METHOD, OF_SEARCH, OPTIONS, SETTINGS, SOURCE, choices
from graphveil.files.serial import json_safe
from graphveil.methods.base.method import Method as Entry
from graphveil.methods.base.method import Option
from graphveil.methods.base.options import NAMES, NUMBERS, OPEN_WORDS, Bounds
from graphveil.methods.registry import METHODS

# The JSON Schema of files that describe a run, from the methods' entries and the commands' options.


DIALECT = "https://json-schema.org/draft/2020-12/schema"
_KINDS = {bool: "boolean", int: "integer", float: "number", str: "string"}
Schema = dict[str, Any]


def run_schema(method: Entry | None = None) -> Schema:
    """The schema of the file of a run, with the settings of one method or (None) of the method that the file names.
    What depends on several settings, or on the data, the commands check.
    """
    methods = {entry.name: entry for entry in (METHODS.values() if method is None else (method,))}
    method_names: Schema = {"type": "string", "enum": list(methods), "description": "what to train"}
    return {
        "$schema": DIALECT,
        "title": "A run of graphveil",
        "type": "object",
        "properties": {
            METHOD: method_names,
            DATA: {"type": "string", "description": "a named data set, or a folder, from where this file lies"},
            SETTINGS: {"type": "object"} if method is None else _settings(method),
            OPTIONS: _options(),
        },
        "additionalProperties": False,
        **(_by_method(methods) if method is None else {}),
    }


def _by_method(methods: Mapping[str, Entry]) -> Schema:
    """The settings of each method, under the condition that the file names it."""
    rules = [
        {
            "if": {"properties": {METHOD: {"const": name}}, "required": [METHOD]},
            "then": {"properties": {SETTINGS: {"$ref": f"#/$defs/{name}"}}},
        }
        for name in methods
    ]
    return {"allOf": rules, "$defs": {name: _settings(method) for name, method in methods.items()}}


def _settings(method: Entry) -> Schema:
    properties = {key: _setting(key, option) for key, option in method.options.items()}
    return {
        "type": "object",
        "description": method.summary,
        "properties": properties,
        "additionalProperties": False,
    }


def _setting(key: str, option: Option) -> Schema:
    property_schema: Schema = {"description": option.help}
    if option.default is not None:
        property_schema["default"] = json_safe(option.default)
    kind = _KINDS[option.type]
    if option.type is str:
        names = option.within or NAMES.get(key)
        return property_schema | {"type": kind} | ({"enum": list(names)} if names else {})
    # No range is invented: the schema must accept everything that the program accepts.
    bounds = NUMBERS.get(key, Bounds())
    number = {"type": kind} | {word: end for word, end in _ends(bounds) if end is not None}
    open_word = [OPEN_WORDS[key]] if key in OPEN_WORDS else []
    if not bounds.infinite:
        return property_schema | ({"anyOf": [number, {"enum": open_word}]} if open_word else number)
    # JSON has no infinity: editors pass TOML's on as a number beyond all others, or by its name.
    words = ["inf", *open_word]
    return property_schema | {"anyOf": [number, {"type": kind, "minimum": sys.float_info.max}, {"enum": words}]}


def _ends(bounds: Bounds) -> tuple[tuple[str, float | None], ...]:
    return (
        ("minimum", bounds.least),
        ("maximum", bounds.most),
        ("exclusiveMinimum", bounds.above),
        ("exclusiveMaximum", bounds.below),
    )


def _options() -> Schema:
    properties: dict[str, Schema] = {SOURCE: {"type": "string", "description": "where the data of a finished run lay"}}
    for key, choice in choices().items():
        low = {} if choice.low is None else {"minimum": choice.low}
        properties[key] = {"type": _KINDS[choice.kind], "description": choice.help, **low}
    properties |= {key: {"description": "how a tuned run was found; not searched again"} for key in OF_SEARCH}
    digests = {"_sha256$": {"type": "string", "description": "checksum of the file that a setting named"}}
    return {
        "type": "object",
        "properties": properties,
        "patternProperties": digests,
        "additionalProperties": False,
    }


Method = Annotated[
    str | None,
    typer.Argument(metavar="METHOD", help="The method whose files are described; without one, all of them."),
]


def group() -> typer.Typer:
    """The commands about files of settings."""
    app = typer.Typer(help="Files that describe a run.")
    app.callback()(lambda: None)
    app.command()(schema)
    return app


def schema(method: Method = None) -> None:
    """Print the JSON Schema (2020-12) of the files that --config takes, for editors that know TOML.

    Save it beside your file as graphveil.schema.json, and begin that file with "#:schema ./graphveil.schema.json".
    """
    from graphveil.cli.base.choices import find_method

    described = run_schema(None if method is None else find_method(method))
    sys.stdout.write(json.dumps(described, indent=2, allow_nan=False) + "\n")
