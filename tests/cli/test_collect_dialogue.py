"""`collect init` at a terminal: it asks for what is missing, again where the answer is none, and for nothing else."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from graphveil.cli.app import main
from graphveil.collection.desk import Desk

INIT = ("collect", "init", "social-100", "-o")
#: A part of each question -> what a person types, wrong answers first.
WORDS = {
    "youth office): ": ["the city"],
    "What for, in words that everybody understands? (purpose): ": ["ci\u202ety", "clubs"],
    "such as a mail address): ": ["clubs@city.example"],
    "T08:00) [": ["soon", ""],
    "(as before, and later) [": ["2020-01-01", ""],
    "shall nothing be exported? (1 to 100": ["many", "0", "101", "40"],
}
PRICES = {
    "features): ": [""],
    "class (label): ": ["-1", "2.5"],
    "list (links): ": ["1e3", "2"],
    "links (degree): ": [""],
    "directed: the one at whom it begins [lower]: ": ["neither", "both"],
}


def typed(folder: Path, words: tuple[str, ...], answers: dict[str, list[str]]) -> tuple[int, str]:
    """What a command says on a real terminal to somebody who answers each of its questions."""
    here, there = pty.openpty()
    command = [sys.executable, "-m", "graphveil", *words]
    waiting = [(asked, answer) for asked, several in answers.items() for answer in several]
    with subprocess.Popen(command, stdin=there, stdout=there, stderr=there, cwd=folder) as process:
        os.close(there)
        told, read = "", 0
        try:
            while more := _heard(here, told):
                told += more
                while waiting and (at := told.find(waiting[0][0], read)) >= 0 and re.search(r": $", told[at:]):
                    read = len(told)
                    os.write(here, f"{waiting.pop(0)[1]}\n".encode())
        except OSError:
            # Nobody is at the other end of the terminal any more.
            pass
    os.close(here)
    assert not waiting, f"never asked for {waiting}: {told}"
    return process.returncode, told.replace("\r\n", "\n")


def _heard(terminal: int, told: str) -> str:
    # A question that is worded otherwise than above would be waited for without end.
    assert select.select([terminal], [], [], 60)[0], f"waits for an answer: {told}"
    return os.read(terminal, 4096).decode(errors="replace")


def draft(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "task.toml").read_text())


def test_a_newcomer_is_asked_for_everything_and_can_sign(tmp_path: Path) -> None:
    code, told = typed(tmp_path, (*INIT, "clubs"), {**WORDS, **PRICES})
    assert code == 0, told
    made = draft(tmp_path / "clubs")
    today = datetime.now(UTC)
    assert {name: made[name] for name in ("organiser", "purpose", "contact", "least")} == {
        "organiser": "the city", "purpose": "clubs", "contact": "clubs@city.example", "least": 40,
    }  # fmt: skip
    assert made["opens"] in {f"{today - timedelta(days):%Y-%m-%d}" for days in (0, 1)}
    assert made["closes"] in {f"{today + timedelta(days):%Y-%m-%d}" for days in (29, 30)}
    assert made["price"] == {"features": "", "label": "2.5", "links": "2", "degree": "", "mode": "both"}
    for wrong in (
        "the letter U+202E is not seen; once more, please",
        "this is no day or moment such as 2027-01-31; once more",
        "this is not later than",
        "this is no whole number from 1 to 100; once more",
        "this is no decimal above 0",
        "this is none of lower, both, directed",
    ):
        assert wrong in told, told
    assert "To fill in" not in told and "read it, then graphveil collect sign clubs" in told
    assert "range" not in told.partition("Promised")[0], "ranges are the declaration's"
    assert Desk(tmp_path / "clubs").sign()["task"]


def test_only_what_is_missing_is_asked(tmp_path: Path) -> None:
    known = (
        "--organiser",
        "city",
        "--purpose",
        "clubs",
        "--contact",
        "us",
        "--epsilon-y",
        "1",
        "--closes",
        "2036-01-01",
    )
    asked = dict(list(WORDS.items())[3:4] + list(WORDS.items())[5:])
    code, told = typed(tmp_path, (*INIT, "clubs", *known), asked)
    assert code == 0 and "Who asks" not in told and "may one report cost" not in told and "Until when" not in told
    code, told = typed(tmp_path, (*INIT, "whole", *known, "--opens", "2026-01-01", "--least", "5"), {})
    assert code == 0 and "is missing" not in told


def test_what_is_left_empty_stays_for_the_file(tmp_path: Path) -> None:
    later = {"youth office): ": ["the city"], "(purpose): ": ["\x04"]}
    code, told = typed(tmp_path, (*INIT, "ended"), later)
    assert code == 0 and draft(tmp_path / "ended")["organiser"] == "the city"
    assert "To fill in" in told and "purpose, contact, opens, closes, least, price" in " ".join(told.split())


def test_a_folder_that_is_used_is_told_before_anybody_is_asked(tmp_path: Path) -> None:
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "file").touch()
    code, told = typed(tmp_path, (*INIT, "used"), {})
    assert code == 2 and "Who asks" not in told


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_off_a_terminal_nobody_is_asked(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*INIT, str(tmp_path / "clubs"), *words]) == 0
    told = capsys.readouterr()
    assert "?" not in told.err and "organiser" in told.out
    if words:
        assert json.loads(told.out)["missing"] == [
            "organiser",
            "purpose",
            "contact",
            "opens",
            "closes",
            "least",
            "price",
        ]
