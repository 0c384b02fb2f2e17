"""The hybrid mechanism."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from graphveil.mechanisms import Duchi, Hybrid, Piecewise
from graphveil.mechanisms.features.hybrid import HybridLaw, hybrid_law
from tests.mechanisms import sampled_cases
from tests.mechanisms.sampled_cases import WORD


def weights_of(law: HybridLaw) -> list[list[int]]:
    """2^128 words of both draws together, spread over the levels at each position, in units of 2^-64 words."""
    rows = []
    for position in range(law.steps + 1):
        plus = int(law._thresholds(np.array([position]))[0])
        signs = [WORD - plus, plus]
        window: list[int] = []
        if law.window is not None:
            levels = np.arange(law.window.levels)
            near = (levels >= position) & (levels < position + law.window.weights.near)
            window = [law.window.weights.high if is_near else law.window.weights.low for is_near in near]
        rows.append([w * (WORD - law.chance) for w in signs] + [w * law.chance for w in window])
    return rows


@pytest.mark.parametrize("epsilon", [1e-9, 0.3, 0.61, 0.62, 1.0, 2.0, 3.0])
def test_all_inputs_and_outputs_stay_within_epsilon(epsilon: float) -> None:
    """Every level at every position in integers: sums, means, second moments and the worst ratio."""
    law = hybrid_law(epsilon, 1)
    weights = weights_of(law)
    scaled = [[Fraction(w, WORD) for w in row] for row in weights]
    sampled_cases.check_weights(scaled, law.values(), law.second_moments())
    sampled_cases.check_ratio(scaled, epsilon)
    for position in (0, law.steps // 3, law.steps):
        chances = law.probability(np.arange(law.levels), np.full(law.levels, position))
        assert np.allclose(chances, [float(w / WORD) for w in scaled[position]], rtol=1e-12)


def test_samples_follow_the_law_and_no_other() -> None:
    law = hybrid_law(1.0, 1)
    sampled_cases.check_samples(law, HybridLaw(law.window, law.sign, int(law.chance * 1.05)))


@pytest.mark.parametrize("epsilon", [0.62, 1.0, 2.0, 5.0])
def test_variance_does_not_depend_on_the_value(epsilon: float) -> None:
    """The mixture weights are chosen so that x^2 cancels: variance is flat within the grid's 0.3%."""
    found = Hybrid(epsilon=epsilon, dimension=1, low=-1.0).variance(np.linspace(-1, 1, 21)[:, None])
    assert float(found.max() / found.min()) < 1.01


def test_it_is_no_noisier_than_its_two_parts() -> None:
    for epsilon in (0.1, 0.61, 1.0, 2.0, 5.0):
        for part in (Duchi, Piecewise):
            part_variance = part(epsilon=epsilon, dimension=1).worst_variance
            assert Hybrid(epsilon=epsilon, dimension=1).worst_variance <= part_variance * (1 + 1e-9)


def test_small_budgets_send_signs_alone() -> None:
    assert Hybrid(epsilon=0.61, dimension=1433).report_bytes == (11 + 1) / 8
    assert Hybrid(epsilon=0.62, dimension=1433).report_bytes == (11 + 8) / 8
