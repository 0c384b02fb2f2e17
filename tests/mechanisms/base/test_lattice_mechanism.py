"""What a mechanism on a grid or in a declared range takes from what it is built on."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from graphveil.errors import InputError
from graphveil.mechanisms.base.domain import VectorDomain
from graphveil.mechanisms.base.lattice import Lattice, Levels
from graphveil.mechanisms.base.lattice_mechanism import LatticeMechanism
from graphveil.mechanisms.base.reports import LatticeReports
from graphveil.mechanisms.base.values import FloatArray
from graphveil.privacy import Randomness, SeededRandomness


class Coin:
    """Noise of -1, 0 or 1 step, a third each."""

    @property
    def variance(self) -> float:
        return 2 / 3

    def draw(self, count: int, randomness: Randomness) -> Levels:
        return (randomness.uint64(count) % 3).astype(np.int64) - 1

    def log_pmf(self, noise: Levels) -> FloatArray:
        return np.where(np.abs(noise) <= 1, -math.log(3), -np.inf)

    def log_tail(self, noise: Levels) -> FloatArray:
        return np.where(noise <= 1, -math.log(3), -np.inf)


@dataclass(frozen=True, kw_only=True)
class Thirds(LatticeMechanism):
    """Two grid steps of a declared range, and a coin's noise on them."""

    dimension: int
    low: float = 1.0
    high: float = 3.0
    reach: int = 1

    @property
    def lattice(self) -> Lattice:
        return Lattice(self.domain, Coin(), steps=2, reach=self.reach)


def values(*rows: list[float]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def test_coordinates_are_independent_given_the_vector() -> None:
    two, one = Thirds(dimension=2), Thirds(dimension=1)
    every = two.every_report()
    assert len(every) == 25
    together = two.log_likelihood(every, values(*[[1.25, 2.5]] * 25))
    apart = one.log_likelihood(LatticeReports(every.levels[:, :1]), values(*[[1.25]] * 25)) + one.log_likelihood(
        LatticeReports(every.levels[:, 1:]), values(*[[2.5]] * 25)
    )
    assert torch.allclose(together, apart)


@pytest.mark.parametrize("levels", [[[-2]], [[4]], [[0, 0]], [[]]])
def test_reports_that_no_device_sends_are_refused_by_every_reader(levels: list[list[int]]) -> None:
    thirds, reports = Thirds(dimension=1), LatticeReports(torch.tensor(levels, dtype=torch.int32))
    for reader in (thirds.centred, thirds.estimate, lambda sent: thirds.log_likelihood(sent, values([2.0]))):
        with pytest.raises(InputError):
            reader(reports)


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
