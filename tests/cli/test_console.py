"""Progress and answers: what goes to which stream, and in which form."""

from __future__ import annotations

import io
import json
import math
import sys

import pytest
from rich.text import Text

from graphveil.cli import console
from graphveil.progress import Progress


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def event(stage: str, done: int = 0, total: int = 0, epsilon: float | None = None) -> Progress:
    return Progress(done, total, stage, epsilon)


def test_json_is_one_line_of_plain_letters(capsys: pytest.CaptureFixture[str]) -> None:
    content = {"a": math.inf, "b": math.nan, "c": "ä\n\x1b"}
    console.emit(content, as_json=True, screen=lambda: pytest.fail("no screen was asked for"))
    out = capsys.readouterr().out
    assert out.isascii()
    assert out.count("\n") == 1
    assert json.loads(out) == {"a": "inf", "b": None, "c": "ä\n\x1b"}


def test_markup_in_a_screen_is_taken_literally(capsys: pytest.CaptureFixture[str]) -> None:
    console.emit({}, as_json=False, screen=lambda: Text("[red]x[/red] :smile:"))
    assert capsys.readouterr().out == "[red]x[/red] :smile:\n"


def test_complaints_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
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


def test_plain_progress_tells_the_epsilon_whenever_it_changes(capsys: pytest.CaptureFixture[str]) -> None:
    tell = console.plain_lines(clock=lambda: 0.0)
    for stage, epsilon in (("first", 1.0), ("control", 1.0), ("second", 2.0)):
        tell(event(stage, 0, 0, epsilon))
    assert capsys.readouterr().err.splitlines() == ["first, epsilon spent 1", "control", "second, epsilon spent 2"]


def test_what_libraries_print_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    with console.working() as tell:
        sys.stdout.write("Downloading...\n")
        tell(event("training"))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "Downloading...\ntraining\n"


def test_a_terminal_gets_a_bar_that_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with console.working() as tell:
        tell(event("download", 5))
        tell(event("training \x1b[2J", 50, 100, 2.5))
    shown = screen.getvalue()
    assert "training" in shown
    assert "50/100" in shown
    assert "epsilon spent 2.5" in shown
    assert "\x1b[2J" not in shown
    assert shown.rstrip().endswith("\x1b[2K")


def test_an_unbounded_epsilon_is_said_so(capsys: pytest.CaptureFixture[str]) -> None:
    console.plain_lines()(event("training", 1, 2, math.inf))
    assert "epsilon spent inf" in capsys.readouterr().err
