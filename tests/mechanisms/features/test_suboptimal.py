"""PM-SUB."""

from __future__ import annotations

import math

import numpy as np
import pytest

from graphveil.mechanisms import Piecewise, SubOptimal
from graphveil.mechanisms.features.suboptimal import suboptimal_law
from graphveil.privacy import SeededRandomness


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.5, 6.0])
def test_window_is_the_papers(epsilon: float) -> None:
    """Chance e^eps / (e^eps + t) inside a window of 1 / (t + 1) of all levels, t = e^(eps/3)."""
    law, t = suboptimal_law(epsilon, 1), math.exp(epsilon / 3)
    inside = law.weights.near * law.weights.high / 2**64
    assert inside == pytest.approx(math.exp(epsilon) / (math.exp(epsilon) + t), rel=3e-3)
    assert law.weights.near / law.levels == pytest.approx(1 / (t + 1), rel=6e-3)
    a = (math.exp(epsilon) + t) / (t * (math.exp(epsilon) - 1))
    assert law.values()[-1] == pytest.approx(a * (t + 1), rel=1e-2)


def test_both_tails_are_random_and_nothing_is_biased() -> None:
    """Published code returned the right tail without noise: mean 1,572 in place of 0.3 at epsilon 0.02."""
    epsilon, value = 0.02, 0.3
    mechanism = SubOptimal(epsilon=epsilon, dimension=1, low=-1.0)
    law = mechanism.law
    place = (value + 1) / 2 * law.steps
    position, carry = math.floor(place), place - math.floor(place)
    chances = sum(
        share * law.probability(np.arange(law.levels), np.full(law.levels, at))
        for share, at in ((1 - carry, position), (carry, position + 1))
    )
    assert float(chances @ law.values()) == pytest.approx(value, abs=1e-10)
    right = chances[position + law.weights.near + 1 :]
    assert len(right) > 10
    assert right.max() == right.min() > 0
    reports = mechanism.randomize(np.full((400_000, 1), value), randomness=SeededRandomness(1))
    found = mechanism.estimate(reports).double()
    deviation = math.sqrt(float(mechanism.variance(np.array([[value]]))[0, 0]) / len(reports))
    assert abs(float(found.mean()) - value) < 4.9 * deviation
    assert len(found[found > (place + law.weights.near) * 1.01 / law.steps].unique()) > 10


def test_it_is_less_noisy_than_piecewise() -> None:
    for epsilon in (0.5, 1.0, 2.0, 5.0, 20.0):
        shared = {"epsilon": epsilon, "dimension": 20}
        assert SubOptimal(**shared).worst_variance < Piecewise(**shared).worst_variance
