"""What ``graphveil reproduce`` shows: names whole, every state, and one table for each data set."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console, RenderableType

from graphveil.cli import reproduce_screen
from graphveil.methods.runs.intervals import Interval
from graphveil.reproduction.catalogue import EXHIBITS, PAPERS
from graphveil.reproduction.exhibit import Exhibit
from graphveil.reproduction.runner import Outcome, Price, Row, Run


def shown(screen: RenderableType, width: int = 80) -> str:
    """The text of a screen on a terminal of that width."""
    out = io.StringIO()
    Console(file=out, width=width, markup=False).print(screen)
    return out.getvalue()


def outcome_of(exhibit: Exhibit, accuracy: float, splits: int = 1) -> Outcome:
    """Every figure of an exhibit as if it had been run."""
    run = Run(Interval(accuracy, accuracy - 0.1, accuracy + 0.1, (accuracy,)), Price("one person", 2.0, 0.0), 1.0)
    return Outcome(tuple(Row(entry, (run,) * splits) for entry in exhibit.entries), {})


def test_the_list_names_every_paper_and_keeps_every_name_whole() -> None:
    text = shown(reproduce_screen.listed())
    assert all(title in text for title in PAPERS.values())
    assert all(any(line.startswith(f"{name} ") for line in text.splitlines()) for name in EXHIBITS)
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("exhibit", [one for one in EXHIBITS.values() if one.entries], ids=lambda one: one.id)
def test_every_exhibit_fits_a_terminal(exhibit: Exhibit) -> None:
    text = shown(reproduce_screen.reproduced(exhibit, outcome_of(exhibit, 0.5), Path("runs/there")))
    lines = text.splitlines()
    assert lines[0].startswith(f"{exhibit.id}: ") and max(map(len, lines)) <= 80
    assert all(f"{data}, 1 split" in text for data in exhibit.data)
    for entry in exhibit.entries:
        assert any(line.startswith(f"{entry.row} ") for line in lines), entry.row
    assert "runs/there" in text and all(note[:20] in text for note in exhibit.notes)


def test_a_figure_shows_how_far_ours_is_from_the_papers() -> None:
    exhibit = EXHIBITS["lpgnn-table3"]
    text = shown(reproduce_screen.reproduced(exhibit, outcome_of(exhibit, 0.839), Path("there")), 120)
    row = next(line for line in text.splitlines() if line.startswith("multi-bit eps_x=1 "))
    assert "83.9±0.4" in row and "0.0" in row and "73.9 to 93.9" in row


def test_two_splits_are_counted_and_have_an_interval_of_their_own() -> None:
    exhibit = EXHIBITS["lpgnn-table4"]
    text = shown(reproduce_screen.reproduced(exhibit, outcome_of(exhibit, 0.5, splits=2), Path("there")), 120)
    assert "cora, 2 splits" in text and "cora, 1 split\n" not in text
    row = next(line for line in text.splitlines() if line.startswith("Drop eps_y=1 "))
    assert "50.0 (50.0 to 50.0)" in row  # two equal runs: nothing varied between them


def test_what_is_missing_is_said_below_the_table() -> None:
    exhibit = EXHIBITS["lpgnn-figure5"]
    text = shown(reproduce_screen.reproduced(exhibit, outcome_of(exhibit, 0.5), Path("there")), 300)
    assert f"Missing  {exhibit.why}" in text
