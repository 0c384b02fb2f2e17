"""Runs described in a file, which ``--config run.toml`` reads, and the schema that ``graphveil config`` prints.

The command line overrides the file, and the file overrides defaults.  Method, data and the options of a run become
defaults of the command; the method's settings stay apart until `collect` lays those of the command line over them.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType, NoneType
from typing import Annotated, Any, get_args, get_type_hints

import typer

from graphveil.cli.base import groups
from graphveil.cli.base.choices import AXES, find_method, flag, read_settings, refuse_bad_values
from graphveil.errors import InputError
from graphveil.files.reading import read_toml
from graphveil.files.serial import json_safe
from graphveil.methods.base.method import Method, Option
from graphveil.methods.base.settings import NAMES, NUMBERS, OPEN_WORDS, Bounds
from graphveil.methods.registry import METHODS
from graphveil.runtime.checks import KINDS
from graphveil.runtime.words import nearest

METHOD, DATA, SETTINGS, OPTIONS, SOURCE = "method", "data", "settings", "options", "source"
#: Options of a run as its file names them, and the parameters of commands that have another name.
_RUN_OPTIONS = (
    "seed",
    "repeats",
    "split",
    "controls",
    "device",
    "data_root",
    "private_share",
    "edges",
    "suspects_kept",
)
_PARAMETERS = {"controls": "no_controls", "suspects_kept": "keep_suspects"}
#: Facts that a run recorded about an exported collection; another run reads them from the collection again.
_RECORDED = re.compile("task|people|suspects|answered_.*")
#: How a tuned run found its settings; another run uses the settings and searches nothing.
OF_SEARCH = ("law", "mean_trials", "proxy", "sampler")
_META_KEY = "graphveil.config"


@dataclass(frozen=True)
class Choice:
    """An option of a run that is no setting of its method."""

    parameter: str  # its name among the commands' parameters
    kind: type  # type of its values in a file
    help: str  # one line
    low: int | None  # least value; None: no bound


@dataclass(frozen=True)
class File:
    """The file of a run, and the method's settings as it states them."""

    path: Path
    settings: Mapping[str, Any]


def _read_for(context: typer.Context, path: Path | None) -> Path | None:
    """Make the content of a file the defaults of the command that is being parsed."""
    if path is not None and not context.resilient_parsing:
        if path.is_dir():
            raise InputError("is a folder", where=f"--config {path}", remedy=f"name its file: {path / 'config.toml'}")
        try:
            content = read_toml(path, error=InputError)
        except FileNotFoundError as error:
            remedy = "name a run folder's config.toml"
            raise InputError("no such file", where=f"--config {path}", remedy=remedy) from error
        for key, value in content.items():
            kind = {METHOD: str, DATA: str, SETTINGS: dict, OPTIONS: dict}.get(key)
            if kind is None:
                raise _unknown(path, key, (METHOD, DATA, SETTINGS, OPTIONS))
            if not isinstance(value, kind):
                allowed = f"a table, [{key}]" if kind is dict else "a text"
                raise InputError(f"{value!r}", where=f"{path}, {key}", allowed=allowed)
        # As the parser's defaults: what is typed wins by itself.
        context.default_map = {**_arguments(path, content), **_run_choices(path, content.get(OPTIONS, {}))}
        context.meta[_META_KEY] = File(path, content.get(SETTINGS, {}))
    return path


Config = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        is_eager=True,
        callback=_read_for,
        help="A TOML file that describes a run, such as a run folder's config.toml. METHOD, DATA, options and --set "
        "typed here override the file; the file overrides defaults. Privacy noise is drawn anew.",
    ),
]


@cache
def choices() -> Mapping[str, Choice]:
    """The options of a run that a file may set, by their names in the file."""
    hints: dict[str, Any] = {}
    for group in (groups.Source, groups.Repetition, groups.Speed, groups.Export):
        hints |= get_type_hints(group, localns={"Path": Path}, include_extras=True)
    run_choices = {}
    for key in _RUN_OPTIONS:
        parameter = _PARAMETERS.get(key, key)
        kind, option = get_args(hints[parameter])
        value_type = next((part for part in get_args(kind) if part is not NoneType), kind)
        text = "Train the controls." if parameter == "no_controls" else str(option.help)
        run_choices[key] = Choice(parameter, str if value_type is Path else value_type, text, option.min)
    return MappingProxyType(run_choices)


def collect(context: typer.Context, method: str, info: Method, searched: Collection[str] = ()) -> dict[str, Any]:
    """The method's settings: those of the file of ``--config``, overridden by the command line.

    Args:
        context: of the command; `Config` has read the file.
        searched: settings that a search chooses; the file's values of them are ignored.

    Raises:
        InputError: as `choices.collect`; or the file names a setting that the method does not have, or a value that it
            does not accept.
    """
    command_settings = read_settings(method, info, context.params)
    file: File | None = context.meta.get(_META_KEY)
    file_settings = {} if file is None else _file_settings(file, method, info, {*command_settings, *searched})
    settings = {**file_settings, **command_settings}
    try:
        refuse_bad_values(method, settings)
    except InputError as error:
        raise error if file is None else _at_its_key(error, file.path, file_settings) from error
    return settings


def _file_settings(file: File, method: str, info: Method, command_settings: Set[str]) -> dict[str, Any]:
    """The settings of a file that the command line leaves in force."""
    values = {key: _setting(file.path, method, info, key, value) for key, value in file.settings.items()}
    # A run's file lists defaults too, and some of them conflict with other settings; left out they have the same value.
    defaults = {key for key in values if values[key] == info.options[key].default and key not in AXES}
    # A total replaces its parts, and a part the total; a curator's epsilon is the price of one training, no total.
    parts, replaced = {"epsilon_x", "epsilon_y"}, set(command_settings)
    if info.trust != "central":
        replaced |= parts if "epsilon" in command_settings else set()
        replaced |= {"epsilon"} if parts & command_settings else set()
    return {key: value for key, value in values.items() if key not in defaults | replaced}


def _at_its_key(error: InputError, path: Path, file_settings: Iterable[str]) -> InputError:
    """The refusal of a setting, with the file and key that state it, if the file does."""
    # The refusal of a setting begins with its name.
    key = next((key for key in sorted(file_settings) if re.match(rf"{key}\b", error.what)), None)
    if key is None:
        return error
    remedy = error.remedy or _override(key)
    return InputError(error.what, where=f"{path}, {SETTINGS}.{key}", allowed=error.allowed, remedy=remedy)


def _override(key: str) -> str:
    return f"change it there, or type --set {key}=VALUE"


def _arguments(path: Path, content: Mapping[str, Any]) -> dict[str, str]:
    arguments = {}
    if METHOD in content:
        try:
            arguments[METHOD] = find_method(content[METHOD]).name
        except InputError as error:
            raise InputError(
                error.what, where=f"{path}, {METHOD}", allowed=error.allowed, remedy=error.remedy
            ) from error
    source = content.get(OPTIONS, {}).get(SOURCE, content.get(DATA))
    if source is not None:
        if not isinstance(source, str):
            raise InputError(f"{source!r}", where=f"{path}, {OPTIONS}.{SOURCE}", allowed="a text")
        from graphveil.graphs.load import is_name

        # A relative folder is relative to the file, not to where the command is typed.
        folder = path.parent.absolute() / source
        arguments[DATA] = str(folder) if not is_name(source) and folder.is_dir() else source
    return arguments


def _run_choices(path: Path, options: Mapping[str, Any]) -> dict[str, Any]:
    params: dict[str, Any] = {}
    run_choices = choices()
    for key, value in options.items():
        if key in (SOURCE, *OF_SEARCH) or key.endswith("_sha256") or _RECORDED.fullmatch(key):
            continue
        if key not in run_choices:
            raise _unknown(path, f"{OPTIONS}.{key}", (*run_choices, SOURCE))
        choice = run_choices[key]
        where = f"{path}, {OPTIONS}.{key}"
        option_value = _value(value, choice.kind, where, remedy="change it there, or type the option")
        if choice.low is not None and option_value < choice.low:
            raise InputError(f"{value!r}", where=where, allowed=f"at least {choice.low}")
        params[choice.parameter] = not option_value if choice.parameter == "no_controls" else option_value
    if "edges" in params:
        # Like DATA: relative to the file.
        params["edges"] = str(path.parent.absolute() / params["edges"])
    return params


def _setting(path: Path, method: str, info: Method, key: str, value: object) -> Any:
    where = f"{path}, {SETTINGS}.{key}"
    if key not in info.options:
        names = info.options
        raise InputError(
            f"{method} has no such setting", where=where, allowed=", ".join(names), remedy=nearest(key, names)
        )
    if key in OPEN_WORDS and value == OPEN_WORDS[key]:  # see `choices`
        return None
    setting = _value(value, info.options[key].type, where, remedy=_override(key))
    file = path.parent.absolute() / str(setting)
    return str(file) if info.options[key].file and file.is_file() else setting


def _value(value: object, kind: type, where: str, *, remedy: str) -> Any:
    """A value of a file as ``kind``; a whole number passes as a float."""
    if kind is float and value in ("inf", "-inf"):
        return float(str(value))
    number = kind is float and isinstance(value, int)
    # True is an int in Python, and would pass as one epoch.
    if isinstance(value, bool) is not (kind is bool) or not (number or isinstance(value, kind)):
        raise InputError(f"{value!r}", where=where, allowed=KINDS.get(kind, "a text"), remedy=remedy)
    return kind(value)


def _unknown(path: Path, key: str, names: tuple[str, ...]) -> InputError:
    problem, where, last = "is not a key of a run", f"{path}, {key}", key.rpartition(".")[2]
    if last == "reproducible_noise":
        remedy = f"privacy noise is never fixed by a file; type {flag(last)} for an experiment"
        return InputError(problem, where=where, remedy=remedy)
    return InputError(problem, where=where, allowed=", ".join(names), remedy=nearest(last, names))


#: The dialect of JSON Schema that describes the files of runs.
DIALECT = "https://json-schema.org/draft/2020-12/schema"
_KINDS = {bool: "boolean", int: "integer", float: "number", str: "string"}
Schema = dict[str, Any]


def run_schema(method: Method | None = None) -> Schema:
    """The schema of the file of a run, with the settings of one method or (None) of the method that the file names.
    What depends on several settings, or on the data, the commands check.
    """
    methods = {entry.name: entry for entry in (METHODS.values() if method is None else (method,))}
    method_names: Schema = {"type": "string", "enum": list(methods), "description": "what to train"}
    properties: dict[str, Schema] = {SOURCE: {"type": "string", "description": "where the data of a finished run were"}}
    for key, choice in choices().items():
        low = {} if choice.low is None else {"minimum": choice.low}
        properties[key] = {"type": _KINDS[choice.kind], "description": choice.help, **low}
    properties |= {key: {"description": "how a tuned run was found; not searched again"} for key in OF_SEARCH}
    digests = {"_sha256$": {"type": "string", "description": "checksum of the file that a setting named"}}
    options = {"type": "object", "properties": properties, "patternProperties": digests, "additionalProperties": False}
    return {
        "$schema": DIALECT,
        "title": "A run of graphveil",
        "type": "object",
        "properties": {
            METHOD: method_names,
            DATA: {"type": "string", "description": "a named data set, or a folder, relative to this file"},
            SETTINGS: {"type": "object"} if method is None else _settings(method),
            OPTIONS: options,
        },
        "additionalProperties": False,
        **(_by_method(methods) if method is None else {}),
    }


def _by_method(methods: Mapping[str, Method]) -> Schema:
    """The settings of each method, under the condition that the file names it."""
    rules = [
        {
            "if": {"properties": {METHOD: {"const": name}}, "required": [METHOD]},
            "then": {"properties": {SETTINGS: {"$ref": f"#/$defs/{name}"}}},
        }
        for name in methods
    ]
    return {"allOf": rules, "$defs": {name: _settings(method) for name, method in methods.items()}}


def _settings(method: Method) -> Schema:
    properties = {key: _property(key, option) for key, option in method.options.items()}
    return {"type": "object", "description": method.summary, "properties": properties, "additionalProperties": False}


def _property(key: str, option: Option) -> Schema:
    property_schema: Schema = {"description": option.help}
    if option.default is not None:
        property_schema["default"] = json_safe(option.default)
    kind = _KINDS[option.type]
    if option.type is str:
        names = option.within or NAMES.get(key)
        return property_schema | {"type": kind} | ({"enum": list(names)} if names else {})
    # No range is invented: the schema must accept everything that the program accepts.
    bounds = NUMBERS.get(key, Bounds())
    ends = {"minimum": bounds.least, "maximum": bounds.most}
    ends |= {"exclusiveMinimum": bounds.above, "exclusiveMaximum": bounds.below}
    number = {"type": kind} | {word: end for word, end in ends.items() if end is not None}
    open_word = [OPEN_WORDS[key]] if key in OPEN_WORDS else []
    if not bounds.infinite:
        return property_schema | ({"anyOf": [number, {"enum": open_word}]} if open_word else number)
    # JSON has no infinity: editors pass TOML's on as a number beyond all others, or by its name.
    words = ["inf", *open_word]
    return property_schema | {"anyOf": [number, {"type": kind, "minimum": sys.float_info.max}, {"enum": words}]}


MethodOrNone = Annotated[
    str | None, typer.Argument(metavar="METHOD", help="The method whose files are described; without one, all of them.")
]


def group() -> typer.Typer:
    app = typer.Typer(help="Files that describe a run.")
    app.callback()(lambda: None)
    app.command()(schema)
    return app


def schema(method: MethodOrNone = None) -> None:
    """Print the JSON Schema (2020-12) of the files that --config takes, for editors that know TOML.

    Save it beside your file as graphveil.schema.json, and begin that file with "#:schema ./graphveil.schema.json".
    """
    described = run_schema(None if method is None else find_method(method))
    sys.stdout.write(json.dumps(described, indent=2, allow_nan=False) + "\n")
