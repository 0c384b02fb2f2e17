"""The analytic Gaussian mechanism on the integer grid."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from graphveil.errors import InputError
from graphveil.mechanisms import AnalyticGaussian
from graphveil.mechanisms.base.lattice import NoiseLaw
from graphveil.mechanisms.base.values import DenseRows
from graphveil.mechanisms.samplers.rounded_normal import RoundedNormal
from graphveil.privacy import analytic_gaussian_sigma, gaussian_epsilon
from tests.mechanisms.made import RANGE

DELTA = 1e-6


def build(epsilon: float, delta: float = DELTA, dimension: int = 1) -> AnalyticGaussian:
    return AnalyticGaussian(epsilon=epsilon, delta=delta, dimension=dimension, low=RANGE[0], high=RANGE[1])


def densities(mechanism: AnalyticGaussian, noise: NoiseLaw) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of all one-dimensional reports for the lowest and the highest value."""
    reports = mechanism.every_report()

    def at(value: float) -> np.ndarray:
        values = np.full((len(reports), 1), value)
        return np.exp(
            replace(mechanism.lattice, noise=noise).log_likelihood(reports, DenseRows(values), 0, len(values))
        )

    return at(RANGE[0]), at(RANGE[1])


def delta_of(first: np.ndarray, second: np.ndarray, epsilon: float) -> float:
    """The hockey-stick divergence: the least delta of a mechanism with these two output laws."""
    return float(np.maximum(first - math.exp(epsilon) * second, 0).sum())


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-10), (5.0, 1e-3), (40.0, 1e-5)])
def test_delta_from_the_table_is_at_most_the_stated_one(epsilon: float, delta: float) -> None:
    """In both directions, and nearly reached; a sigma that is sqrt(2) too small is found out."""
    mechanism = build(epsilon, delta)
    noise = mechanism.noise
    first, second = densities(mechanism, noise)
    reached = min(epsilon, 32.0)
    for left, right in ((first, second), (second, first)):
        assert 0.95 * delta <= delta_of(left, right, reached) <= delta
        assert delta_of(left, right, epsilon) <= delta
    weak = densities(mechanism, RoundedNormal(noise.sigma / math.sqrt(2), noise.limit))
    assert delta_of(*weak, reached) > delta


@pytest.mark.parametrize(("epsilon", "dimension"), [(0.5, 1), (8.0, 20), (1.0, 1433), (3.0, 100_000)])
def test_sigma_is_the_analytic_one_on_the_private_side(epsilon: float, dimension: int) -> None:
    mechanism = AnalyticGaussian(epsilon=epsilon, delta=1e-10, dimension=dimension)
    exact = analytic_gaussian_sigma(epsilon, 1e-10, math.sqrt(dimension))
    assert exact <= mechanism.sigma <= exact * 1.001
    assert gaussian_epsilon(mechanism.sigma, 1e-10, math.sqrt(dimension)) <= epsilon


def test_what_is_too_large_or_too_small_is_refused() -> None:
    with pytest.raises(InputError, match=r"2097152 entries.*MultiBit"):
        AnalyticGaussian(epsilon=1e-3, delta=1e-10, dimension=10_000)
    with pytest.raises(InputError, match="too small for 2000000000 coordinates"):
        AnalyticGaussian(epsilon=1e-2, delta=1e-10, dimension=2_000_000_000)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.05, 1e-30), (0.05, 0.999), (32.0, 1e-15), (1e6, 0.5)])
def test_extreme_deltas_work(epsilon: float, delta: float) -> None:
    """The table is whole, its sigma at least 10 steps, and clamping touches less than 1e-11 of the mass."""
    mechanism = build(epsilon, delta)
    noise, lattice = mechanism.noise, mechanism.lattice
    assert noise.sigma >= 10
    assert math.isfinite(noise.log_pmf(np.array([noise.limit]))[0])
    assert noise.log_tail(np.array([lattice.reach]))[0] < math.log(1e-11)
