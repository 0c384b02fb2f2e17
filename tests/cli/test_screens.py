"""Screens: readable at 80 columns, without colour, and whatever the names are."""

from __future__ import annotations

import io
import math
import re
from pathlib import Path

import pytest
from rich.console import Console, RenderableType
from rich.text import Text

from graphveil.cli import comparison_screen, screens, tables
from graphveil.graphs import social_graph
from graphveil.methods.runs.plan import plan
from graphveil.reports.compare.sheet import sheet
from tests.reports import made


def shown(what: RenderableType, width: int = 80) -> str:
    file = io.StringIO()
    Console(file=file, width=width, highlight=False, markup=False, emoji=False).print(what)
    return file.getvalue()


@pytest.mark.parametrize("width", [72, 80, 200])
def test_a_run_fits_its_screen_and_keeps_its_words(width: int) -> None:
    text = shown(screens.run(made.record().in_folder("runs/x")), width)
    assert max(len(line) for line in text.splitlines()) <= width
    flat = " ".join(text.split())
    for part in (
        "lpgnn on cora: 8",
        "random-features",
        "best control",
        "not private (ceiling)",
        "12.3 s (1.7 s a fit), at most 412 MB",
        "Split random, drawn by seed 0: half train, a quarter validate, a quarter test",
    ):
        assert part in flat
    assert "runs/x (open report.html)" in flat
    assert "VOID" not in flat


def test_controls_are_sorted_best_first() -> None:
    text = shown(screens.run(made.record()))
    places = [text.index(name) for name in ("random-features", "label-propagation", "no-edges", "public-only")]
    assert places == sorted(places)


def test_void_is_the_first_line_and_needs_no_colour() -> None:
    assert shown(screens.run(made.record(void="seed 3"))).startswith(" !! VOID: this run protects nobody (seed 3) !!")


def test_a_run_without_controls_claims_nothing() -> None:
    record = made.record(controls={}, best_control=None, lift=None, ceiling=None)
    assert "the lift is unknown" in " ".join(shown(screens.run(record)).split())


def test_names_stay_on_their_line() -> None:
    text = shown(screens.run(made.record(data="x\n\x1b[2J[bold]y", notes=("a\nb\x07",))))
    assert "lpgnn on x [2J[bold]y: " in text
    assert "\x1b" not in text
    assert "\x07" not in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "yes"),
        (None, "-"),
        (12345, "12,345"),
        (0.123456789, "0.1235"),
        (1.5e-7, "1.5e-07"),
        (math.inf, "inf"),
        ({"a": 1, "b": [2, 3]}, "a 1, b 2, 3"),
        ("x", "x"),
    ],
)
def test_plain(value: object, text: str) -> None:
    assert tables.plain(value) == text


def test_descriptions_and_blocks() -> None:
    text = shown(tables.blocks([{"name": "a", "memory_mb": 1.0}, {"name": "b", "memory_mb": 2.0}]))
    assert [line.split() for line in text.splitlines()] == [
        ["name", "a"],
        ["memory", "mb", "1"],
        [],
        ["name", "b"],
        ["memory", "mb", "2"],
    ]


def test_predictions() -> None:
    answer = {"nodes": 2, "predicted": {"yes": 2}, "note": "n", "out": "p.csv"}
    stated = Text("what is protected")
    assert "All 2 predictions: p.csv." in shown(screens.predicted(answer, stated))
    rows = [{"id": "a", "prediction": "yes", "probability": 0.75}] * 2
    text = shown(screens.predicted({**answer, "out": None, "predictions": rows}, stated))
    assert text.index("what is protected") < text.index("Predicting: n.")
    assert "0.750" in text
    assert "First 2 of 2" in text


@pytest.mark.parametrize("width", [72, 80, 200])
def test_rivals_and_the_price_of_a_relationship_are_on_the_screen(width: int) -> None:
    text = shown(screens.run(made.record(**made.beside_rivals())), width)
    assert max(len(line) for line in text.splitlines()) <= width
    flat = " ".join(text.split())
    for part in (
        "blink-hybrid",
        "best rival, same price",
        "points against blink-hybrid",
        "At the same privacy price",
        "ONE relationship (4): epsilon",
    ):
        assert part in flat
    places = [text.index(name) for name in ("blink-hybrid", "degree-preserving", "no-edges", "random-graph")]
    assert places == sorted(places)
    assert "rival" not in shown(screens.run(made.record()), width)


def test_a_comparison_with_rivals_fits_the_screen() -> None:
    from tests.reports.base.test_rivals import COMPARED, rows

    text = shown(comparison_screen.compared(sheet(COMPARED, rows()), Path("study")))
    assert max(len(line) for line in text.splitlines()) <= 80
    lines = [[cell for cell in re.split(r"  +", line) if cell] for line in text.splitlines()]
    place = next(place for place, cells in enumerate(lines) if cells[:1] == ["solitude"])
    assert lines[place][:-1] == ["solitude", "1", "2", "4", "7"]
    assert lines[place][-1].startswith("86.2 (")
    beside = {cells[2] for cells in lines if cells[:1] == ["solitude at 7"] and len(cells) > 2}
    assert {"no-edges", "blink-hybrid"} <= beside


@pytest.mark.parametrize("width", [72, 80, 200])
def test_the_plan_of_a_curator_says_how_much_noise_is_added_to_what(width: int) -> None:
    text = shown(screens.planned(plan("gap", social_graph(200), {"epsilon": 8.0, "unit": "node"})), width)
    assert max(len(line) for line in text.splitlines()) <= width
    for part in ("sum 1 over neighbours", "sum 2 over neighbours", "private training 2", "at 10 neighbours"):
        assert part in text
    assert "bytes a person" not in text
