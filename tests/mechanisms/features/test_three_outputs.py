"""The three-outputs mechanism."""

from __future__ import annotations

import math

import numpy as np
import pytest

from graphveil.mechanisms import ThreeOutputs
from graphveil.mechanisms.features.three_outputs import ThreeOutputsLaw, three_outputs_law
from graphveil.mechanisms.samplers.laws import worst_variance
from tests.mechanisms import sampled_cases


@pytest.mark.parametrize("epsilon", [1e-9, 0.3, 0.69, 0.7, 1.0, 1.5, 1.71, 2.0, 6.0, 15.0, 40.0, 50.0, 1e300])
def test_all_inputs_and_outputs_stay_within_epsilon(epsilon: float) -> None:
    law = three_outputs_law(epsilon, 1)
    weights = [list(row) for row in law.weights]
    sampled_cases.check_weights(weights, law.values(), law.second_moments())
    high, low = sampled_cases.worst_pair(weights)
    assert low >= 1
    assert not sampled_cases.exceeds(min(epsilon, 50.0), high, low)
    assert not 0.1 < epsilon < 20 or sampled_cases.exceeds(epsilon * (1 - 1e-6), high, low)


@pytest.mark.parametrize("epsilon", [0.5, 0.8, 1.2, 1.6, 1.8, 3.0])
def test_law_is_the_papers(epsilon: float) -> None:
    """C, b and d of Zhao et al. for the paper's a."""
    law, e = three_outputs_law(epsilon, 1), math.exp(epsilon)
    a = law.nothing / 2**64
    size = e * (e + 1) / ((e - 1) * (e - a))
    b, d = a * (e - 1) / e, (a + 1) * (e - 1) / (2 * (e + 1))
    assert law.values()[2] == pytest.approx(size, rel=1e-9)
    for x in (0.0, 0.25, 1.0):
        expected = [(1 - a) / 2 - (d - b) * x, a - b * x, (1 - a) / 2 + d * x]
        mixed = [(1 - x) * m + x * h for m, h in zip(law.weights[1], law.weights[2], strict=True)]
        assert np.allclose(np.array(mixed) / 2**64, expected, atol=1e-9)


@pytest.mark.parametrize("epsilon", [0.5, 0.75, 1.0, 1.4, 1.7, 2.5])
def test_no_other_chance_of_nothing_is_better(epsilon: float) -> None:
    """For one coordinate, searched over 2,000 values of a."""
    ratio = math.exp(epsilon)
    best = worst_variance(three_outputs_law(epsilon, 1), 1, 1)
    for a in np.linspace(0, ratio / (ratio + 2), 2000):
        nothing = int(a * 2**63) * 2
        wrong = int((2**64 - nothing / ratio) / (ratio + 1))
        other = ThreeOutputsLaw(nothing, int(nothing / ratio), wrong)
        assert best <= worst_variance(other, 1, 1) * (1 + 1e-6)


def test_samples_follow_the_law_and_no_other() -> None:
    sampled_cases.check_samples(three_outputs_law(1.0, 1), three_outputs_law(1.1, 1))


def test_report_bytes() -> None:
    assert ThreeOutputs(epsilon=1.0, dimension=1433).report_bytes == (11 + 2) / 8
