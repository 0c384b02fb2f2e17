"""Tuning by repeat-and-select: its price, its random number of trials (checklist item 13)."""

from __future__ import annotations

import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting import rdp
from scipy import stats

from graphveil.errors import InputError
from graphveil.privacy import (
    Descent,
    Hops,
    RepeatAndSelect,
    SeededRandomness,
    calibrate_pipeline,
    epsilon_of,
    gaussian_epsilon,
    pipeline_event,
    repeat_and_select,
)
from graphveil.privacy.accounting.accountant import RDP_ORDERS
from graphveil.privacy.accounting.selection import LAWS, allowance

TRIAL = dp_accounting.GaussianDpEvent(4.0)
DELTA = 1e-5
LAW_NAMES = pytest.mark.parametrize("law", LAWS)


def directly(trial: dp_accounting.DpEvent, mean: float, shape: float, delta: float = DELTA) -> float:
    """dp-accounting's own answer."""
    tuning = dp_accounting.dp_event.RepeatAndSelectDpEvent(trial, mean, shape)
    return float(rdp.RdpAccountant(orders=RDP_ORDERS).compose(tuning).get_epsilon(delta))


def test_tuning_costs_more_than_a_trial_and_less_than_all_of_them() -> None:
    once = epsilon_of(TRIAL, DELTA, "rdp")
    prices = [repeat_and_select(TRIAL, DELTA, RepeatAndSelect(mean)) for mean in (5.0, 10.0, 20.0)]
    assert once < prices[0] < prices[1] < prices[2]
    assert prices == pytest.approx([1.6507, 1.7843, 1.8996], abs=1e-4)
    assert prices == [directly(TRIAL, mean, 0.0) for mean in (5.0, 10.0, 20.0)]
    for mean, price in zip((5, 10, 20), prices, strict=True):
        assert price < epsilon_of(dp_accounting.SelfComposedDpEvent(TRIAL, mean), DELTA, "rdp")


@LAW_NAMES
@pytest.mark.parametrize(("mean", "epsilon"), [(2.0, 8.0), (10.0, 1.0), (60.0, 0.1)])
def test_an_allowance_is_spent_by_its_gaussian_and_no_more(law: str, mean: float, epsilon: float) -> None:
    """The closed form finds what a search over dp-accounting's prices would find, and never too much."""
    tuning = RepeatAndSelect(mean, law)
    allowed = allowance(epsilon, DELTA, tuning)
    event = dp_accounting.GaussianDpEvent(1 / allowed.mu)
    assert allowed.used(event) == pytest.approx(1.0, rel=1e-12)
    assert epsilon * (1 - 1e-6) < directly(event, mean, LAWS[law]) <= epsilon
    assert allowed.used(dp_accounting.GaussianDpEvent(0.99 / allowed.mu)) > 1.0


@pytest.mark.slow  # searches for noise
@LAW_NAMES
def test_a_mixture_of_different_trials_keeps_the_promise(law: str) -> None:
    """Trials that differ in sampling each keep within the allowance; so does the worse of them at every order."""
    tuning = RepeatAndSelect(8.0, law)
    allowed = allowance(4.0, DELTA, tuning)
    kinds = ([Hops(count=2)], [Descent(steps=40, rate=0.1), Hops(count=1)], [Descent(steps=500, rate=0.01)])
    curves = []
    for parts in kinds:
        calibrated = calibrate_pipeline(4.0, DELTA, parts, tuning=tuning)
        trial = pipeline_event(calibrated.parts, calibrated.noise)
        assert 0.999 < allowed.used(trial) <= 1.0
        assert epsilon_of(calibrated.event, DELTA, "rdp") <= calibrated.epsilon == 4.0
        curves.append(rdp.RdpAccountant(orders=RDP_ORDERS).compose(trial).rdp)
    worst, orders = np.max(curves, axis=0), np.array(RDP_ORDERS, dtype=float)
    inner = ((1 - 1 / orders) * worst - math.log(tuning.gamma) / orders).min()
    whole = worst + math.log(tuning.mean) / (orders - 1) + (1 + tuning.shape) * inner
    price = (whole + np.log1p(-1 / orders) - np.log(DELTA * orders) / (orders - 1)).min()
    assert 3.9 < price <= 4.0


def test_the_price_of_one_trial_does_not_pay_for_the_best_of_many() -> None:
    """Item 13: noise made for one run, under the same tuning, would cost far more than was promised."""
    once = calibrate_pipeline(1.0, DELTA, [Hops(count=2)])
    tuning = RepeatAndSelect(10.0)
    trial = pipeline_event(once.parts, once.noise)
    assert allowance(1.0, DELTA, tuning).used(trial) > 3.0
    assert repeat_and_select(trial, DELTA, tuning) > 1.76
    assert gaussian_epsilon(1 / allowance(1.0, DELTA, tuning).mu, DELTA) < 0.51


@pytest.mark.parametrize(("law", "mean"), [("logarithmic", 5.0), ("geometric", 10.0)])
def test_the_number_of_trials_follows_its_law(law: str, mean: float) -> None:
    """Chi-square at a false alarm rate of 1e-6 with a fixed seed; a mean 30 % off is rejected."""
    randomness = SeededRandomness(11)
    draws = np.array([RepeatAndSelect(mean, law).draw(randomness) for _ in range(4_000)])
    assert misfit(draws, law, mean) > 1e-6
    assert misfit(draws, law, 1.3 * mean) < 1e-6


def misfit(draws: np.ndarray, law: str, mean: float) -> float:
    """The p-value of the draws under scipy's own law of that mean."""
    if law == "geometric":
        frozen = stats.geom(1 / mean)
    else:
        grid = np.geomspace(1e-9, 1 - 1e-9, 400_001)
        frozen = stats.logser(1 - grid[np.argmin(np.abs((1 / grid - 1) / -np.log(grid) - mean))])
    last = int(frozen.ppf(0.995))
    seen = np.array([(draws == k).sum() for k in range(last)] + [(draws >= last).sum()], dtype=float)
    expected = np.array([frozen.pmf(k) for k in range(last)] + [frozen.sf(last - 1)]) * len(draws)
    cells = expected > 0
    assert seen[~cells].sum() == 0
    return float(stats.chisquare(seen[cells], expected[cells] * seen.sum() / expected[cells].sum()).pvalue)


class Extreme:
    """A source of the smallest or the largest numbers there are."""

    void = None

    def __init__(self, byte: int) -> None:
        self._byte = byte

    def bytes(self, count: int) -> bytes:
        return bytes([self._byte]) * count

    def uint64(self, count: int) -> np.ndarray:
        raise AssertionError


@LAW_NAMES
def test_the_ends_of_the_law_are_reached_and_no_further(law: str) -> None:
    """The least uniform number gives one trial; the greatest ends, where about 2^-128 of the law is left."""
    tuning = RepeatAndSelect(5.0, law)
    assert tuning.draw(Extreme(0)) == 1
    last = tuning.draw(Extreme(255))
    left = stats.geom(0.2).logsf(last) if law == "geometric" else stats.logser(1 - tuning.gamma).logsf(last)
    assert -100 < left < -80 if math.isfinite(left) else last > 300


@pytest.mark.parametrize(
    ("mean", "law"),
    [(1.0, "geometric"), (math.nan, "logarithmic"), (5.0, "uniform"), (5.0, "poisson"), (1e9, "geometric"), (True, "")],
)
def test_bad_tunings_are_refused(mean: float, law: str) -> None:
    with pytest.raises(InputError):
        RepeatAndSelect(mean, law)


def test_targets_out_of_reach_are_refused() -> None:
    for epsilon, delta in ((0.0, DELTA), (math.inf, DELTA), (1.0, 0.0), (1.0, 1.0)):
        with pytest.raises(InputError):
            allowance(epsilon, delta, RepeatAndSelect(5.0))
    with pytest.raises(InputError, match="no noise reaches epsilon"):
        allowance(1e-3, DELTA, RepeatAndSelect(1000.0))
