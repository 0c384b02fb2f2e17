"""Rivals at the same privacy price: the difference, its sentence, and where both are shown."""

from __future__ import annotations

import csv
import io
import math
import re
from typing import Any

import numpy as np
import pytest

from graphveil.methods.runs.intervals import Interval
from graphveil.methods.runs.intervals import interval as interval_over
from graphveil.reports.base import figures, rivals, words
from graphveil.reports.base.record import RunRecord
from graphveil.reports.compare import rows as comparison_rows
from graphveil.reports.compare import table
from graphveil.reports.compare.cells import Comparison
from graphveil.reports.compare.rows import Row
from graphveil.reports.compare.sheet import sheet
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
    found = rivals.difference(score(0.8, 0.2, mine), score(0.78, 0.2, theirs))
    expected = interval_over([np.array([a - b]) for a, b in zip(mine, theirs, strict=True)], difference=True)
    assert found == expected
    assert found.low > 0


def test_one_run_adds_both_intervals_and_is_never_too_narrow() -> None:
    """1,000 pairs of independent scores: the difference lies inside at least 95% of the time (6 deviations)."""
    found = rivals.difference(score(0.8, 0.03), score(0.7, 0.04))
    assert (found.mean, found.low, found.high) == pytest.approx((0.1, 0.05, 0.15))
    source = np.random.default_rng(1)
    truth, sizes, inside = (0.8, 0.75), (300, 400), 0
    for _ in range(1000):
        hits = [source.random(size) < share for share, size in zip(truth, sizes, strict=True)]
        both = [interval_over([hit.astype(float)]) for hit in hits]
        difference = rivals.difference(*both)
        inside += difference.low <= truth[0] - truth[1] <= difference.high
    assert inside / 1000 > 0.95 - 6 * math.sqrt(0.05 * 0.95 / 1000)


@pytest.mark.parametrize(
    ("own", "runs", "says"),
    [
        (0.85, 5, "scores measurably above its best rival, blink-hybrid."),
        (0.75, 5, "its best rival, blink-hybrid, scores measurably better: prefer that one."),
        (0.817, 5, "does not differ measurably from its best rival, blink-hybrid."),
    ],
)
def test_the_sentence_follows_the_interval(own: float, runs: int, says: str) -> None:
    changed = record(runs, accuracy=made.interval(own, runs=runs, seed=9))
    assert says in words.rival_sentence(changed)
    assert words.rival_sentence(changed).startswith("At the same privacy price ")
    assert words.rival_sentence(made.record()) == ""
    assert rivals.lead(made.record()) is None


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
    lead = rivals.lead(record())
    assert lead is not None
    assert f"blink-hybrid: {words.points(lead.mean)} points" in card
    # Without a price, connections are no line of what is protected.
    assert "Connections: epsilon" in card and "Connections:" not in card_markdown(record(epsilon_relationship=math.inf))
    scores = record().scores
    figure = figures.accuracy_figure("solitude", scores.accuracy, scores.controls, None, scores.rivals)
    bars = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert bars[1:] == ["blink-hybrid (rival)", "degree-preserving (rival)", "no-edges", "random-graph"]


COMPARED = Comparison(
    data="cora",
    methods={"solitude": {}, "lpgnn": {}},
    axes={},
    takes={"solitude": [], "lpgnn": []},
    seeds=(0, 1),
    options={"controls": True},
)


def rows() -> list[Row]:
    records = [record(1), record(1, accuracy=made.interval(0.9, runs=1)), made.record(runs=1), made.record(runs=1)]
    return comparison_rows.tabulate(COMPARED, records)


def test_a_comparison_has_columns_for_rivals_only_where_there_are_some() -> None:
    solitude, lpgnn = rows()
    assert (solitude.best_rival, solitude.epsilon_relationship) == ("blink-hybrid", 4.0)
    assert (lpgnn.best_rival, lpgnn.lead, lpgnn.epsilon_relationship) == (None, None, None)
    rival = record(1).scores.rivals["blink-hybrid"].mean
    means = (record(1).scores.accuracy.mean, made.interval(0.9, runs=1).mean)
    assert solitude.lead is not None and solitude.lead.runs == pytest.approx([mean - rival for mean in means])
    text = table.markdown_text(sheet(COMPARED, rows()))
    local, links = (part.splitlines() for part in re.split(r"^## [AB]\. .*$", text, flags=re.MULTILINE)[1:])
    first = [line for line in local if line.startswith("|")]
    assert not any("rival" in line for line in links)
    assert "| lead, points (95%) | over rival |" in first[0]
    assert "| epsilon: relationship |" in first[0]
    assert "blink-hybrid" in first[2]
    assert len({line.count("|") for line in first}) == 1
    plain = comparison_rows.tabulate(COMPARED, [made.record(runs=1)] * 4)
    assert "rival" not in table.markdown_text(sheet(COMPARED, plain))
    first, second = csv.DictReader(io.StringIO(table.csv_text(sheet(COMPARED, rows()))))
    assert (first["best_rival"], first["epsilon_relationship"]) == ("blink-hybrid", "4.0")
    assert float(first["lead_mean"]) == pytest.approx(rows()[0].lead.mean)  # type: ignore[union-attr]
    assert (second["best_rival"], second["lead_mean"], second["epsilon_relationship"]) == ("", "", "")


def test_every_rival_and_control_there_is_has_its_meaning() -> None:
    """Read off the page of the module that trains them, so that a new one is not forgotten."""
    from graphveil.methods.links import controls as link_controls
    from graphveil.methods.local import controls

    for module in (controls, link_controls):
        named = re.findall(r"^    ([a-z-]+(?:, [a-z-]+)*)  +\S", module.__doc__ or "", re.MULTILINE)
        for name in ", ".join(named).split(", "):
            assert name in words.CONTROL_MEANING or name in words.RIVAL_MEANING or name == "ceiling", name
        assert len(named) > 2
