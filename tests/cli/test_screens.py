"""Screens: readable at 80 columns, without colour, and whatever the names are."""

from __future__ import annotations

import io
import json
import math
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.text import Text

from graphveil.cli.base import console, screens, tables
from graphveil.cli.collect import screens as collect_screens
from graphveil.cli.compare import screens as comparison_screens
from graphveil.cli.federation import screens as federation_screens
from graphveil.graphs import social_graph
from graphveil.methods.registry import plan
from graphveil.reports.compare.rows import row_of
from graphveil.reports.compare.sheet import Sheet
from graphveil.runtime.progress import Progress
from tests.cli.conftest import Terminal, text_of
from tests.reports import made


@pytest.mark.parametrize("width", [72, 200])
def test_a_run_fits_its_screen_and_keeps_its_words(width: int) -> None:
    text = text_of(screens.run(made.record().in_folder("runs/x")), width)
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
    places = [text.index(name) for name in ("random-features", "label-propagation", "no-edges", "public-only")]
    assert places == sorted(places)  # the best one first


def test_void_is_the_first_line_names_stay_on_theirs_and_without_controls_nothing_is_claimed() -> None:
    assert text_of(screens.run(made.record(void="seed 3"))).startswith(" !! VOID: this run protects nobody (seed 3) !!")
    text = text_of(screens.run(made.record(data="x\n\x1b[2J[bold]y", notes=("a\nb\x07",))))
    assert "lpgnn on x [2J[bold]y: " in text and "\x1b" not in text and "\x07" not in text
    record = made.record(controls={}, best_control=None, lift=None, ceiling=None)
    assert "the lift is unknown" in " ".join(text_of(screens.run(record)).split())
    pairs = ((True, "yes"), (None, "-"), (12345, "12,345"), (1.5e-7, "1.5e-07"), ({"a": 1, "b": [2, 3]}, "a 1, b 2, 3"))
    assert all(tables.plain(value) == text for value, text in pairs)


def test_a_word_wider_than_its_column_stays_whole_and_a_long_name_pushes_no_value_aside() -> None:
    digest, name = "ab" * 32, "federation, rows after James and Stein (sampled)"
    screen = tables.pairs([("Hash of epoch 1", digest), (name, "two words"), ("Note", "kurz und gut " * 8)])
    lines = text_of(screen, 72).splitlines()
    assert lines[:4] == ["Hash of epoch 1", f"        {digest}", name, f"{'':17}two words"]
    assert lines[4].startswith("Note             kurz") and all(len(line) <= 72 for line in lines)


def test_a_path_wider_than_the_screen_is_printed_in_one_piece(capsys: pytest.CaptureFixture[str]) -> None:
    path = f"/{'long' * 30}"
    console.emit({}, as_json=False, screen=lambda: tables.pairs([("Folder", f"{path} (open report.html)")]))
    assert path in capsys.readouterr().out.splitlines()


def test_where_a_comparison_is_too_wide_lifts_and_leads_stand_below_it() -> None:
    """A price of a relationship takes the columns of the lift."""
    rows = [row_of("solitude", {}, [made.record(**made.beside_rivals(runs=1))]), row_of("lpgnn", {}, [made.record()])]
    text = text_of(comparison_screens.compared(Sheet("cora", tuple(rows)), Path("study")))
    assert max(len(line) for line in text.splitlines()) <= 80
    lines = [[cell for cell in re.split(r"  +", line) if cell] for line in text.splitlines()]
    beside = {cells[2] for cells in lines if cells[:1] == ["solitude at 7"] and len(cells) > 2}
    assert {"no-edges", "blink-hybrid"} <= beside


def test_a_plan_of_a_release_shows_the_noise_of_every_mechanism_the_least_first() -> None:
    graph = social_graph(100)
    graph.schema = replace(graph.schema, private=("features", "labels", "edges"))
    planned = plan("heterorr", graph, {"epsilon_x": 1.0, "epsilon_a": 2.0, "edges": "edge-rand"})
    figures: Any = planned.figures
    text = text_of(screens.planned(planned))
    flat = " ".join(text.split())
    assert f"{figures.protected_pairs:,} protected; 0 public edges" in flat and "No private edge or feature" in flat
    assert f"False edges about {figures.false_edges:,.0f}" in flat
    lines = [line.split()[0] for line in text.splitlines() if line.split()[:1] and line.split()[0] in figures.noise]
    assert lines == sorted(figures.noise, key=figures.noise.__getitem__) and lines[0] == figures.least_noisy
    assert text.count(" least") == 1
    walked = " ".join(text_of(screens.planned(plan("priv-hrg", graph, {}))).split())
    assert "steps each, fixed in advance" in walked and "features by" not in walked
    assert "features by" not in text_of(screens.planned(plan("mlp", graph, {})))


# ---- progress and answers ----


def event(stage: str, done: int = 0, total: int = 0, epsilon: float | None = None) -> Progress:
    return Progress(done, total, stage, epsilon)


def test_json_is_one_line_of_plain_letters(capsys: pytest.CaptureFixture[str]) -> None:
    content = {"a": math.inf, "b": math.nan, "c": "ä\n\x1b"}
    console.emit(content, as_json=True, screen=lambda: pytest.fail("no screen was asked for"))
    out = capsys.readouterr().out
    assert out.isascii()
    assert out.count("\n") == 1
    assert json.loads(out) == {"a": "inf", "b": None, "c": "ä\n\x1b"}
    console.emit({}, as_json=False, screen=lambda: Text("[red]x[/red] :smile:"))
    assert capsys.readouterr().out == "[red]x[/red] :smile:\n"  # markup is taken literally
    console.complain("a\nb\x1b[2J")
    assert capsys.readouterr().err == "a b [2J\n"


def test_plain_progress_tells_stages_and_then_every_ten_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    now = iter([0.0, 1.0, 9.9, 10.1, 10.2, 20.5])
    tell = console.plain_lines(clock=lambda: next(now))
    for done in range(1, 5):
        tell(event("training", done, 100, 3.0))
    tell(event("ceiling"))
    tell(event("ceiling"))
    assert capsys.readouterr().err.splitlines() == [
        "training, 1/100, epsilon spent 3",
        "training, 4/100",
        "ceiling",
        "ceiling",
    ]
    # The epsilon is told whenever it changes.
    tell = console.plain_lines(clock=lambda: 0.0)
    for stage, epsilon in (("first", 1.0), ("control", 1.0), ("second", 2.0), ("open", math.inf)):
        tell(event(stage, 0, 0, epsilon))
    spent = ["first, epsilon spent 1", "control", "second, epsilon spent 2", "open, epsilon spent inf"]
    assert capsys.readouterr().err.splitlines() == spent


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_a_bar_that_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with console.working() as tell:
        tell(event("training \x1b[2J", 50, 100, 2.5))
    text = screen.getvalue()
    assert "training" in text and "50/100" in text and "epsilon spent 2.5" in text
    assert "\x1b[2J" not in text
    assert text.rstrip().endswith("\x1b[2K")


def test_what_libraries_print_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    with console.working() as tell:
        sys.stdout.write("Downloading...\n")
        tell(event("training"))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "Downloading...\ntraining\n"


def test_the_next_command_can_be_typed_where_a_folder_has_a_space_in_its_name(type_in: Terminal) -> None:
    Path("my club").mkdir()
    Path("my club", "nodes.csv").write_text("id,age\nann,3\n")
    assert "graphveil data init 'my club' writes one" in type_in("data", "describe", "my club").err
    screen = text_of(collect_screens.signed({"folder": "my club", "task": "0", "signed_by": "a", "guarantee": ()}))
    assert "graphveil collect enrol 'my club'" in screen
    holders = [{"name": "a", "columns": 2, "edges": 1, "labels": True}]
    split = text_of(federation_screens.split({"nodes": 3, "holders": holders, "folder": "my parts"}))
    assert "graphveil federation init --from 'my parts' --out RUN" in split


def test_each_hash_of_an_export_stands_on_a_line_of_its_own() -> None:
    epochs = [{"hash": letter * 64, "nonce": "00"} for letter in "ab"]
    text = text_of(collect_screens.exported({"answered": 3, "epochs": epochs, "findings": {"sentence": "none"}}))
    assert text.split()[-10:] == ["hash", "of", "epoch", "1", "a" * 64, "hash", "of", "epoch", "2", "b" * 64]
