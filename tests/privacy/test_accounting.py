"""Accounting and calibration: agreement, pinned numbers, and the private side (checklist item 14)."""

from __future__ import annotations

import math
import random
import re
from pathlib import Path

import dp_accounting
import mpmath
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

import graphveil
from graphveil.errors import InputError
from graphveil.privacy import analytic_gaussian_sigma, calibrate, epsilon_of, gaussian_delta, gaussian_epsilon
from graphveil.privacy.accounting.accountant import RDP_ORDERS
from graphveil.privacy.accounting.gaussian import gaussian_renyi_epsilon

DELTA = 1e-5

# (sampling rate, sigma, steps): epsilon by privacy loss distributions and by Renyi divergence, at delta 1e-5.
PINNED = {
    (1, 20, 100): (1.9931, 2.1680),
    (0.1, 3, 500): (3.3043, 3.6048),
    (0.01, 2, 1000): (0.6220, 0.6862),
    (0.004, 4, 20000): (0.5077, 0.5572),
    (0.001, 3, 50000): (0.2577, 0.2826),
}


def sampled_gaussian(rate: float, sigma: float, steps: int) -> dp_accounting.DpEvent:
    event: dp_accounting.DpEvent = dp_accounting.GaussianDpEvent(sigma)
    if rate < 1:
        event = dp_accounting.PoissonSampledDpEvent(rate, event)
    return dp_accounting.SelfComposedDpEvent(event, steps)


def optimistic(rate: float, sigma: float, steps: int) -> float:
    """A lower bound on epsilon: the same accountant with its grid rounded the other way."""
    grid = {"pessimistic_estimate": False, "value_discretization_interval": 1e-4, "use_connect_dots": False}
    law = pld.from_gaussian_mechanism(sigma, sampling_prob=rate, **grid)
    return float(law.self_compose(steps).get_epsilon_for_delta(DELTA))


@pytest.mark.parametrize(("setting", "expected"), PINNED.items(), ids=str)
def test_item_14_pinned_table(setting: tuple[float, float, int], expected: tuple[float, float]) -> None:
    """Checklist item 14: pinned settings, with optimistic PLD <= PLD <= RDP in each."""
    event = sampled_gaussian(*setting)
    tight, loose = epsilon_of(event, DELTA), epsilon_of(event, DELTA, "rdp")
    assert (tight, loose) == (pytest.approx(expected[0], abs=2e-4), pytest.approx(expected[1], abs=2e-4))
    assert optimistic(*setting) <= tight <= loose


@pytest.mark.parametrize("sigma", [1.0, 10.0])
def test_item_14_one_gaussian_agrees_with_the_closed_form(sigma: float) -> None:
    """Checklist item 14: PLD of a single Gaussian equals the analytic epsilon to 1e-4, from above."""
    exact = gaussian_epsilon(sigma, DELTA)
    assert exact - 1e-9 <= epsilon_of(dp_accounting.GaussianDpEvent(sigma), DELTA) <= exact + 1e-4


def test_the_closed_renyi_form_of_a_gaussian_is_the_accountants_to_the_last_bit() -> None:
    source = random.Random(2)
    for _ in range(60):
        sigma, delta = 10 ** source.uniform(-2, 5), 10 ** source.uniform(-15, -0.1)
        judged = epsilon_of(dp_accounting.GaussianDpEvent(sigma), delta, "rdp")
        assert gaussian_renyi_epsilon(sigma, delta, RDP_ORDERS) == judged


def test_item_14_analytic_calibration_is_one_sided() -> None:
    """Checklist item 14: for 100 random targets delta(sigma) <= delta, and 0.1% less noise would break it."""
    source = random.Random(1)
    for _ in range(100):
        epsilon, delta = 10 ** source.uniform(-3, 2), 10 ** source.uniform(-15, -0.1)
        sensitivity = 10 ** source.uniform(-3, 3)
        sigma = analytic_gaussian_sigma(epsilon, delta, sensitivity)
        assert gaussian_delta(sigma, epsilon, sensitivity) <= delta
        assert gaussian_delta(sigma * 0.999, epsilon, sensitivity) > delta
        assert gaussian_epsilon(sigma, delta, sensitivity) <= epsilon * (1 + 1e-9)


def test_item_14_search_is_one_sided_by_renyi_accounting() -> None:
    """Checklist item 14: for 20 random targets the accountant of the calibrated noise is at most the target."""
    source = random.Random(2)
    for _ in range(20):
        epsilon, delta, steps = 10 ** source.uniform(-1, 1), 10 ** source.uniform(-9, -2), source.randrange(1, 50)

        def event(sigma: float, steps: int = steps) -> dp_accounting.DpEvent:
            return sampled_gaussian(1, sigma, steps)

        sigma = calibrate(event, epsilon, delta, accountant="rdp")
        assert epsilon_of(event(sigma), delta, "rdp") <= epsilon
        assert epsilon_of(event(sigma - 1e-3 * sigma - 3e-6), delta, "rdp") > epsilon


def test_item_14_no_central_limit_accounting_is_imported() -> None:
    """Checklist item 14: GDP accounting reports less than was spent; nothing of ours may import it."""
    banned = re.compile(r"^\s*(from|import)\b.*\b(gdp|gaussian_dp|GaussianDPAccountant)\b", re.IGNORECASE | re.M)
    assert banned.search("from opacus.accountants.gdp import GaussianAccountant")
    package = Path(graphveil.__file__).parent
    assert [str(file) for file in package.rglob("*.py") if banned.search(file.read_text())] == []


def test_delta_keeps_its_digits_in_the_far_tail() -> None:
    """Against 80-digit arithmetic, down to delta 1e-200."""
    source = random.Random(3)
    with mpmath.workdps(320):
        for _ in range(80):
            epsilon, sigma = 10 ** source.uniform(-3, 1.5), 10 ** source.uniform(-1, 2.5)
            a, b = (mpmath.mpf(sign) / (2 * mpmath.mpf(sigma)) - epsilon * mpmath.mpf(sigma) for sign in (1, -1))
            exact = mpmath.ncdf(a) - mpmath.exp(mpmath.mpf(epsilon)) * mpmath.ncdf(b)
            if exact > mpmath.mpf("1e-200"):
                assert gaussian_delta(sigma, epsilon) == pytest.approx(float(exact), rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 1e200])
def test_edges_of_the_closed_form(epsilon: float) -> None:
    """Also where noise and sensitivity are so far apart that their quotient leaves the floating numbers."""
    assert gaussian_delta(1.0, 0.0) == pytest.approx(0.3829249225)
    assert gaussian_epsilon(1.0, 0.9) == 0.0
    assert gaussian_delta(1e-3, 1.0) == pytest.approx(1.0)
    assert analytic_gaussian_sigma(1e6, 1e-10, 1.0) < 1e-3
    assert gaussian_delta(1e200, epsilon, 1e-200) == gaussian_delta(1e300, epsilon) == 0.0
    assert gaussian_delta(1e-200, epsilon, 1e200) == 1.0


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_invalid_arguments_are_refused(bad: float) -> None:
    for use in (
        lambda: analytic_gaussian_sigma(bad, 1e-5, 1.0),
        lambda: analytic_gaussian_sigma(1.0, 1e-5, bad),
        lambda: analytic_gaussian_sigma(1.0, bad, 1.0),
        lambda: gaussian_epsilon(bad, 1e-5),
        lambda: gaussian_epsilon(1.0, bad),
        lambda: gaussian_delta(bad, 1.0),
        lambda: epsilon_of(dp_accounting.GaussianDpEvent(1.0), bad),
        lambda: calibrate(dp_accounting.GaussianDpEvent, bad, 1e-5),
        lambda: calibrate(dp_accounting.GaussianDpEvent, 1.0, bad),
    ):
        with pytest.raises(InputError):
            use()


def test_unknown_accountants_and_hopeless_targets_are_refused() -> None:
    with pytest.raises(InputError, match="'gdp'; allowed: pld, rdp"):
        epsilon_of(dp_accounting.GaussianDpEvent(1.0), 1e-5, "gdp")  # type: ignore[arg-type]
    for epsilon in (-1e-9, math.nan, math.inf):
        with pytest.raises(InputError, match=r"epsilon is .*; allowed: a finite number of at least 0"):
            gaussian_delta(1.0, epsilon)
    with pytest.raises(InputError, match="no noise level reaches"):
        calibrate(lambda _: dp_accounting.GaussianDpEvent(1.0), 0.1, 1e-5, accountant="rdp")


def test_little_noise_is_found_where_much_epsilon_is_allowed() -> None:
    """The search starts at 1 and must also go down: at epsilon 40 a twentieth of that noise would be too little."""
    sigma = calibrate(dp_accounting.GaussianDpEvent, 40.0, DELTA, accountant="rdp")
    assert 0.05 < sigma < 0.5
    assert epsilon_of(dp_accounting.GaussianDpEvent(sigma), DELTA, "rdp") <= 40.0
    assert epsilon_of(dp_accounting.GaussianDpEvent(sigma * 0.99), DELTA, "rdp") > 40.0
