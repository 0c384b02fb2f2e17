"""Means and 95% intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from graphveil.methods import Interval, interval
from graphveil.methods.runs.intervals import over_runs


def test_runs_that_vary_use_students_t_on_the_scale_of_log_odds() -> None:
    """Means 0.5, 0.55, 0.6: half 4.3027 x 0.05 / sqrt 3; by the delta method over 0.55 x 0.45."""
    found = interval([np.array([1, 0]), np.array([0.5, 0.6]), np.array([1, 1, 1, 0, 0])])
    wide = over_runs([Interval(mean, mean, mean, (mean,)) for mean in (0.5, 0.55, 0.6)])
    half = 4.302652729911275 * 0.05 / math.sqrt(3) / (0.55 * 0.45)
    middle = math.log(0.55 / 0.45)
    assert (wide.low, wide.high) == pytest.approx(tuple(1 / (1 + math.exp(-middle - end)) for end in (-half, half)))
    assert wide.kind == "t" and wide.runs == found.runs == pytest.approx((0.5, 0.55, 0.6))
    assert found.mean == wide.mean == pytest.approx(0.55)


@pytest.mark.parametrize(("shares", "kind"), [((0.5, 0.5), "wilson"), ((0.60, 0.62), "wilson"), ((0.3, 0.9), "t")])
def test_of_nodes_and_runs_the_wider_interval_is_taken(shares: tuple[float, float], kind: str) -> None:
    hits = [np.arange(50) < round(share * 50) for share in shares]
    found, alone = interval([one.astype(float) for one in hits]), interval([hits[0].astype(float)])
    assert found.kind == kind
    assert found.high - found.low > 0.95 * (alone.high - alone.low)


@pytest.mark.parametrize("runs", [1, 2, 5])
@pytest.mark.parametrize(("share", "low", "high"), [(0.0, 0.0, 0.0714), (1.0, 0.9286, 1.0), (0.5, 0.3664, 0.6336)])
def test_equal_runs_have_the_interval_of_one(runs: int, share: float, low: float, high: float) -> None:
    """Wilson's on 50 nodes, computed by hand: 0 hits give z^2 / (50 + z^2) = 0.0714."""
    found = interval([(np.arange(50) < 50 * share).astype(float)] * runs)
    assert (found.mean, found.kind, len(found.runs)) == (share, "wilson", runs)
    assert (found.low, found.high) == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))


def test_differences_of_one_run_are_those_of_bonett_and_price() -> None:
    """10 of 100 better, none worse: (11 - 1) / 102 -+ 1.96 sqrt((11/102 + 1/102 - (10/102)^2) / 102)."""
    better = np.array([1.0] * 10 + [0.0] * 90)
    half = 1.959964 * math.sqrt((12 / 102 - (10 / 102) ** 2) / 102)
    found = interval([better], difference=True)
    assert (found.low, found.high) == (pytest.approx(10 / 102 - half), pytest.approx(10 / 102 + half))
    assert (found.mean, found.kind) == (pytest.approx(0.1), "paired")
    worse = interval([-better], difference=True)
    assert (worse.low, worse.high) == (pytest.approx(-found.high), pytest.approx(-found.low))


def test_two_methods_that_never_differ_are_not_equal_for_certain() -> None:
    """No difference at 50 nodes: 1.96 sqrt(2 / 52 / 52) = 0.0533 either way."""
    for runs in (1, 2, 5):
        found = interval([np.zeros(50)] * runs, difference=True)
        assert (found.low, found.high) == (pytest.approx(-0.0533, abs=1e-4), pytest.approx(0.0533, abs=1e-4))


def test_accuracies_stay_between_0_and_1_and_differences_between_their_ends() -> None:
    runs = [np.array([value]) for value in (0.9, 0.99)]
    assert 0.0 < interval(runs).low < 0.9 and 0.99 < interval(runs).high <= 1.0
    found = interval(runs, difference=True)
    assert -1.0 <= found.low < 0.9 and 0.99 < found.high <= 1.0
    mirrored = interval([-run for run in runs], difference=True)
    assert (mirrored.low, mirrored.high) == pytest.approx((-found.high, -found.low))


def test_an_even_guess_is_known_exactly() -> None:
    """1/3 at every node is a probability, not a hit."""
    found = interval([np.full(50, 1 / 3)])
    assert (found.low, found.high, found.kind) == (pytest.approx(1 / 3), pytest.approx(1 / 3), "exact")
