"""``graphveil compare``: the grid, taking it up again, the table and the figure."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from graphveil.methods.runs import experiment
from tests.cli.conftest import Terminal

GRID = ("compare", "lpgnn,label-propagation", "digits", "--epsilon-y", "1,inf", "--epochs", 2, "--no-controls")
OUT = ("--out", "cmp")


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any, int]]:
    """The cells that are really run."""
    seen: list[tuple[str, Any, int]] = []
    real = experiment.run

    def counted(name: str, graph: Any, **arguments: Any) -> experiment.Result:
        seen.append((name, dict(arguments["settings"]), arguments["seed"]))
        return real(name, graph, **arguments)

    monkeypatch.setattr(experiment, "run", counted)
    return seen


def test_each_method_takes_part_in_its_own_settings(type_in: Terminal, runs: list[Any]) -> None:
    answer = type_in(*GRID, "--epsilon-x", "1,2", "--repeats", 1, *OUT, "--json")
    assert answer.code == 0
    assert len(runs) == 4 + 2
    assert all("epsilon_x" not in settings for name, settings, _ in runs if name == "label-propagation")
    assert all(settings["epochs"] == 2 for name, settings, _ in runs if name == "lpgnn")
    rows = answer.json["rows"]
    assert [(row["method"], row["group"]) for row in rows] == [
        *[("lpgnn", "A")] * 2,  # features and label
        *[("lpgnn", "B")] * 2,  # features alone
        ("label-propagation", "C"),
        ("label-propagation", "D"),  # nothing
    ]
    assert rows[2]["settings"] == {"epsilon_x": 1.0, "epsilon_y": "inf"}


def test_it_goes_on_where_it_stopped(type_in: Terminal, runs: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    counted = experiment.run

    def stops(name: str, graph: Any, **arguments: Any) -> experiment.Result:
        if len(runs) == 3:
            raise KeyboardInterrupt
        return counted(name, graph, **arguments)

    monkeypatch.setattr(experiment, "run", stops)
    stopped = type_in(*GRID, "--repeats", 2, *OUT, "--json")
    assert (stopped.code, stopped.out) == (130, "")
    assert stopped.err.endswith("interrupted; no partial files remain\n")
    assert len(list(Path("cmp/cells").iterdir())) == 3
    assert not Path("cmp/table.md").exists()

    monkeypatch.setattr(experiment, "run", counted)
    done = type_in(*GRID, "--repeats", 2, *OUT, "--json")
    assert done.code == 0
    assert len(runs) == 8
    assert len({(name, str(settings), seed) for name, settings, seed in runs}) == 8
    again = type_in(*GRID, "--repeats", 2, *OUT, "--json")
    assert again.json == done.json
    assert len(runs) == 8


def test_table_and_figure(type_in: Terminal) -> None:
    words = ("compare", "lpgnn,mlp", "social-100", "--epsilon-y", "1,inf", "--epochs", 2)
    shown = type_in(*words, "--repeats", 2, *OUT)
    assert shown.code == 0
    assert max(len(line) for line in shown.out.splitlines()) <= 80
    assert {entry.name for entry in Path("cmp").iterdir()} == {
        *("comparison.json", "cells", "table.md", "table.csv", "table.json", "table.html", "figure.png", "figure.svg")
    }
    with Path("cmp/table.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3
    for row in rows:
        assert float(row["accuracy_low"]) <= float(row["accuracy_mean"]) <= float(row["accuracy_high"])
        assert row["runs"] == "2"
        assert row["best_control"]
    table = Path("cmp/table.md").read_text()
    assert "| lpgnn | 1 | 1 | 2 | yes | yes | no | no |" in table
    assert "lift, points (95%)" in table
    assert json.loads(Path("cmp/table.json").read_text())["rows"][0]["method"] == "lpgnn"
    assert Path("cmp/figure.png").read_bytes().startswith(b"\x89PNG")
    assert "lpgnn" in Path("cmp/figure.svg").read_text()


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        (("--repeats", 3), "seeds"),
        (("--set", "steps_x=2"), "methods"),
        (("--epsilon-x", 3), "axes"),
        (("--reproducible-noise", 1), "options"),
        (("--split", "75/10/15"), "options"),
    ],
)
def test_other_settings_are_refused(type_in: Terminal, change: tuple[Any, ...], differs: str) -> None:
    assert type_in(*GRID, "--repeats", 1, *OUT).code == 0
    before = sorted((entry.name, entry.stat().st_mtime_ns) for entry in Path("cmp").rglob("*"))
    answer = type_in(*GRID, "--repeats", 1, *OUT, *change)
    assert answer.code == 2
    assert f"cmp holds a comparison with other {differs}" in answer.err or differs in answer.err
    assert before == sorted((entry.name, entry.stat().st_mtime_ns) for entry in Path("cmp").rglob("*"))


def test_speed_may_change(type_in: Terminal, runs: list[Any]) -> None:
    assert type_in(*GRID, "--repeats", 1, *OUT).code == 0
    count = len(runs)
    assert type_in(*GRID, "--repeats", 1, *OUT, "--threads", 1).code == 0
    assert len(runs) == count


def test_a_folder_of_something_else_is_refused(type_in: Terminal) -> None:
    Path("cmp").mkdir()
    Path("cmp/mine").write_text("1")
    answer = type_in(*GRID, *OUT)
    assert answer.code == 2
    assert "cmp is not empty" in answer.err


@pytest.mark.parametrize("content", ["{", "[]", '{"cell": {}, "result": {}}', '{"cell": 1}'])
def test_a_damaged_cell_is_named(type_in: Terminal, content: str) -> None:
    assert type_in(*GRID, "--repeats", 1, *OUT).code == 0
    cell = min(Path("cmp/cells").iterdir())
    cell.write_text(content)
    answer = type_in(*GRID, "--repeats", 1, *OUT)
    assert answer.code == 2
    assert str(cell) in answer.err
    assert "delete it" in answer.err
    cell.unlink()
    assert type_in(*GRID, "--repeats", 1, *OUT).code == 0


def test_reproducible_noise_differs_between_seeds_and_voids(type_in: Terminal) -> None:
    words = (*GRID, "--repeats", 2, "--reproducible-noise", 1)
    first = type_in(*words, *OUT, "--json").json
    second = type_in(*words, "--out", "other", "--json").json
    assert [row["accuracy"] for row in first["rows"]] == [row["accuracy"] for row in second["rows"]]
    voids = {json.loads(cell.read_text())["result"]["guarantee"]["void"] for cell in Path("cmp/cells").iterdir()}
    assert len(voids) == 3  # seed 1, seed 2, and none where nothing is randomized
    assert "VOID" in Path("cmp/table.md").read_text()
    assert "VOID" in type_in(*words, *OUT).out


def test_one_folder_for_a_data_set_by_default(type_in: Terminal) -> None:
    assert type_in(*GRID, "--repeats", 1, "--json").json["folder"] == "runs/compare-digits"
