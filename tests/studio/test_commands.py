"""Requests as words: what a page may say, what a command is given, and what its errors may not repeat."""

from __future__ import annotations

import shlex
import tomllib
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphveil.attacks.catalogue import ATTACKS as OF_RUNS
from graphveil.attacks.federation.catalogue import FEDERATION_ATTACKS
from graphveil.cli.app import build
from graphveil.cli.base.choices import NAMED
from graphveil.methods.advise.rules import TRUSTS
from graphveil.methods.registry import METHODS
from graphveil.studio.choices import ATTACKS, choices
from graphveil.studio.commands import FLAGS, Commands, line_of
from graphveil.studio.models import Query, Start
from graphveil.studio.refusals import Refusal, without_cells
from graphveil.studio.root import Root
from graphveil.studio.service import price_of

ENDS = "; the file alone shows the value"


@pytest.fixture
def commands(tmp_path: Path) -> Commands:
    for name in ("town", "cora", "runs/one", "runs/two"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "graph.graphml").touch()
    return Commands(Root(tmp_path.resolve()))


def options_of(words: tuple[str, ...]) -> list[str]:
    """The options of the command that begins with these words."""
    command: Any = typer.main.get_command(build())
    while hasattr(command, "commands"):
        command, words = command.commands[words[0]], words[1:]
    return [name for parameter in command.params for name in parameter.opts]


POSTGRES = "postgresql://me@db.example:5432/town"


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"query": "describe", "data": "town"}, "data describe town"),
        ({"query": "describe", "data": "name:cora"}, "data describe cora"),
        ({"query": "describe", "data": "cora"}, "data describe ./cora"),
        ({"query": "describe", "data": "."}, "data describe ."),
        ({"query": "advise", "data": "town"}, "advise town"),
        ({"job": "plan", "data": "town", "method": "gap", "want": "lift=0.1", "degree": 4},
         "plan gap town --want lift=0.1 --degree 4"),
        ({"query": "compare-runs", "runs": ["runs/one", "runs/two"]}, "compare-runs runs/one runs/two"),
        ({"query": "plan", "data": "town", "method": "lpgnn", "settings": {"epsilon_x": None, "hidden": 8}},
         "plan lpgnn town --epsilon-x none --set hidden=8"),
        ({"job": "train", "data": "town", "method": "class-sums", "settings": {"epsilon": 0.1, "unit": "edge"},
          "seed": 3, "controls": False, "reproducible_noise": 7, "repeats": 2},
         "train class-sums town --epsilon 0.1 --unit edge --seed 3 --repeats 2 --no-controls --reproducible-noise 7 "
         "--out runs/town-class-sums-20270131-090000"),
        ({"job": "release", "data": "name:cora", "method": "heterorr", "settings": {"epsilon_a": 2}},
         "release heterorr cora --epsilon-a 2 --out runs/cora-heterorr-release-20270131-090000"),
        ({"job": "attack", "run": "runs/one", "attack": "lira", "seed": 8, "truth": "town"},
         "attack runs/one --attack lira --truth town --seed 8"),
        ({"job": "import", "source": "graph.graphml", "folder": "new"}, "data import graph.graphml --out new"),
        ({"job": "import", "source": POSTGRES, "folder": "new", "nodes_query": "SELECT 1", "edges_query": "SELECT 2"},
         f"data import {POSTGRES} --nodes-query SELECT 1 --edges-query SELECT 2 --out new"),
    ],
)  # fmt: skip
def test_a_request_is_the_words_of_one_command(request_: dict[str, Any], words: str, commands: Commands) -> None:
    if "query" in request_:
        command = commands.words(request_["query"], Query(**request_))
    else:
        start = Start(**request_)
        command = commands.words(start.job, start, commands.out_of(start, datetime(2027, 1, 31, 9), lambda name: False))
    assert " ".join(command) == words
    # The command has each of these options.
    names = [word.partition("=")[0] for word in command if word.startswith("--")]
    assert set(names) <= set(options_of(tuple(command)))


@pytest.mark.parametrize(
    "request_",
    [
        {"job": "train", "data": "town", "method": "lpgnn", "settings": {"hidden": "-8"}},
        {"job": "train", "data": "town", "method": "lpgnn", "settings": {"model": "a\nb"}},
        {"job": "train", "data": "town", "method": "lpgnn", "settings": {"out": "x"}},
        {"job": "train", "data": "town", "method": "lpgnn", "settings": {"hidden": "8" * 300}},
        {"job": "import", "source": POSTGRES, "folder": "new", "nodes_query": "SELECT 1\0", "edges_query": "SELECT 1"},
        {"job": "train", "data": "town", "method": "class-sums", "settings": {"start": "/etc/passwd"}},
        {"job": "train", "data": "town"},
        {"job": "release", "data": "town", "method": "lpgnn", "settings": {}},
        {"job": "release", "data": "town", "method": "heterorr", "settings": {"hidden": 8}},
        {"job": "import", "source": "postgresql://me:word@db/town", "folder": "new"},
        {"job": "import", "source": "mysql://db/town", "folder": "new"},
        {"job": "import", "source": "graph.graphml", "folder": "town"},
        {"job": "import", "source": "graph.graphml", "folder": "new", "nodes_query": "--debug"},
    ],
)
def test_nothing_else_becomes_a_word(request_: dict[str, Any], commands: Commands) -> None:
    start = Start(**request_)
    with pytest.raises(Refusal):
        commands.words(start.job, start, commands.out_of(start, datetime(2027, 1, 31), lambda name: False))


def test_an_output_never_takes_a_name_that_is_used(commands: Commands) -> None:
    start, now = Start(job="train", data="town", method="gap"), datetime(2027, 1, 31, 9)
    first = commands.out_of(start, now, lambda name: False)
    assert first == "runs/town-gap-20270131-090000"
    commands.root.path(first).mkdir()
    assert commands.out_of(start, now, lambda name: name == f"{first}-2") == f"{first}-3"


def test_a_file_of_settings_says_what_the_words_say(commands: Commands) -> None:
    chosen: dict[str, Any] = {"epsilon_x": None, "epsilon_y": "2", "hidden": 8, "epsilon_a": "inf"}
    plan = Query(query="plan", data="town", method="solitude", settings=chosen, seed=3, controls=False)
    written = {"epsilon_x": "none", "epsilon_y": 2.0, "hidden": 8, "epsilon_a": float("inf")}
    rest = {"method": "solitude", "data": "town", "options": {"seed": 3, "controls": False}}
    assert tomllib.loads(commands.config(plan)) == {**rest, "settings": written}


ODD = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12) | st.sampled_from(
    ['a"]', "a'b", "$(id)", "`id`", "a b", "a;b", "\\", '"""', "a\nb", "[options]", "#", "&& id", "\u202e", "x" * 250]
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ODD, ODD)
def test_no_name_changes_a_file_or_a_command(commands: Commands, folder: str, value: str) -> None:
    """Whatever a folder or a setting is called: the file says that and nothing else, and so does a shell."""
    work = Query(query="plan", data=folder, method="lpgnn", settings={"mechanism": value})
    with suppress(OSError, ValueError):
        (commands.root.folder / folder).mkdir()
    try:
        words = commands.plan(work)
    except Refusal:
        return
    named = folder if words[2] == folder else f"./{folder}"
    assert words == ["plan", "lpgnn", named, "--set", f"mechanism={value}"]
    assert shlex.split(line_of(words)) == ["graphveil", *words] and "\n" not in line_of(words)
    written = {"method": "lpgnn", "data": named, "settings": {"mechanism": value}, "options": {}}
    assert {"options": {}, **tomllib.loads(commands.config(work))} == written


def test_a_price_names_method_and_data() -> None:
    plan = {"method": "gap", "data": "town", "guarantee_sentence": "This protects."}
    assert price_of(Query(query="plan"), plan) == "gap on town: This protects."
    void = Query(query="plan", reproducible_noise=1, repeats=3)
    assert price_of(void, plan).startswith("VOID") and "3 trainings, each of which spends: gap on town:" in price_of(
        void, plan
    )


def test_a_rehearsal_asks_for_the_methods_own_budgets(commands: Commands) -> None:
    def rehearsal(method: str, **settings: float) -> str | None:
        return commands.rehearsal(
            Query(query="plan", data="town", method=method, settings=settings), datetime(2027, 1, 31)
        )

    lines = str(rehearsal("lpgnn", epsilon_y=2)).split(" && ")
    assert lines[0].startswith("graphveil collect init town --epsilon-x 1 --epsilon-y 2 --organiser rehearsal")
    assert lines[1] == "graphveil collect simulate task town --out collected"
    for line, command in zip(lines, ("init", "simulate"), strict=True):
        names = [word for word in line.split() if word.startswith("--")]
        assert set(names) <= set(options_of(("collect", command)))
    # A total would have to be split first, a curator collects nothing, and a release is made at once.
    assert [rehearsal("lpgnn", epsilon=2), rehearsal("gap"), rehearsal("heterorr")] == [None] * 3


def test_choices_are_what_the_library_has() -> None:
    offered = choices("root", None)
    assert [method.name for method in offered.methods] == list(METHODS) and FLAGS == NAMED
    assert [trust.name for trust in offered.trusts] == list(TRUSTS)
    # Where a page offers to hide one connection or a whole person, the method can do both.
    units = {
        method.name: {unit for setting in method.settings if setting.key == "unit" for unit in setting.allowed}
        for method in offered.methods
    }
    assert {name for name, allowed in units.items() if {"edge", "node"} <= allowed} == {"gap", "progap"}
    assert set(ATTACKS) == {*OF_RUNS, *FEDERATION_ATTACKS}
    assert {name for name, (on, _) in ATTACKS.items() if on == "federation"} == set(FEDERATION_ATTACKS)
    assert {"digits", "social"} <= set(offered.named)
    assert [(stop.right, stop.of) for stop in offered.stops if stop.epsilon == 1] == [(74, 100)]
    epsilons = [stop.epsilon for stop in offered.stops]
    assert len(epsilons) == 25 and epsilons == sorted(set(epsilons))


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("t/nodes.csv, line 7: age is 'SECRET; allowed: x', not a number; allowed: 14 to 95; write SECRET",
         "t/nodes.csv, line 7: age is ..., not a number; allowed: 14 to 95" + ENDS),
        ("t/n.parquet, row 7: x12 31.5 appears twice", "t/n.parquet, row 7: x12 ... appears twice" + ENDS),
        ("t/n.csv, line 9: tags is \"it's SECRET...; allowed: a", "t/n.csv, line 9: tags is ..." + ENDS),
        ("t/n.csv: cannot be read (could not parse `SECRET`)", "t/n.csv: cannot be read"),
        ("t.graphml: cannot be read as XML (SECRET)", "t.graphml: cannot be read as XML"),
        ("x.json, node 3: id is ['SECRET']", "x.json, node 3: id is [...]" + ENDS),
        ("db: the database refuses (invalid integer: \"SECRET\")", "db: the database refuses (invalid integer: ...)"),
        ("t/n.parquet, row 1: age is 'SECRET'", "t/n.parquet, row 1: age is ..." + ENDS),
        ("t/n.csv, line 1: column 3 is 'SECRET '; allowed: names", "t/n.csv, line 1: column 3 is ...; allowed: names"),
        ("x.json: is not JSON (the key ', row 3: SECRET' appears twice)", "x.json: is not JSON"),
        ("a.db: the database refuses (with text ', row 3: it's SECRET')", "a.db: the database refuses (with text ...)"),
        ("x: column ', row 3: SECRET' is ', row 4: SECRET'", "x: column ..."),
        ("lpgnn has no setting 'x'; allowed: a, b", "lpgnn has no setting 'x'; allowed: a, b"),
    ],
)  # fmt: skip
def test_an_error_repeats_no_cell(line: str, text: str) -> None:
    assert without_cells(line) == text and "SECRET" not in text
