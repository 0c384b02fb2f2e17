"""Tuning by repeat-and-select: its price, its random number of trials (checklist item 13)."""

from __future__ import annotations

import math

import dp_accounting
import numpy as np
import pytest
from scipy import stats

from graphveil.errors import InputError
from graphveil.privacy import (
    Descent,
    Hops,
    RepeatAndSelect,
    SeededRandomness,
    calibrate_pipeline,
    epsilon_of,
    repeat_and_select,
)

TRIAL = dp_accounting.GaussianDpEvent(4.0)
DELTA = 1e-5


def test_tuning_costs_more_than_a_trial_and_less_than_all_of_them() -> None:
    once = epsilon_of(TRIAL, DELTA, "rdp")
    prices = [repeat_and_select(TRIAL, DELTA, RepeatAndSelect(mean)) for mean in (5.0, 10.0, 20.0)]
    assert once < prices[0] < prices[1] < prices[2]
    assert prices == pytest.approx([1.6507, 1.7843, 1.8996], abs=1e-4)
    for mean, price in zip((5, 10, 20), prices, strict=True):
        assert price < epsilon_of(dp_accounting.SelfComposedDpEvent(TRIAL, mean), DELTA, "rdp")


@pytest.mark.parametrize("law", ["logarithmic", "geometric", "poisson"])
def test_a_tuned_pipeline_keeps_its_promise(law: str) -> None:
    tuning = RepeatAndSelect(8.0, law)
    for parts in ([Hops(count=2)], [Descent(steps=40, rate=0.1), Hops(count=1)]):
        found = calibrate_pipeline(4.0, DELTA, parts, tuning=tuning)
        assert 4.0 * (1 - 3e-4) <= found.epsilon == epsilon_of(found.event, DELTA, "rdp") <= 4.0
        assert found.sigmas("hops")[0] > calibrate_pipeline(4.0, DELTA, parts).sigmas("hops")[0]


@pytest.mark.parametrize(
    ("law", "mean"),
    [("logarithmic", 5.0), ("logarithmic", 1.5), ("geometric", 10.0), ("geometric", 1.2), ("poisson", 6.0)],
)
def test_the_number_of_trials_follows_its_law(law: str, mean: float) -> None:
    """Chi-square at a false alarm rate of 1e-6 with a fixed seed; a mean 10 % off is rejected."""
    randomness = SeededRandomness(11)
    draws = np.array([RepeatAndSelect(mean, law).draw(randomness) for _ in range(20_000)])
    assert misfit(draws, law, mean) > 1e-6
    assert misfit(draws, law, 1.1 * mean) < 1e-6


def misfit(draws: np.ndarray, law: str, mean: float) -> float:
    """The p-value of the draws under scipy's own law of that mean."""
    if law == "poisson":
        frozen = stats.poisson(mean)
    elif law == "geometric":
        frozen = stats.geom(1 / mean)
    else:
        grid = np.geomspace(1e-9, 1 - 1e-9, 400_001)
        frozen = stats.logser(1 - grid[np.argmin(np.abs((1 / grid - 1) / -np.log(grid) - mean))])
    last = int(frozen.ppf(0.995))
    seen = np.array([(draws == k).sum() for k in range(last)] + [(draws >= last).sum()], dtype=float)
    expected = np.array([frozen.pmf(k) for k in range(last)] + [frozen.sf(last - 1)]) * len(draws)
    kept = expected > 0
    assert seen[~kept].sum() == 0
    return float(stats.chisquare(seen[kept], expected[kept] * seen.sum() / expected[kept].sum()).pvalue)


@pytest.mark.parametrize(
    ("mean", "law"), [(1.0, "geometric"), (math.nan, "poisson"), (5.0, "uniform"), (1e9, "geometric")]
)
def test_bad_tunings_are_refused(mean: float, law: str) -> None:
    with pytest.raises(InputError):
        RepeatAndSelect(mean, law)
