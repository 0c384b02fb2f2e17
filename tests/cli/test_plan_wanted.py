"""``graphveil plan METHOD DATA --want GOAL``."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.text import Text

from graphveil.cli.wanted import searched
from graphveil.methods.advise.goal import Goal, Reached
from graphveil.methods.advise.rehearsal import Band
from graphveil.methods.advise.wanted import Wanted
from tests.cli.conftest import Terminal


def test_the_plan_is_that_of_the_epsilon_that_was_found(type_in: Terminal) -> None:
    words = ("plan", "label-propagation", "social-100", "--want", "accuracy=0.2", "--pilot", "social-200")
    found = type_in(*words, "--json").json
    sure = found["reached"]["epsilon"]["high"]
    assert sure is not None and found["epsilon"]["labels"] == sure
    text = " ".join(type_in(*words).out.split())
    assert "the pilot social-200" in text and f"The plan below is for epsilon {sure:g}." in text
    assert "--pilot" not in text


def test_a_goal_that_nothing_reaches_leaves_the_plan_as_it_is(type_in: Terminal) -> None:
    found = type_in("plan", "label-propagation", "social-100", "--want", "lift=0.99", "--pilot", "social-100", "--json")
    assert found.json["reached"]["epsilon"] == {"low": None, "high": None} and found.json["epsilon"]["labels"] == 1.0


def test_a_plan_without_a_goal_says_nothing_of_one(type_in: Terminal) -> None:
    assert "reached" not in type_in("plan", "label-propagation", "social-100", "--json").json


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--pilot", "social-100"), "are for a goal"),
        (("--degree", "3"), "are for a goal"),
        (("--want", "f1=0.3"), "no goal"),
        (("--want", "lift=0.1", "--epsilon", "1"), "is what is searched"),
    ],
)
def test_idle_and_wrong_options_are_refused(type_in: Terminal, words: tuple[str, ...], said: str) -> None:
    answer = type_in("plan", "label-propagation", "social-100", *words)
    assert answer.code == 2 and answer.out == "" and said in answer.err


@pytest.mark.parametrize(("pilot", "named"), [(None, True), ("social-100", False)])
def test_a_missed_goal_says_which_epsilon_the_plan_is_for_and_what_narrows_the_answer(
    pilot: str | None, named: bool
) -> None:
    missed = Reached(Goal("lift", 0.9), None, None, {8.0: Band(0.1, 0.2)})
    console = Console(file=io.StringIO(), width=80)
    console.print(searched(Wanted("epsilon", missed, "made graphs", 2.0), pilot, Text("the plan itself")))
    assert isinstance(console.file, io.StringIO)
    text = " ".join(console.file.getvalue().split())
    assert "at 8 all rehearsals together gave +10.0 to +20.0 points" in text
    assert "The plan below is for the default epsilon." in text and text.endswith("the plan itself")
    assert ("--pilot DATA" in text) == named
