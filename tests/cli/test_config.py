"""Runs made again from a file: what is read, what is refused, and the schema of such files."""

from __future__ import annotations

import json
import math
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import typer
import typer.testing

from graphveil.cli.base.options import Method
from graphveil.cli.train.configured import Config, choices, collect, run_schema
from graphveil.errors import InputError
from graphveil.methods import METHODS
from graphveil.methods.registry import build_method, resolved_choice
from graphveil.reports.runs import folder as run_folder
from tests.cli.conftest import Terminal
from tests.graphs.made import folder as own_folder
from tests.reports import made

ROOT = Path(__file__).parents[2]
OPTIONS = {"seed": 3, "repeats": 2, "split": "random", "controls": False, "device": "cpu", "source": "digits"}
CASES: tuple[dict[str, Any], ...] = ({}, {"epsilon_x": None}, {"epsilon_x": math.inf}, {"epsilon": 2.0})


def written(name: str, settings: dict[str, Any]) -> str:
    """The config.toml of a run of a method with these settings, without the training."""
    choice = resolved_choice(name, settings, classes=3)
    built = build_method(name, settings, classes=3)
    used = choice.method.load_family().used_settings(built, METHODS[name].settle(settings))
    return run_folder.config_toml(made.record(method=name, data="digits", settings=used, options=OPTIONS))


def valid(text: str, schema: dict[str, Any]) -> bool:
    return bool(jsonschema.Draft202012Validator(schema).is_valid(tomllib.loads(text)))


def run(type_in: Terminal, *words: object) -> tuple[dict[str, Any], dict[str, Any]]:
    """The answer of a training, and its config.toml."""
    answer = type_in("train", *words, "--json").good
    return answer.json, tomllib.loads((Path(answer.json["run"]) / "config.toml").read_text())


def collected(name: str, file: str) -> dict[str, Any]:
    """The settings that a command takes from a file."""
    settings: dict[str, Any] = {}
    app = typer.Typer()

    @app.command()
    def command(context: typer.Context, method: Method, config: Config = None) -> None:
        settings.update(collect(context, method, METHODS[method]))

    done = typer.testing.CliRunner().invoke(app, [name, "--config", file], catch_exceptions=False)
    assert done.exit_code == 0
    return settings


def accepted(name: str, case: dict[str, Any]) -> bool:
    """Whether a method takes these settings: some ask for features in any case."""
    try:
        build_method(name, case, classes=3)
    except InputError:
        return False
    return True


@pytest.mark.parametrize("name", METHODS)
def test_what_a_run_of_a_method_writes_is_valid_and_builds_it_again(name: str, tmp_path: Path) -> None:
    for case in CASES:
        if not set(case) <= set(METHODS[name].options) or not accepted(name, case):
            continue
        text = written(name, case)
        assert valid(text, run_schema())
        assert valid(text, run_schema(METHODS[name]))
        (tmp_path / "run.toml").write_text(text)
        assert written(name, collected(name, str(tmp_path / "run.toml"))) == text


SMALL = 'method = "lpgnn"\ndata = "social-100"\n'


#: Around the ends of all ranges, and the first settings that some others need beside them.
PROBES = (-1, 0, 1e-9, 0.005, 0.01, 0.1, 0.125, 0.5, 0.99, 1, 1.5, 8, 9, 20, 21, 64, 65, 100, 101, 200, 201, math.inf)
LARGE = (1000, 1001, 4096, 4097, 10**4, 10**4 + 1, 10**6, 10**6 + 1, 10**9, 10**9 + 1)
BESIDE: dict[str, dict[str, Any]] = {
    "delta": {"mechanism": "gaussian"},
    "relationships": {"unit": "k-edges"},
    "chains": {"edges": "mcmc"},
    "tree_share": {"edges": "mcmc"},
    "count_share": {"edges": "lap-graph"},
}


@pytest.mark.parametrize("name", METHODS)
def test_the_schema_refuses_no_number_that_a_method_takes(name: str) -> None:
    options = METHODS[name].options
    checker = jsonschema.Draft202012Validator(run_schema(METHODS[name]))
    for key, option in options.items():
        if option.type not in (int, float):
            continue
        beside = {option: value for option, value in BESIDE.get(key, {}).items() if option in options}
        for probe in (*PROBES, *LARGE):
            if option.type is float or float(probe).is_integer():
                settings = {**beside, key: option.type(probe)}
                assert not accepted(name, settings) or checker.is_valid({"settings": settings}), settings


def test_a_named_value_of_the_schema_is_one_that_the_method_takes() -> None:
    """Each name alone, or refused because of what it needs beside it, never as unknown."""
    for name, info in METHODS.items():
        for key, schema in run_schema(info)["properties"]["settings"]["properties"].items():
            for value in schema.get("enum", ()):
                try:
                    build_method(name, {key: value}, classes=3)
                except InputError as error:
                    assert "not known" not in str(error), (name, key, value)


#: Files with one mistake, and what is said of it; those that no schema can see.
WRONG = [
    (SMALL + "[settings]\ndropuot = 0.1", "run.toml, settings.dropuot: lpgnn has no such setting; allowed: epsilon_x"),
    (SMALL + "[settings]\ndropout = 1", "run.toml, settings.dropout: dropout is 1.0; allowed: a number in [0, 1)"),
    (SMALL + "[settings]\ndropout = 1", "; change it there, or type --set dropout=VALUE"),
    (SMALL + "[settings]\nepochs = 1.5", "run.toml, settings.epochs: 1.5; allowed: a whole number"),
    (SMALL + '[settings]\nepsilon_y = "none"', "run.toml, settings.epsilon_y: "),
    (SMALL + "[options]\nrepeats = 0", "run.toml, options.repeats: 0; allowed: at least 1"),
    (SMALL + "[options]\nsed = 1", "run.toml, options.sed: is not a key of a run; allowed: seed"),
    (SMALL + "[options]\nreproducible_noise = 1", "privacy noise is never fixed by a file"),
    (SMALL + "[setings]", "did you mean settings?"),
    (SMALL + '[settings]\nmechansim = "laplace"', "did you mean mechanism?"),
    ("settings = 1", "run.toml, settings: 1; allowed: a table, [settings]"),
    ('method = "lpgn"', "did you mean lpgnn?"),
]
BEYOND = [
    (SMALL + "[settings]\nepsilon = 2\nepsilon_x = 2", "settings.epsilon: epsilon is a total that is split for you"),
    ('method = "lpgnn', "run.toml: "),
    ('method = "lpgnn"\ndata = "digts"', "did you mean digits?"),
    ('method = "lpgnn"', "DATA is missing"),
]


@pytest.mark.parametrize(("content", "says"), [*WRONG, *BEYOND])
def test_a_wrong_file_is_refused_by_schema_and_command_by_file_and_key(
    content: str, says: str, type_in: Terminal
) -> None:
    by_schema = (content, says) in WRONG
    assert not by_schema or not valid(content, run_schema())
    Path("run.toml").write_text(content)
    answer = type_in("train", "--config", "run.toml")
    answer.refused("error: run.toml, " if by_schema else "error: ", says)
    assert [entry.name for entry in Path.cwd().iterdir()] == ["run.toml"]


@pytest.mark.usefixtures("quick_pages")
def test_a_run_is_made_again_with_other_noise_and_what_is_typed_comes_first(type_in: Terminal) -> None:
    public = ("--epsilon-x", "inf", "--epsilon-y", "inf", "--epochs", 2, "--seed", 5, "--no-controls")
    first, config = run(type_in, "lpgnn", "social-100", *public)
    assert set(config["options"]) - {"source"} <= set(choices())
    again, same = run(type_in, "--config", f"{first['run']}/config.toml")
    # Without noise everything is fixed by the seed; with it the reports differ, and so does what they teach.
    assert (again["accuracy"], same) == (first["accuracy"], config)
    typed = ("--epsilon-x", 1, "--epsilon-y", 1, "--epochs", 3, "--set", "hidden=5", "--seed", 6)
    noisy, chosen = run(type_in, "--config", f"{first['run']}/config.toml", *typed)
    assert [chosen["settings"][key] for key in ("epochs", "hidden", "epsilon_x")] == [3, 5, 1.0]
    assert chosen["options"]["seed"] == 6
    twice, _ = run(type_in, "--config", f"{noisy['run']}/config.toml")
    curves = [(Path(answer["run"]) / "metrics.jsonl").read_text() for answer in (noisy, twice)]
    assert curves[0] != curves[1]
    assert noisy["guarantee"] == twice["guarantee"] and twice["guarantee"]["void"] is None


def test_a_total_of_a_file_gives_way_and_a_folder_is_meant_from_where_the_file_lies(type_in: Terminal) -> None:
    own_folder(Path("place/own"))
    Path("place/run.toml").write_text('method = "label-propagation"\ndata = "own"\n[settings]\nepsilon = 2')
    answer = type_in("plan", "--config", "place/run.toml", "--epsilon-y", 1, "--json").good
    assert answer.json["epsilon"]["labels"] == 1.0


def test_the_schema_is_printed_and_examples_are_valid(type_in: Terminal) -> None:
    for words in ((), ("gap",)):
        schema = json.loads(type_in("config", "schema", *words).good.out)
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert set(schema["properties"]["settings"]["properties"]) == set(METHODS["gap"].options)
    examples = list(ROOT.glob("docs/examples/*.toml"))
    assert examples and all(valid(file.read_text(), run_schema()) for file in examples)


@pytest.mark.parametrize(
    ("content", "holds"),
    [
        ("[settings]\nanything = 1", True),  # of whichever method is typed
        ('method = "gap"\n[settings]\nhops = 2', True),
        ('method = "lpgnn"\n[settings]\nhops = 2', False),
        (SMALL + "[settings]\nepsilon_x = inf", True),
        (SMALL + '[settings]\nepsilon_x = "inf"', True),
        (SMALL + '[settings]\nepsilon_x = "infinite"', False),
        (SMALL + '[options]\nproxy = "cora"\nlaw = "geometric"\nmean_trials = 10', True),
        (SMALL + "[options]\nstart_sha256 = 0", False),
    ],
)
def test_the_schema_depends_on_the_method_that_a_file_names(content: str, holds: bool) -> None:
    assert valid(content, run_schema()) == holds
