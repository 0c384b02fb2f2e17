"""The curves of an attack in the page: between guessing and everything, and the limit where there is one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from graphveil.attacks import AttackResult
from graphveil.methods.runs.intervals import Interval
from graphveil.reports.attacks.curves import attack_charts


def found(limit: float | None = 0.03, epsilon: float = 1.0) -> AttackResult:
    score = Interval(0.5, 0.4, 0.6, (0.5,))
    curve = ((0.0, 0.0), (0.0, 0.25), (0.5, 0.75), (1.0, 1.0))
    return AttackResult(
        "linkteller", "edges", score, score, score, limit, None, "one edge", epsilon, 0.0, None, "", curve, 4, 4
    )


def test_curves_go_through_the_corners() -> None:
    whole, few = attack_charts("a", {"gap": found()})
    values = dict(zip(whole.places, whole.lines[0].values, strict=True))
    assert values[0.5] == pytest.approx(0.75)
    assert values[0.25] == pytest.approx(0.5)
    assert few.log
    assert min(few.places) == pytest.approx(0.001)
    assert all(value is not None and value > 0 for line in few.lines for value in line.values)


def test_the_tightest_limit_is_drawn_and_none_where_there_is_none() -> None:
    results = {"gap": found(), "loose": found(epsilon=4.0), "plain": replace(found(None), epsilon=float("inf"))}
    whole, _ = attack_charts("a", results)
    assert [line.name for line in whole.lines] == [*results, "guessing", "epsilon 1 allows at most"]
    whole, _ = attack_charts("a", {"plain": found(None)})
    assert [line.name for line in whole.lines] == ["plain", "guessing"]
