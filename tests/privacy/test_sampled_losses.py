"""Privacy losses of sampled Gaussian steps: those of dp-accounting, and never fewer."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism

from graphveil.privacy.accounting.pipeline import sampled_losses

GRID = 1e-3


@pytest.mark.parametrize(("rate", "sigma"), [(1e-4, 0.4), (0.02, 1.0), (0.5, 7.0), (0.97, 1.8)])
def test_the_price_is_that_of_dp_accounting(sigma: float, rate: float) -> None:
    mine = sampled_losses(rate, sigma, GRID)
    theirs = from_gaussian_mechanism(
        sigma, value_discretization_interval=GRID, sampling_prob=rate, use_connect_dots=True
    )
    for steps in (1, 60):
        ours, reference = mine.self_compose(steps), theirs.self_compose(steps)
        for delta in (1e-2, 1e-5, 1e-7):
            epsilon, expected = ours.get_epsilon_for_delta(delta), reference.get_epsilon_for_delta(delta)
            assert epsilon == pytest.approx(expected, rel=1e-7, abs=1e-12)


def integrated(epsilon: float, rate: float, sigma: float) -> float:
    """The larger delta of the two directions, by adding up the positive parts on a fine grid."""
    x = np.linspace(-12 * sigma, 1 + 12 * sigma, 400_001)
    without, moved = (np.exp(-(((x - mean) / sigma) ** 2) / 2) / (sigma * math.sqrt(2 * math.pi)) for mean in (0, 1))
    sampled = (1 - rate) * without + rate * moved
    over = (np.maximum(p - math.exp(epsilon) * q, 0).sum() for p, q in ((sampled, without), (without, sampled)))
    return float(max(over) * (x[1] - x[0]))


@pytest.mark.parametrize(("rate", "sigma", "steps"), [(0.1, 1.0, 0), (0.1, 1.0, 40), (0.6, 2.0, 3)])
def test_a_step_costs_at_least_what_its_two_laws_say(steps: int, rate: float, sigma: float) -> None:
    epsilon = steps * 0.01
    exact = integrated(epsilon, rate, sigma)
    delta = sampled_losses(rate, sigma, 0.01).get_delta_for_epsilon(epsilon)
    # Connecting the dots is exact at the dots; the sum has a kink, which costs it digits.
    assert delta == pytest.approx(exact, rel=1e-7)


def test_little_noise_is_priced_without_overflow() -> None:
    assert np.isfinite(sampled_losses(0.3, 0.02, 0.1).get_epsilon_for_delta(1e-5))
    assert math.isinf(sampled_losses(0.3, 0.5, 0.1).get_epsilon_for_delta(1e-30))
