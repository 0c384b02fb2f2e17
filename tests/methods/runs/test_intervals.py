"""Means and 95% intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from graphveil.methods import Interval, interval


def test_several_runs_use_students_t_over_their_means() -> None:
    """Means 0.5, 0.55, 0.6: mean 0.55, deviation 0.05, t(0.975; 2) = 4.3027."""
    found = interval([np.array([1, 0]), np.array([0.5, 0.6]), np.array([1, 1, 1, 0, 0])])
    half = 4.302652729911275 * 0.05 / math.sqrt(3)
    assert found.runs == pytest.approx((0.5, 0.55, 0.6))
    assert found.mean == pytest.approx(0.55)
    assert (found.low, found.high) == (pytest.approx(0.55 - half), pytest.approx(0.55 + half))


def test_the_interval_of_runs_is_scipys_and_not_the_normal_one() -> None:
    runs = [np.array([value]) for value in (0.61, 0.66, 0.64, 0.70)]
    means = [0.61, 0.66, 0.64, 0.70]
    low, high = stats.t.interval(0.95, 3, loc=np.mean(means), scale=stats.sem(means))
    found = interval(runs)
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))
    normal = 1.96 * float(stats.sem(means))
    assert found.high - found.mean > 1.5 * normal


def test_one_run_uses_wilsons_interval_over_its_nodes() -> None:
    """64 of 100 right; Wilson, 1927: (p + z^2/2n +- z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n)."""
    found = interval([np.array([1.0] * 64 + [0.0] * 36)])
    z = float(stats.norm.ppf(0.975))
    half = z * math.sqrt(0.64 * 0.36 / 100 + z**2 / 40_000)
    ends = [(0.64 + z**2 / 200 + sign * half) / (1 + z**2 / 100) for sign in (-1, 1)]
    assert (found.mean, found.low, found.high) == pytest.approx((0.64, *ends))
    assert found.runs == (0.64,)


@pytest.mark.parametrize("nodes", [1, 2, 30, 5_000])
def test_one_run_that_is_right_or_wrong_everywhere_is_not_certain(nodes: int) -> None:
    """z^2 / (n + z^2) is left: 11% after 30 nodes."""
    left = 1.959964**2 / (nodes + 1.959964**2)
    right, wrong = interval([np.ones(nodes)]), interval([np.zeros(nodes)])
    assert (right.mean, right.low, right.high) == (1.0, pytest.approx(1 - left, abs=1e-6), 1.0)
    assert (wrong.mean, wrong.low, wrong.high) == (0.0, 0.0, pytest.approx(left, abs=1e-6))


def test_differences_of_one_run_use_the_normal_approximation() -> None:
    """Also where they happen to be 0 and 1 only, as they are when one method is right wherever the other is."""
    better = np.array([1.0] * 10 + [0.0] * 90)
    half = 1.96 * math.sqrt(0.1 * 0.9 / 99)
    found = interval([better], difference=True)
    assert (found.low, found.high) == (pytest.approx(0.1 - half), pytest.approx(0.1 + half))
    worse = interval([-better], difference=True)
    assert (worse.low, worse.high) == (pytest.approx(-found.high), pytest.approx(-found.low))


def test_accuracies_stay_between_0_and_1_and_differences_do_not() -> None:
    runs = [np.array([value]) for value in (0.9, 0.99)]
    assert interval(runs).high == 1.0
    assert interval(runs, difference=True).high > 1.0
    assert interval([1 - run for run in runs]).low == 0.0
    assert interval([-run for run in runs], difference=True).low < -1.0


def test_an_even_guess_is_known_exactly() -> None:
    """1/3 at every node is a probability, not a hit."""
    found = interval([np.full(50, 1 / 3)])
    assert (found.low, found.high) == (pytest.approx(1 / 3), pytest.approx(1 / 3))


@pytest.mark.parametrize(("runs", "nodes"), [(3, 40), (1, 400), (1, 12)])
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
    lift = interval([mine - theirs], difference=True)
    assert lift.high - lift.low < 0.3 * (interval([mine]).high - interval([mine]).low)


def test_one_difference_has_no_width_and_equal_runs_neither() -> None:
    assert interval([np.array([1.0])], difference=True) == Interval(1.0, 1.0, 1.0, (1.0,))
    assert interval([np.array([1.0, 0.0])] * 3) == Interval(0.5, 0.5, 0.5, (0.5, 0.5, 0.5))


def test_intervals_become_json() -> None:
    found = interval([np.array([0.5]), np.array([0.5])])
    assert found.to_dict() == {"mean": 0.5, "low": 0.5, "high": 0.5, "runs": [0.5, 0.5]}
