"""``graphveil advise`` at the terminal."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from graphveil.cli.app import build
from graphveil.methods.advise.rules import TRUSTS
from tests.cli.conftest import Terminal

TOWN = str(Path(__file__).parents[2] / "docs" / "examples" / "town")


def test_a_line_for_each_trust(type_in: Terminal) -> None:
    answer = type_in("advise", TOWN)
    assert answer.code == 0 and answer.err == ""
    first = [line.split(" ")[0] for line in answer.out.splitlines()]
    assert [word for word in first if word in TRUSTS] == list(TRUSTS)
    found = type_in("advise", TOWN, "--json").json
    assert [one["trust"] for one in found["advice"]] == list(TRUSTS)
    assert [one["method"] for one in found["advice"]] == [None, "links", "class-sums", "class-counts", "guesses"]
    assert all(one["rehearsal"] == [] and one["rehearsed_on"] in ("", "not rehearsed") for one in found["advice"])


@pytest.mark.parametrize("data", ["digits", TOWN])
def test_every_command_that_is_advised_is_one(type_in: Terminal, data: str) -> None:
    for one in type_in("advise", data, "--json").json["advice"]:
        if one["command"] is None:
            continue
        for line in one["command"].split(" && "):
            program, *words = shlex.split(line)
            command: Any = typer.main.get_command(build())
            while hasattr(command, "commands"):
                command, words = command.commands[words[0]], words[1:]
            assert program == "graphveil"
            command.make_context("advised", list(words))


@pytest.mark.slow
def test_all_about_one_trust(type_in: Terminal) -> None:
    answer = type_in("advise", "social-100", "--trust", "curator", "--epsilon", 2)
    assert answer.code == 0 and "rehearsing class-sums at epsilon 2" in answer.err
    for word in ("Known", "Why", "Expected lift", "Adversary", "Not protected", "Run next", "contacts follow classes"):
        assert word in answer.out, word
    assert "graphveil train class-sums social-100 --epsilon 2" in " ".join(answer.out.split())


@pytest.mark.slow
def test_a_goal_on_a_pilot(type_in: Terminal) -> None:
    found = type_in("advise", TOWN, "--trust", "curator", "--want", "lift=0.9", "--pilot", "social-100", "--json").json
    assert found["reached"]["epsilon"] == {"low": None, "high": None} and "pilot" in found["rehearsed_on"]
    assert [one["world"] for one in found["rehearsal"]] == ["the pilot social-100"] * 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--trust", "curater"), "did you mean curator?"),
        (("--want", "lift=0.1"), "add --trust"),
        (("--trust", "local", "--want", "lift"), "no goal"),
        (("--trust", "local", "--epsilon", "-1"), "not a privacy budget"),
        (("--trust", "local", "--epsilon", "inf"), "protects nothing"),
        (("--trust", "curator", "--degree", "0"), "contacts"),
        (("--trust", "curator", "--pilot", "no-such-graph"), "no data set or folder"),
    ],
)
def test_what_cannot_be_answered_is_refused_in_one_line(type_in: Terminal, words: tuple[str, ...], said: str) -> None:
    answer = type_in("advise", "social-100", *words)
    assert answer.code == 2 and answer.out == ""
    assert said in answer.err and answer.err.count("\n") == 1
