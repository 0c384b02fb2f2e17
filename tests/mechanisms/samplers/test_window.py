"""The law of a window of likely levels that moves with the value, enumerated in integers."""

from __future__ import annotations

import numpy as np
import pytest

from graphveil.mechanisms.samplers.two_weights import two_weights
from graphveil.mechanisms.samplers.window import WindowLaw, window_law
from tests.mechanisms import sampled_cases

SMALL = ((1, 1), (1, 6), (2, 3), (4, 7), (8, 9), (16, 16))


def weights_of(law: WindowLaw) -> list[list[int]]:
    """The words that each level owns at each position, by placing every outcome."""
    own = [law.weights.high] * law.weights.near + [law.weights.low] * law.weights.far
    outcomes = np.arange(law.levels)
    rows = []
    for position in range(law.steps + 1):
        levels = law.place(np.full(law.levels, position), outcomes)
        assert sorted(levels) == list(range(law.levels))
        rows.append([own[outcome] for outcome in np.argsort(levels)])
    return rows


@pytest.mark.parametrize("root", [2, 3])
@pytest.mark.parametrize("epsilon", [1e-9, 0.02, 0.5, 1.0, 2.0, 3.0])
def test_all_inputs_and_outputs_stay_within_epsilon(epsilon: float, root: int) -> None:
    """Every pair of inputs (between positions likelihoods mix) and every output of the mechanisms' own grids."""
    law = window_law(epsilon, 1, root)
    weights = weights_of(law)
    sampled_cases.check_weights(weights, law.values(), law.second_moments())
    sampled_cases.check_ratio(weights, epsilon)


@pytest.mark.parametrize(("width", "steps"), SMALL)
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 3.0, 10.0, 40.0])
def test_small_grids_stay_within_epsilon(epsilon: float, width: int, steps: int) -> None:
    law = WindowLaw(two_weights(width, steps, epsilon))
    weights = weights_of(law)
    sampled_cases.check_weights(weights, law.values(), law.second_moments())
    sampled_cases.check_ratio(weights, epsilon)


def test_a_weakened_copy_is_found_out() -> None:
    """One part in a million more epsilon in the weights than claimed."""
    weights = weights_of(WindowLaw(two_weights(4, 7, 1.0 * (1 + 1e-6))))
    with pytest.raises(AssertionError):
        sampled_cases.check_ratio(weights, 1.0)


@pytest.mark.parametrize("epsilon", [1e-9, 0.5, 1.0, 12.0, 25.0, 50.0, 1e300])
def test_every_output_is_possible_for_every_input(epsilon: float) -> None:
    law = window_law(epsilon, 1, 2)
    assert law.weights.low >= 1
    assert law.levels <= 2**15
    for position in (0, law.steps // 2, law.steps):
        chances = law.probability(np.arange(law.levels), np.full(law.levels, position))
        assert chances.min() > 0
        assert chances.sum() == pytest.approx(1, abs=1e-12)


def test_samples_follow_the_law_and_no_other() -> None:
    law, other = (WindowLaw(two_weights(64, 106, epsilon)) for epsilon in (1.0, 1.1))
    sampled_cases.check_samples(law, other)
