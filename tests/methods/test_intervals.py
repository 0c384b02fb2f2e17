"""Means and 95% intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from graphveil.methods import Interval, interval


def test_several_runs_use_students_t_over_their_means() -> None:
    """Means 0.5, 0.75, 1: mean 0.75, deviation 0.25, t(0.975; 2) = 4.3027."""
    found = interval([np.array([1, 0]), np.array([1, 1, 1, 0]), np.array([1, 1])])
    half = 4.302652729911275 * 0.25 / math.sqrt(3)
    assert found.runs == (0.5, 0.75, 1.0)
    assert found.mean == pytest.approx(0.75)
    assert (found.low, found.high) == (pytest.approx(0.75 - half), pytest.approx(0.75 + half))


def test_the_interval_of_runs_is_scipys_and_not_the_normal_one() -> None:
    runs = [np.array([value]) for value in (0.61, 0.66, 0.64, 0.70)]
    means = [0.61, 0.66, 0.64, 0.70]
    low, high = stats.t.interval(0.95, 3, loc=np.mean(means), scale=stats.sem(means))
    found = interval(runs)
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))
    normal = 1.96 * float(stats.sem(means))
    assert found.high - found.mean > 1.5 * normal


def test_one_run_uses_the_binomial_spread_over_its_nodes() -> None:
    """64 of 100 right: 1.96 sqrt(0.64 0.36 / 99)."""
    found = interval([np.array([1.0] * 64 + [0.0] * 36)])
    half = 1.96 * math.sqrt(0.64 * 0.36 / 99)
    assert (found.mean, found.low, found.high) == pytest.approx((0.64, 0.64 - half, 0.64 + half))
    assert found.runs == (0.64,)


@pytest.mark.parametrize(("runs", "nodes"), [(3, 40), (1, 400)])
def test_intervals_cover_the_truth_as_often_as_they_say(runs: int, nodes: int) -> None:
    """4,000 experiments at a true accuracy of 0.7: coverage is 95% +- 2 points; intervals a third narrower fail.

    The deviation of the share is 0.34 points, so a false alarm has a chance below 1e-6 but for the small skew.
    """
    rng = np.random.default_rng(0)
    covered = narrow = 0
    for _ in range(4_000):
        found = interval(list((rng.random((runs, nodes)) < 0.7).astype(float)))
        covered += found.low <= 0.7 <= found.high
        narrow += abs(found.mean - 0.7) <= (found.high - found.mean) * 2 / 3
    assert abs(covered / 4_000 - 0.95) < 0.02
    assert abs(narrow / 4_000 - 0.95) > 0.02


def test_paired_differences_are_narrower_than_unpaired_ones() -> None:
    """Two methods that are right on nearly the same nodes: the interval of the lift knows it."""
    rng = np.random.default_rng(1)
    mine = (rng.random(500) < 0.7).astype(float)
    theirs = mine.copy()
    theirs[:10] = 0
    lift = interval([mine - theirs])
    assert lift.high - lift.low < 0.3 * (interval([mine]).high - interval([mine]).low)


def test_one_node_has_no_width_and_equal_runs_neither() -> None:
    assert interval([np.array([1.0])]) == Interval(1.0, 1.0, 1.0, (1.0,))
    assert interval([np.array([1.0, 0.0])] * 3) == Interval(0.5, 0.5, 0.5, (0.5, 0.5, 0.5))


def test_intervals_become_json() -> None:
    assert interval([np.array([1.0])]).to_dict() == {"mean": 1.0, "low": 1.0, "high": 1.0, "runs": [1.0]}
