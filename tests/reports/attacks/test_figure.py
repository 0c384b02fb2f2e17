"""The picture of an attack and its lines on the screen."""

from __future__ import annotations

import math

import numpy as np
import pytest

from graphveil.attacks import AttackResult, Limit, judge
from graphveil.reports.attacks.figure import attack_figure, summary
from graphveil.reports.base.figures import png, svg


def found(shift: float, epsilon: float = math.inf) -> AttackResult:
    rng = np.random.default_rng(0)
    members, others = rng.normal(shift, 1, 200), rng.normal(0, 1, 900)
    limit = Limit(epsilon, 0.0, "epsilon of one edge" if math.isfinite(epsilon) else "the method protects nothing")
    return judge("link-stealing", "edges", members, others, limit=limit, baseline=0.5, baseline_note="$no$ edge")


def test_the_limit_is_shaded_and_every_attack_is_in_the_legend() -> None:
    figure = attack_figure({"plain": found(2.0), "veiled": found(0.3, 1.0)})
    text = svg(figure)
    assert "plain: AUC" in text and "veiled: AUC" in text and "more than epsilon 1 allows" in text
    assert len(figure.axes) == 2 and len(figure.axes[0].collections) == 1
    assert png(figure).startswith(b"\x89PNG")


def test_nothing_is_shaded_where_nothing_is_promised() -> None:
    figure = attack_figure({"plain": found(2.0)})
    assert not figure.axes[0].collections and "more than epsilon" not in svg(figure)


def test_the_curve_is_drawn_as_it_was_measured() -> None:
    result = found(1.0)
    line = attack_figure({"plain": result}).axes[0].lines[1]
    assert np.asarray(line.get_xydata())[5:] == pytest.approx(np.array(result.roc)[5:], abs=1e-4)


def test_lines_say_what_epsilon_allows_and_when_it_is_exceeded() -> None:
    lines = summary(found(0.1, 2.0))
    assert "epsilon allows" in lines[2] and "limit from epsilon of one edge" in lines
    assert not any("MORE THAN" in line for line in lines)
    assert any("MORE THAN" in line for line in summary(found(3.0, 0.5)))
    assert "limit: the method protects nothing" in summary(found(1.0))
