"""What a mechanism on a grid or in a declared range takes from what it is built on."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from graphveil.errors import InputError
from graphveil.mechanisms import Laplace
from graphveil.mechanisms.base.lattice import Lattice, Levels
from graphveil.mechanisms.base.mechanism import VectorDomain
from graphveil.mechanisms.base.reports import LatticeReports
from graphveil.mechanisms.base.values import DenseRows, FloatArray
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


@pytest.mark.parametrize("levels", [[[-(10**9)]], [[10**9]], [[0, 0]], [[]]])
def test_reports_that_no_device_sends_are_refused_by_every_reader(levels: list[list[int]]) -> None:
    laplace, reports = Laplace(epsilon=1.0, dimension=1), LatticeReports(torch.tensor(levels, dtype=torch.int32))
    for reader in (laplace.centred, laplace.estimate, lambda sent: laplace.log_likelihood(sent, np.zeros((1, 1)))):
        with pytest.raises(InputError):
            reader(reports)


def test_coordinates_are_independent_given_the_vector() -> None:
    single, double = (Laplace(epsilon=float(d), dimension=d) for d in (1, 2))
    levels = torch.cartesian_prod(torch.arange(-40, 40), torch.arange(0, 90)).int()
    values = np.array([[0.25, 0.75]]).repeat(len(levels), 0)
    apart = [single.log_likelihood(LatticeReports(levels[:, [k]]), values[:, [k]]) for k in (0, 1)]
    assert torch.allclose(double.log_likelihood(LatticeReports(levels), values), apart[0] + apart[1])


def test_reports_end_at_the_public_reach() -> None:
    values = np.array([[-1.0], [1.0], [3.0]])
    assert grid(50).encode(DenseRows(values), SeededRandomness(1)).levels.ravel().tolist() == [6, 6, 6]
    assert grid(-50).encode(DenseRows(values), SeededRandomness(1)).levels.ravel().tolist() == [-2, -2, -2]
    assert grid(1).encode(DenseRows(values), SeededRandomness(1)).levels.ravel().tolist() == [1, 3, 5]


def test_every_coordinate_of_every_row_has_noise_of_its_own() -> None:
    class Numbered(Fixed):
        """Noise that tells its draws apart."""

        def draw(self, count: int, randomness: Randomness) -> Levels:
            self.value += count
            return np.arange(self.value - count, self.value)

    wide = Lattice(VectorDomain(3, 0.0, 1.0), Numbered(0), steps=1, reach=100)
    sent = wide.encode(DenseRows(np.zeros((4, 3))), SeededRandomness(1)).levels
    assert sorted(sent.ravel().tolist()) == list(range(12))
