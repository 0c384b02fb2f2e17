"""The grid under Laplace and Gaussian reports: unbiased rounding, clamping, and what they do to the likelihood."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from graphveil.errors import InputError
from graphveil.mechanisms.base.domain import VectorDomain
from graphveil.mechanisms.base.lattice import Lattice, Levels
from graphveil.mechanisms.base.reports import LatticeReports
from graphveil.mechanisms.base.values import FloatArray
from graphveil.privacy import Randomness, SeededRandomness


class Fixed:
    """Noise that always takes one value."""

    def __init__(self, value: int) -> None:
        self.value = value

    @property
    def variance(self) -> float:
        return 0.0

    def draw(self, count: int, randomness: Randomness) -> Levels:
        return np.full(count, self.value, dtype=np.int64)

    def log_pmf(self, noise: Levels) -> FloatArray:
        return np.where(np.abs(noise) == abs(self.value), 0.0, -np.inf)

    def log_tail(self, noise: Levels) -> FloatArray:
        return np.where(noise <= abs(self.value), 0.0, -np.inf)


def grid(noise: int) -> Lattice:
    """Five grid points from -1 to 3, and noise that always takes one value."""
    return Lattice(VectorDomain(1, -1.0, 3.0), Fixed(noise), steps=4, reach=2)


def test_rounding_goes_to_the_neighbours_without_bias() -> None:
    """The mean of 200,000 roundings of each value is the value, within 6 deviations."""
    for value in (-1.0, -0.9, 0.3, 0.5, 1.25, 2.999, 3.0):
        reports = grid(0).randomize(np.full((200_000, 1), value), SeededRandomness(1))
        place = value + 1.0
        levels = reports.levels.double()
        assert set(levels.unique().tolist()) <= {float(np.floor(place)), float(np.ceil(place))}
        deviation = float(np.sqrt(grid(0).rounding_variance(np.array([[value]]))[0, 0] / 200_000))
        assert abs(float(levels.mean()) - place) <= 6 * deviation + 1e-12


def test_rounding_variance_is_that_of_a_coin() -> None:
    values = np.array([[-1.0], [-0.75], [0.5], [3.0]])
    assert np.allclose(grid(0).rounding_variance(values)[:, 0], [0.0, 0.1875, 0.25, 0.0])


def test_reports_end_at_the_public_reach() -> None:
    values = np.array([[-1.0], [1.0], [3.0]])
    assert grid(50).randomize(values, SeededRandomness(1)).levels.ravel().tolist() == [6, 6, 6]
    assert grid(-50).randomize(values, SeededRandomness(1)).levels.ravel().tolist() == [-2, -2, -2]
    assert grid(1).randomize(values, SeededRandomness(1)).levels.ravel().tolist() == [1, 3, 5]


def test_every_coordinate_of_every_row_has_noise_of_its_own() -> None:
    class Numbered(Fixed):
        """Noise that tells its draws apart."""

        def draw(self, count: int, randomness: Randomness) -> Levels:
            self.value += count
            return np.arange(self.value - count, self.value)

    wide = Lattice(VectorDomain(3, 0.0, 1.0), Numbered(0), steps=1, reach=100)
    sent = wide.randomize(np.zeros((4, 3)), SeededRandomness(1)).levels
    assert sorted(sent.ravel().tolist()) == list(range(12))


def test_likelihood_mixes_the_two_roundings() -> None:
    def at(level: int, value: float) -> float:
        reports = LatticeReports(torch.tensor([[level]], dtype=torch.int32))
        return float(grid(0).log_likelihood(reports, np.array([[value]])).exp())

    assert at(1, 0.25) == pytest.approx(0.75)
    assert at(2, 0.25) == pytest.approx(0.25)
    assert at(3, 0.25) == 0.0
    assert at(4, 3.0) == pytest.approx(1.0)


def test_reports_of_another_width_are_refused() -> None:
    with pytest.raises(InputError, match="2 levels; allowed: 1"):
        grid(0).centred(LatticeReports(torch.zeros(3, 2, dtype=torch.int32)))
