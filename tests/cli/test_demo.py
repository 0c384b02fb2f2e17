"""The demo: what it measures, what it shows of that, and what README and the page about it say."""

from __future__ import annotations

import contextlib
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer.main

from graphveil.cli import main
from graphveil.cli.app import build
from graphveil.cli.demo import NEXT, screen_of, similar
from graphveil.privacy import Guarantee
from graphveil.reports.demo.story import BUDGETS, COUNTEREXAMPLE, UNITS
from tests.cli.conftest import text_of
from tests.reports.demo_made import ATTACKS, story

ROOT = Path(__file__).parent.parent.parent


def test_the_screen_fits_eighty_columns_and_what_comes_next_is_there() -> None:
    text = text_of(screen_of(replace(story(), data="x\n\x1b[2J[bold]y"), Path("runs/\x1b[2Jdemo")))
    assert "\x1b" not in text and "[bold]y (synthetic): 1,000 people" in text
    lines = text_of(screen_of(story(), Path("runs/demo"))).splitlines()
    assert max(map(len, lines)) <= 80
    head, *following = [line.strip() for line in lines[-4:]]
    assert head == "What next" and [line.split("  ")[0] for line in following] == [words for words, _ in NEXT]
    assert "gives 0.70" in similar(story()) and f"{story().alike.auc.mean:.2f}" in similar(story())
    commands = typer.main.get_command(build()).commands  # type: ignore[attr-defined]
    for words, _ in NEXT:
        command, *rest = words.split()
        assert (command == "graphveil" and rest[0] in commands) or (ROOT / command).is_file(), words


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """What the demo prints as JSON, and its folder: about 25 CPU seconds."""
    folder = tmp_path_factory.mktemp("demo") / "run"
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main(["demo", "--json", "--out", str(folder)]) == 0
    assert out.getvalue().count("\n") == 1
    return json.loads(out.getvalue(), parse_constant=pytest.fail), folder


Measured = tuple[dict[str, Any], Path]


@pytest.mark.slow
def test_each_kind_of_trust_has_lift_and_the_counterexample_none(measured: Measured) -> None:
    """In seeds 0 to 10 the lowest ends of the intervals were 7.1, -0.1 (links; the next 1.9) and 3.5 points; at seed 0
    a run with fresh noise once had -0.3 (links). So the mean is asked, which lies about 4 points higher."""
    answer, folder = measured
    ways = {way["method"]: way for way in answer["ways"]}
    assert list(ways) == list(BUDGETS) and answer["data"] == "social-1000"
    for method, way in ways.items():
        assert (way["lift"]["mean"] > 0.015) == (method != COUNTEREXAMPLE), method
        assert way["lift"]["mean"] == pytest.approx(way["accuracy"]["mean"] - way["control"]["mean"])
    # What is protected is what the table says; drawn from the operating system, whatever the seed: nothing is void.
    guarantees = {method: Guarantee.from_dict(way["guarantee"]) for method, way in ways.items()}
    units = ["one-undirected-edge", "one-relationship", "one-guess", "one-user-features+one-user-label"]
    assert [guarantee.unit.code for guarantee in guarantees.values()] == units and set(UNITS) == set(guarantees)
    assert [each.epsilon for each in guarantees.values()] == [sum(budget.values()) for budget in BUDGETS.values()]
    assert all(guarantee.protects for guarantee in guarantees.values())
    assert [guarantee.model for guarantee in guarantees.values()] == ["central", "local", "vertical", "local"]
    assert sorted(file.name for file in folder.iterdir()) == ["demo.json", "demo.png", "demo.svg"]
    assert json.loads((folder / "demo.json").read_text()) == answer and answer["run"] == str(folder)


@pytest.mark.slow
def test_each_attack_works_without_protection_and_hardly_with_it(measured: Measured) -> None:
    answer, _ = measured
    for way in answer["ways"]:
        exposed, hidden = way["attack"]["unprotected"], way["attack"]["protected"]
        assert exposed["name"] == hidden["name"] == ATTACKS[way["method"]]
        assert exposed["auc"]["low"] > 0.9 and hidden["auc"]["high"] < 0.65
    assert 0.6 < answer["similar_answers"]["baseline"] < answer["similar_answers"]["auc"]["mean"] < 0.9


def cells_of_readme() -> dict[str, list[str]]:
    """The cells behind the method's name in each row of the demo's table."""
    text = (ROOT / "README.md").read_text()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    return {row[1].strip("`"): row[2:] for row in rows if len(row) > 2 and row[1].strip("`") in BUDGETS}


def numbers(cell: str) -> list[float]:
    return [float(number) for number in re.findall(r"[+-]?\d+(?:\.\d+)?", cell)]


@pytest.mark.slow
def test_the_table_in_the_readme_is_one_such_run(measured: Measured) -> None:
    """Within 10 points: in eleven runs the accuracies that are checked moved by at most 7, that of lpgnn by 53."""
    answer, _ = measured
    rows = cells_of_readme()
    assert set(rows) == set(BUDGETS)
    for way in answer["ways"]:
        accuracy, control, lift, epsilon, auc = rows[way["method"]]
        assert numbers(epsilon)[0] == sum(BUDGETS[way["method"]].values()) and UNITS[way["method"]] in epsilon
        assert numbers(accuracy)[0] - numbers(control)[-1] == pytest.approx(numbers(lift)[0], abs=0.11)
        assert (numbers(lift)[1] > 0) == (way["method"] != COUNTEREXAMPLE)
        exposed, hidden = (way["attack"][name]["auc"]["mean"] for name in ("unprotected", "protected"))
        assert numbers(auc) == pytest.approx([exposed, hidden], abs=0.03)
        if way["method"] != COUNTEREXAMPLE:
            assert numbers(accuracy)[0] == pytest.approx(100 * way["accuracy"]["mean"], abs=10)
