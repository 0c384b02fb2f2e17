"""What laws of sampled coordinates have in common: likelihoods of rows, the worst variance, the best number sent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from graphveil.mechanisms.base.values import FloatArray
from graphveil.mechanisms.samplers.laws import Places, best_coordinates, independent, worst_variance
from graphveil.privacy import Randomness

#: Pr[level | position] of a made law of 3 positions and 2 levels; the first position rules the second level out.
TABLE = np.array([[1.0, 0.0], [0.4, 0.6], [0.1, 0.9]])


def probability(levels: Places, positions: Places) -> FloatArray:
    found: FloatArray = TABLE[positions, levels]
    return found


@dataclass(frozen=True)
class Made:
    """A law that is nothing but its second moments."""

    moments: tuple[float, ...]
    levels: int = 2

    @property
    def steps(self) -> int:
        return len(self.moments) - 1

    def draw(self, positions: Places, randomness: Randomness) -> Places:
        raise NotImplementedError

    def log_likelihood(self, levels: Places, below: Places, carry: FloatArray) -> FloatArray:
        raise NotImplementedError

    def values(self) -> FloatArray:
        raise NotImplementedError

    def second_moments(self) -> FloatArray:
        return np.array(self.moments)


def test_a_row_is_as_likely_as_its_mixed_entries_together() -> None:
    levels, below = np.array([[0, 1], [1, 1]]), np.array([[0, 1], [0, 2]])
    carry = np.array([[0.25, 0.5], [0.5, 0.0]])
    by_hand = [(0.75 * 1.0 + 0.25 * 0.4) * (0.5 * 0.6 + 0.5 * 0.9), (0.5 * 0.0 + 0.5 * 0.6) * 0.9]
    assert np.exp(independent(probability, levels, below, carry, steps=2)) == pytest.approx(by_hand)


def test_a_level_that_cannot_be_sent_has_no_likelihood() -> None:
    """Without a warning, which the suite would turn into a failure."""
    found = independent(probability, np.array([[1]]), np.array([[0]]), np.array([[0.0]]), steps=2)
    assert found.tolist() == [-np.inf]


def test_nothing_is_carried_beyond_the_last_position() -> None:
    """At the high end a carry of any size stays there, instead of reading past the table."""
    sure, carried = (
        independent(probability, np.array([[1]]), np.array([[2]]), np.array([[carry]]), steps=2) for carry in (0.0, 1.0)
    )
    assert sure == carried == pytest.approx(np.log([0.9]))


@pytest.mark.parametrize(
    ("moments", "dimension", "coordinates"),
    [((4.0, 4.0), 1, 1), ((1.0, 3.0, 1.5), 5, 2), ((9.0, 2.0, 2.0, 7.0), 30, 3), ((1.0, 1.0, 1.0), 4, 4)],
)
def test_no_value_of_a_fine_grid_has_a_larger_variance(
    moments: tuple[float, ...], dimension: int, coordinates: int
) -> None:
    """Against d/k E[v^2 | x] - x^2 itself, E[v^2 | x] drawn straight from position to position."""
    x = np.linspace(-1.0, 1.0, 200_001)
    squares = np.interp(x, np.linspace(-1.0, 1.0, len(moments)), moments) * dimension / coordinates
    assert worst_variance(Made(moments), dimension, coordinates) == pytest.approx((squares - x**2).max(), rel=1e-9)


def test_the_best_number_of_coordinates_is_one_near_the_share() -> None:
    """With a cost of (k - 7)^2 the best of the candidates is 7 if the share points there, else the nearest."""

    def make(epsilon: float, k: int) -> Made:
        worst = (1.0 + (k - 7) ** 2) * k / 20
        return Made((worst, worst))

    assert best_coordinates(make, 14.0, 20, 2.0) == 7
    assert best_coordinates(make, 24.0, 20, 2.0) == 11
    assert best_coordinates(make, 4.0, 20, 2.0) == 4
    assert best_coordinates(make, 14.0, 3, 2.0) == 3
    assert best_coordinates(make, 0.01, 20, 2.0) in (1, 2)
