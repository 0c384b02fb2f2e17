"""What a device says that anybody can learn follows from the noise of the task, whatever its organiser wrote."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pytest

from graphveil.device import telling
from graphveil.device.telling import about_one_link
from tests.collection.test_promised import ASKED, joint
from tests.on_device.signing import degree, features, label, links, task_of

PEOPLE = 12
LINKS = ("links", "degree")


def field(kind: str, mode: str) -> dict[str, Any]:
    if kind in LINKS:
        return links(PEOPLE, "0.7", mode) if kind == "links" else degree(PEOPLE, "0.3", mode)
    return features("1.5") if kind == "features" else label("2")


@pytest.mark.parametrize("kinds", ASKED, ids="+".join)
@pytest.mark.parametrize("mode", ["lower", "both", "directed"])
def test_what_is_told_covers_whole_reports(kinds: tuple[str, ...], mode: str) -> None:
    task = task_of(*(field(kind, mode) for kind in kinds), people=PEOPLE)
    lines = list(telling.task_lines(task))
    begins = {("features",): "- your numbers", ("label",): "- which one you are", LINKS: "- whether you"}
    for about, begin in begins.items():
        bounds = [line for line in lines if line.startswith(begin)]
        assert len(bounds) == bool(set(about) & set(kinds))
        for line in bounds:
            epsilon, times = re.search(r"\(epsilon (.*)\)", line), re.search(r"at most ([\d.,]+) times", line)
            assert epsilon is not None and times is not None
            assert Decimal(epsilon[1]) >= joint(task, about)
            assert Decimal(times[1].replace(",", "")) >= joint(task, about).exp()
    assert f"- a report that answers everything costs you epsilon {float(task.epsilon):g}" in lines


@pytest.mark.parametrize(
    ("mode", "other", "epsilon"), [("lower", "lower", 1.5), ("directed", "directed", 3), ("directed", "lower", 2.5)]
)
def test_a_link_that_both_ends_report_is_counted_from_both(mode: str, other: str, epsilon: float) -> None:
    """Whoever reads that two friends name each other is right with 88.1% at epsilon 1, in mode directed too."""
    task = task_of(links(PEOPLE, "1", mode), degree(PEOPLE, "0.5", other), people=PEOPLE)
    assert float(about_one_link(task.fields)) == epsilon
    alone = task_of(links(PEOPLE, "1", mode), people=PEOPLE)
    (line,) = (line for line in telling.task_lines(alone) if "certain person" in line)
    assert f"(epsilon {1 if mode == 'lower' else 2})" in line


def test_odds_at_most_hold_however_large_they_are() -> None:
    """A report of ten bits has odds of e^98. The check of a threshold counts e^44 at most; what is told may not."""
    for task, epsilon in (
        (task_of(features("100", 10, sampled=10)), "100"),
        (task_of(links(PEOPLE, "30", "both"), degree(PEOPLE, "30", "both"), people=PEOPLE), "120"),
    ):
        text = "\n".join(telling.task_lines(task))
        assert f"odds up to practical certainty (epsilon {epsilon})" in text and "odds at most" not in text


def test_an_organisers_promise_is_told_as_the_organisers() -> None:
    """Nobody checks what it says: the device's own figures stand before it."""
    words = "Each report hides everything about you (epsilon = 0.01)."
    lines = list(telling.task_lines(task_of(label("30"), guarantee=[words], public=[words])))
    assert [line for line in lines if words in line] == [
        f"the organiser's words: {words}",
        f"the organiser's words on what is public: {words}",
    ]
    own = next(line for line in lines if line.startswith("- which one you are: "))
    assert own.endswith("(epsilon 30)") and lines.index(own) < lines.index(f"the organiser's words: {words}")
    assert "answers are taken from 1970-01-01 00:00 UTC until 2033-05-18 03:33 UTC" in lines
