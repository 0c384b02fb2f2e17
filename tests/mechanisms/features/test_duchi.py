"""Duchi et al.'s mechanism."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from graphveil.errors import InputError
from graphveil.mechanisms import Duchi
from graphveil.mechanisms.features.duchi import signs_law
from tests.mechanisms.sampled_cases import exceeds

EPSILONS = (1e-9, 0.1, 1.0, 5.0, 40.0)


@pytest.mark.parametrize("signs", range(1, 9))
def test_every_sign_vector_is_private_in_integers(signs: int) -> None:
    """All outputs under all corners: weights add up to 2^64, the worst ratio is at most e^epsilon, exactly."""
    corners = np.array(list(itertools.product((0, 1), repeat=signs)))
    agreeing = (corners[0] == corners).sum(axis=1)
    for epsilon in EPSILONS:
        law = signs_law(epsilon, signs)
        weights = [law.weights.high if 2 * k > signs else law.weights.low for k in agreeing]
        assert sum(weights) == 2**64
        assert not exceeds(epsilon, max(weights), min(weights))
        assert not 0.1 <= epsilon <= 20 or exceeds(epsilon * (1 - 1e-6), max(weights), min(weights))
        for row, weight in zip(corners, weights, strict=True):
            found = law.log_likelihood(row[None], np.zeros((1, signs), np.int64), np.zeros((1, signs)))
            assert found[0] == pytest.approx(math.log(weight / 2**64), abs=1e-12)


def test_one_or_two_coordinates_are_best() -> None:
    """Of 1 to 8, at every epsilon; two from 1.34 on."""
    for epsilon in (0.1, 1.0, 1.33, 1.35, 2.0, 5.0, 30.0):
        for dimension in (1, 2, 3, 50):
            best = Duchi(epsilon=epsilon, dimension=dimension)
            assert best.coordinates == (2 if dimension > 1 and epsilon > 1.34 else 1)
            for sampled in range(1, min(8, dimension) + 1):
                other = Duchi(epsilon=epsilon, dimension=dimension, sampled=sampled)
                assert best.worst_variance <= other.worst_variance * (1 + 1e-12)


def test_at_most_eight_coordinates_share_a_report() -> None:
    with pytest.raises(InputError, match=r"sampled is 9.*at most 8"):
        Duchi(epsilon=1.0, dimension=20, sampled=9)
