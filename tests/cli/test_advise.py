"""``graphveil advise`` at the terminal."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.console import RenderableType
from rich.text import Text

from graphveil.cli import advise as advise_screen
from graphveil.cli.advise import command_of
from graphveil.cli.app import build
from graphveil.cli.train.plan import searched
from graphveil.methods.advise.advice import Advice
from graphveil.methods.advise.goal import Goal, Reached, Wanted
from graphveil.methods.advise.rehearsal import Band, PublicFacts, Rehearsal, Trial
from graphveil.methods.advise.rules import TRUSTS, Cell, rule_for
from graphveil.methods.runs.intervals import Interval
from tests.cli.conftest import Terminal, text_of

TOWN = str(Path(__file__).parents[2] / "docs" / "examples" / "town")


def test_a_line_for_each_trust_with_a_command_that_is_one(type_in: Terminal) -> None:
    answer = type_in("advise", TOWN)
    assert answer.code == 0 and answer.err == ""
    first = [line.split(" ")[0] for line in answer.out.splitlines()]
    assert [word for word in first if word in TRUSTS] == list(TRUSTS)
    advice = type_in("advise", TOWN, "--json").json["advice"]
    assert [entry["trust"] for entry in advice] == list(TRUSTS)
    assert [entry["method"] for entry in advice] == [None, "links", "class-sums", "class-counts", "guesses"]
    assert all(entry["rehearsal"] == [] and entry["rehearsed_on"] in ("", "not rehearsed") for entry in advice)
    for line in " && ".join(entry["command"] for entry in advice if entry["command"]).split(" && "):
        program, *words = shlex.split(line)
        command: Any = typer.main.get_command(build())
        while hasattr(command, "commands"):
            command, words = command.commands[words[0]], words[1:]
        assert program == "graphveil"
        command.make_context("advised", list(words))


# ---- what people read of an advice, made by hand ----


FACTS = PublicFacts("town", 3000, 2400, 5, 22, ("edges",), None, 0.25, None, "age>=40")
TRIAL = Trial("made", Interval(0.6, 0.55, 0.65, (0.6,)), Interval(0.1, 0.04, 0.16, (0.1,)), "no-edges")


def advice(trust: str = "curator", *, rehearsed: bool = True) -> Advice:
    rule = rule_for(trust, None, None)
    assert rule is not None
    measured = tuple(
        Cell(str(rule.method), graph, 4.0, None, lift) for graph, lift in (("cora", 9.1), ("citeseer", 3.0))
    )
    rehearsal = Rehearsal((TRIAL,)) if rehearsed else None
    return Advice(
        trust, rule, FACTS, 2.0, "of 100 guesses at most 89", measured, rehearsal, "synthetic graphs", None, 3.2
    )


def words_of(screen: RenderableType) -> str:
    """What stands on a terminal of 80 columns, in one line."""
    lines = text_of(screen).splitlines()
    assert all(len(line) <= 80 for line in lines)
    return " ".join(" ".join(lines).split())


def test_a_rehearsed_advice_says_the_band_and_what_it_was_rehearsed_on() -> None:
    text = words_of(advise_screen.of_one("town", advice()))
    assert "+4.0 to +16.0 points at epsilon 2, rehearsed in 3.2 s on synthetic graphs" in text
    assert "made 60.0 +10.0 (+4.0 to +16.0) no-edges" in text
    assert "Narrower by" not in text
    assert "+9.1 points at epsilon 4 on cora (citation; 2,708 people, 4 contacts, 7 classes)" in text
    assert "Run next graphveil train class-sums town --epsilon 2" in text
    reached = Reached(Goal("accuracy", 0.8), 1.0, 4.0, {4.0: Band(0.8, 0.9)})
    text = words_of(advise_screen.of_one("town\x1b[31m\n", replace(advice(), reached=reached)))
    assert "accuracy of at least 80 %: epsilon 1 to 4; take 4" in text and "\x1b" not in text


def test_several_made_graphs_are_explained_and_what_narrows_the_band_is_named() -> None:
    names = ("contacts follow classes hardly (22% inside)", "contacts follow classes mostly (71% inside)")
    trials = tuple(replace(TRIAL, world=name, control="label-propagation") for name in names)
    text = words_of(advise_screen.of_one("town", replace(advice(), rehearsal=Rehearsal(trials))))
    assert "--pilot DATA" in text and "--degree N" in text and "is not public, so a graph was generated" in text
    # No word of the table is broken at 80 columns.
    assert text.count("label-propagation") == 2
    rehearsed = replace(advice(), rehearsal=Rehearsal(trials), facts=replace(FACTS, degree=9.0))
    assert "--degree N" not in words_of(advise_screen.of_one("town", rehearsed))


@pytest.mark.parametrize("trust", TRUSTS)
def test_where_no_rule_fits_the_reason_stands_in_place_of_a_command(trust: str) -> None:
    none = replace(advice(trust), rule=None, epsilon=None, adversary=None, measured=(), rehearsal=None)
    text = words_of(advise_screen.of_one("town", none))
    assert "collect and publish nothing" in text and "declared" in text
    assert command_of(none, "town") is None and none.settings == {} and none.to_dict()["expected"] is None


def test_all_trusts_stand_below_each_other_with_their_commands() -> None:
    text = words_of(advise_screen.of_all("my town", [advice(trust, rehearsed=False) for trust in TRUSTS]))
    for trust in TRUSTS:
        command = command_of(advice(trust), "my town")
        assert command is not None and command in text
    assert "graphveil train class-sums 'my town' --epsilon 2" in text
    # A federation is split before it is set up, and no accuracy is promised.
    assert "graphveil federation split 'my town' --out parts && graphveil federation init" in text
    measured = words_of(advise_screen.of_one("town", advice(rehearsed=False)))
    assert "+3.0 to +9.1 points, on the most similar graphs measured; not rehearsed on yours" in measured
    bare = replace(advice(rehearsed=False), measured=())
    assert "unknown: neither rehearsed nor measured" in words_of(advise_screen.of_one("town", bare))
    alone = words_of(advise_screen.of_one("town", advice("federation", rehearsed=False)))
    assert "no accuracy is known for yours" in alone


# ---- graphveil plan METHOD DATA ----


def test_a_plan_draws_who_sees_what_and_minds_what_a_folder_declares_private(type_in: Terminal) -> None:
    for data, private in (("social-100", False), (TOWN, True)):
        parties = type_in("plan", "gcn", data, "--json").good.json["parties"]
        assert [party["key"] for party in parties["parties"]] == ["people", "curator", "readers"]
        assert [arrow["epsilon"] for arrow in parties["arrows"]] == [None, None]
        assert ("declare them private" in str(parties)) == private
        assert 'data-party="curator" tabindex="0"' in parties["svg"]


# ---- graphveil plan METHOD DATA --want GOAL ----


def test_the_plan_is_that_of_the_epsilon_that_was_found(type_in: Terminal) -> None:
    words = ("plan", "label-propagation", "social-100", "--want", "accuracy=0.2", "--pilot", "social-200")
    answer = type_in(*words, "--json").json
    sure = answer["reached"]["epsilon"]["high"]
    assert sure is not None and answer["epsilon"]["labels"] == sure
    text = " ".join(type_in(*words).out.split())
    assert "the pilot social-200" in text and f"The plan below is for epsilon {sure:g}." in text
    assert "--pilot" not in text


@pytest.mark.parametrize(("pilot", "named"), [(None, True), ("social-100", False)])
def test_a_missed_goal_says_which_epsilon_the_plan_is_for_and_what_narrows_the_answer(
    pilot: str | None, named: bool
) -> None:
    missed = Reached(Goal("lift", 0.9), None, None, {8.0: Band(0.1, 0.2)})
    text = words_of(searched(Wanted("epsilon", missed, "synthetic graphs", 2.0), pilot, Text("the plan itself")))
    assert "at 8 all rehearsals together gave +10.0 to +20.0 points" in text
    assert "The plan below is for the default epsilon." in text and text.endswith("the plan itself")
    assert ("--pilot DATA" in text) == named


# ---- graphveil train DATA`` without a method ----


@pytest.mark.parametrize("data", ["social-100", TOWN])
def test_all_trusts_are_told_and_nothing_is_trained(type_in: Terminal, tmp_path: Path, data: str) -> None:
    answer = type_in("train", data)
    assert answer.code == 2 and not (tmp_path / "runs").exists()
    assert all(trust in answer.out for trust in TRUSTS) and "graphveil train class-sums" in answer.out
    assert answer.err == (
        "error: train: no method is named, so nothing was trained; type one of the commands above, or add --trust\n"
    )


def test_one_trust_is_told_with_the_reason_and_the_whole_command(type_in: Terminal) -> None:
    answer = type_in("train", "social-100", "--trust", "curator")
    message = " ".join(answer.out.split())
    assert answer.code == 2 and "class-sums was best" in message and "label-pool" not in message
    assert answer.err.endswith("type graphveil train class-sums social-100 --epsilon 4\n")
    type_in("train", "social-100", "--trust", "curator", "--json").refused()
    unfit = type_in("train", TOWN, "--trust", "local")
    assert unfit.code == 2 and "connections are declared private" in " ".join(unfit.out.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("labelpool",), "did you mean label-pool?"),
        (("label-pool",), "DATA is missing"),
        (("no-such-thing-at-all",), "no method"),
        (("label-pool", "social-100", "--trust", "local"), "--trust chooses a method, and one is named"),
    ],
)
def test_a_mistyped_name_still_gets_its_suggestion(type_in: Terminal, words: tuple[str, ...], message: str) -> None:
    type_in("train", *words).refused(message)


def test_the_command_of_every_trust_is_that_of_advise(type_in: Terminal, tmp_path: Path) -> None:
    """What is said on stderr can be pasted, and is what `advise` says too."""
    advised = {entry["trust"]: entry["command"] for entry in type_in("advise", "social-100", "--json").json["advice"]}
    for trust in TRUSTS:
        assert type_in("train", "social-100", "--trust", trust).err.endswith(f"type {advised[trust]}\n")
    # A folder named like a method is a method unless it is written as a folder.
    (tmp_path / "links").mkdir()
    assert "DATA is missing" in type_in("train", "links").err
    assert "no graph.toml found" in type_in("train", "./links").err
