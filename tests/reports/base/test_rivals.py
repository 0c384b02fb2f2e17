"""Rivals at the same privacy price: the difference, its sentence, and where both are shown."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from graphveil.methods.runs.intervals import Interval
from graphveil.methods.runs.intervals import interval as interval_over
from graphveil.reports.base import words
from graphveil.reports.base.record import RunRecord, difference
from graphveil.reports.runs.page import page_html
from tests.reports import made
from tests.reports.made import card_markdown
from tests.reports.pages import read


def record(runs: int = 5, **changes: Any) -> RunRecord:
    return made.record(**made.beside_rivals(runs=runs, **changes))


def score(mean: float, half: float, runs: tuple[float, ...] = (0.0,)) -> Interval:
    return Interval(mean, mean - half, mean + half, runs)


def test_several_runs_are_paired() -> None:
    mine, theirs = (0.80, 0.90, 0.70), (0.79, 0.88, 0.68)
    gap = difference(score(0.8, 0.2, mine), score(0.78, 0.2, theirs))
    expected = interval_over([np.array([a - b]) for a, b in zip(mine, theirs, strict=True)], difference=True)
    assert gap == expected
    assert gap.low > 0


def test_one_run_adds_both_intervals_as_independent_ones() -> None:
    gap = difference(score(0.8, 0.03), score(0.7, 0.04))
    assert (gap.mean, gap.low, gap.high) == pytest.approx((0.1, 0.05, 0.15))


@pytest.mark.parametrize(
    ("own", "runs", "says"),
    [
        (0.85, 5, "it scores measurably above its best rival, blink-hybrid."),
        (0.75, 5, "its best rival, blink-hybrid, scores measurably better: prefer that one."),
        (0.817, 5, "it does not differ measurably from its best rival, blink-hybrid."),
        (0.9, 1, "it scores measurably above its best rival in this one run, blink-hybrid."),
    ],
)
def test_the_sentence_follows_the_interval(own: float, runs: int, says: str) -> None:
    changed = record(runs, accuracy=made.interval(own, runs=runs, seed=9))
    assert words.rival_sentence(changed) == f"At the same privacy price {says}"


def test_without_rivals_there_is_no_lead_and_no_sentence() -> None:
    assert words.rival_sentence(made.record()) == "" and made.record().lead is None


def test_card_and_page_show_rivals_and_what_a_relationship_costs() -> None:
    card, page = card_markdown(record()), read(page_html(record(), {})).text
    for text in (card, page):
        for part in ("blink-hybrid", "degree-preserving", "best rival", "At the same privacy price", "random-graph"):
            assert part in text, part
        assert "onnections: epsilon 4 for one relationship, everything released about it included" in text
        assert "Who is connected to whom" not in text
        assert "what the private connections added" in text
    for text in (card_markdown(made.record()), read(page_html(made.record(), {})).text):
        assert "rival" not in text
        assert "relationship" not in text
    lead = record().lead
    assert lead is not None
    assert f"blink-hybrid: {words.points(lead.mean)} points" in card
    # Without a price, connections are no line of what is protected.
    assert "Connections: epsilon" in card and "Connections:" not in card_markdown(record(epsilon_relationship=math.inf))
