"""What people read of an advice, made by hand: no graph, no training."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console, RenderableType

from graphveil.cli import advise_screen
from graphveil.cli.next_command import command_of
from graphveil.methods.advise.advice import Advice
from graphveil.methods.advise.facts import PublicFacts
from graphveil.methods.advise.goal import Goal, Reached
from graphveil.methods.advise.panel import Cell
from graphveil.methods.advise.rehearsal import Band, Rehearsal, Trial
from graphveil.methods.advise.rules import TRUSTS, rule_for
from graphveil.methods.runs.intervals import Interval

FACTS = PublicFacts("town", 3000, 2400, 5, 22, ("edges",), None, 0.25, None, "age>=40")
TRIAL = Trial("made", Interval(0.6, 0.55, 0.65, (0.6,)), Interval(0.1, 0.04, 0.16, (0.1,)), "no-edges")


def advice(trust: str = "curator", *, rehearsed: bool = True) -> Advice:
    rule = rule_for(trust, None, None)
    assert rule is not None
    alike = (Cell("cora", 4.0, 9.1), Cell("citeseer", 4.0, 3.0))
    rehearsal = Rehearsal((TRIAL,)) if rehearsed else None
    return Advice(trust, rule, FACTS, 2.0, "of 100 guesses at most 89", alike, rehearsal, "made graphs", None, 3.2)


def shown(screen: RenderableType, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(screen)
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert all(len(line) <= width for line in lines)
    return " ".join(" ".join(lines).split())


def test_a_rehearsed_advice_says_the_band_and_what_it_was_rehearsed_on() -> None:
    text = shown(advise_screen.of_one("town", advice()))
    assert "+4.0 to +16.0 points at epsilon 2, rehearsed in 3.2 s on made graphs" in text
    assert "made 60.0 +10.0 (+4.0 to +16.0) no-edges" in text
    assert "Narrower by" not in text
    assert "+9.1 points at epsilon 4 on cora (citation; 2,708 people, 4 contacts, 7 classes)" in text
    assert "Run next graphveil train class-sums town --epsilon 2" in text


def test_several_made_graphs_are_explained_and_what_narrows_the_band_is_named() -> None:
    names = ("contacts follow classes hardly (22% inside)", "contacts follow classes mostly (71% inside)")
    trials = tuple(replace(TRIAL, world=name, control="label-propagation") for name in names)
    text = shown(advise_screen.of_one("town", replace(advice(), rehearsal=Rehearsal(trials))))
    assert "--pilot DATA" in text and "--degree N" in text and "is not public, so a graph was made" in text
    # No word of the table is broken at 80 columns.
    assert text.count("label-propagation") == 2
    known = replace(advice(), rehearsal=Rehearsal(trials), facts=replace(FACTS, degree=9.0))
    assert "--degree N" not in shown(advise_screen.of_one("town", known))


def test_a_federation_is_split_before_it_is_set_up_and_no_accuracy_is_promised() -> None:
    assert "no accuracy is known for yours" in shown(
        advise_screen.of_one("town", advice("federation", rehearsed=False))
    )
    for screen in (advise_screen.of_one, lambda data, one: advise_screen.of_all(data, [one])):
        text = shown(screen("my town", advice("federation", rehearsed=False)))
        assert "graphveil federation split 'my town' --out parts && graphveil federation init" in text


def test_an_advice_without_a_rehearsal_says_so() -> None:
    text = shown(advise_screen.of_one("town", advice(rehearsed=False)))
    assert "+3.0 to +9.1 points, on the most similar graphs measured; not rehearsed on yours" in text
    bare = replace(advice(rehearsed=False), alike=())
    assert "unknown: neither rehearsed nor measured" in shown(advise_screen.of_one("town", bare))


def test_a_goal_is_answered_in_words() -> None:
    reached = Reached(Goal("accuracy", 0.8), 1.0, 4.0, {4.0: Band(0.8, 0.9)})
    text = shown(advise_screen.of_one("town", replace(advice(), reached=reached)))
    assert "accuracy of at least 80 %: epsilon 1 to 4; take 4" in text


@pytest.mark.parametrize("trust", TRUSTS)
def test_where_no_rule_fits_the_reason_stands_in_place_of_a_command(trust: str) -> None:
    none = replace(advice(trust), rule=None, epsilon=None, adversary=None, alike=(), rehearsal=None)
    text = shown(advise_screen.of_one("town", none))
    assert "collect and publish nothing" in text and "declared" in text
    assert command_of(none, "town") is None and none.settings == {} and none.to_dict()["expected"] is None


def test_all_trusts_stand_below_each_other_with_their_commands() -> None:
    text = shown(advise_screen.of_all("my town", [advice(trust, rehearsed=False) for trust in TRUSTS]))
    for trust in TRUSTS:
        command = command_of(advice(trust), "my town")
        assert command is not None and command in text
    assert "graphveil train class-sums 'my town' --epsilon 2" in text


def test_a_hostile_name_changes_no_line_of_the_screen() -> None:
    text = shown(advise_screen.of_one("town\x1b[31m\n", advice()))
    assert "\x1b" not in text
