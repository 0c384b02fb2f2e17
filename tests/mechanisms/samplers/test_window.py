"""The law of a window of likely levels that moves with the value, enumerated in integers."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from graphveil.mechanisms.samplers.laws import WindowLaw, two_weights, window_law
from tests.mechanisms import sampled_cases


def weights_of(law: WindowLaw) -> list[list[int]]:
    """The words that each level owns at each position, by placing every outcome."""
    own = [law.weights.high] * law.weights.near + [law.weights.low] * law.weights.far
    outcomes = np.arange(law.levels)
    rows = []
    for position in range(law.steps + 1):
        levels = law.level_of(np.full(law.levels, position), outcomes)
        assert sorted(levels) == list(range(law.levels))
        rows.append([own[outcome] for outcome in np.argsort(levels)])
    return rows


LAWS = [(window_law(epsilon, 1, root), epsilon) for epsilon, root in ((1e-9, 2), (0.02, 3), (1.0, 2), (3.0, 3))]
LAWS += [
    (WindowLaw(two_weights(width, steps, epsilon)), epsilon)
    for width, steps in ((1, 1), (1, 6), (4, 7), (16, 16))
    for epsilon in (1e-6, 1.0, 10.0, 40.0)
]


@pytest.mark.parametrize(("law", "epsilon"), LAWS)
def test_all_inputs_and_outputs_stay_within_epsilon(law: WindowLaw, epsilon: float) -> None:
    """Every pair of inputs (between positions likelihoods mix) and every output, on grids of all sizes."""
    sampled_cases.check_weights(weights_of(law), law)
    sampled_cases.check_ratio(weights_of(law), epsilon)


def test_a_millionth_more_epsilon_than_claimed_is_found_out() -> None:
    with pytest.raises(AssertionError):
        sampled_cases.check_ratio(weights_of(WindowLaw(two_weights(4, 7, 1.0 + 1e-6))), 1.0)


@pytest.mark.parametrize(("near", "far"), [(1, 1), (1, 16384), (2, 3), (37, 163), (93, 11), (64, 64)])
def test_two_weights_fill_the_word_and_keep_the_ratio(near: int, far: int) -> None:
    """near high + far low = 2^64 exactly; high / low is at most e^epsilon and loses next to nothing."""
    for epsilon in (1e-12, 0.1, 3.0, 44.0, 1e300):
        if epsilon < 1e-9 and far > 200:
            continue  # no whole weights lean so little: no mechanism asks for them
        law = two_weights(near, far, epsilon)
        assert law.near * law.high + law.far * law.low == 2**64
        assert 1 <= law.low < law.high
        assert not sampled_cases.exceeds(min(epsilon, 50.0), law.high, law.low)
        assert law.low <= 2**64 / (near * math.exp(min(epsilon, 50.0)) + far) * (1 + 1e-12) + near + 1


def test_outcomes_own_their_words() -> None:
    law = two_weights(3, 5, 1.0)
    edges = [0, law.high, 2 * law.high, 3 * law.high] + [3 * law.high + k * law.low for k in range(1, 6)]
    assert edges[-1] == 2**64
    words = np.array([edge for pair in itertools.pairwise(edges) for edge in (pair[0], pair[1] - 1)], np.uint64)
    assert law.outcome_of(words).tolist() == [outcome for outcome in range(8) for _ in range(2)]
