"""The piecewise mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from graphveil.mechanisms import Piecewise
from graphveil.mechanisms.piecewise import piecewise_law
from tests.mechanisms import conformance, sampled_cases
from tests.mechanisms.sampled_cases import unit_variance

CASES = {
    "one of two": sampled_cases.case(Piecewise, 2, 1, 1.0),
    "all of one": sampled_cases.case(Piecewise, 1, 1, 0.4),
    "one of four": sampled_cases.case(Piecewise, 4, 1, 2.0),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("check", conformance.PURE_CHECKS)
def test_conformance(check: Callable[[conformance.Case], None], name: str) -> None:
    check(CASES[name])


def test_guarantee() -> None:
    conformance.check_guarantee(CASES["one of two"], "one user's whole feature vector")


@pytest.mark.parametrize(("epsilon", "expected"), [(0.5, 21.2), (1.0, 5.22), (2.0, 1.23), (5.0, 0.13)])
def test_worst_variance_of_one_coordinate_is_the_published_one(epsilon: float, expected: float) -> None:
    assert unit_variance(Piecewise(epsilon=epsilon, dimension=1)) == pytest.approx(
        expected, abs=0.051 if expected > 6 else 0.01
    )


def test_worst_variance_bounds_all_inputs() -> None:
    sampled_cases.check_worst_variance(Piecewise)


def test_default_number_of_coordinates_is_the_best() -> None:
    sampled_cases.check_best_coordinates(Piecewise, piecewise_law)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.5, 6.0])
def test_variance_is_the_papers(epsilon: float) -> None:
    """x^2 / (e^(eps/2) - 1) + (e^(eps/2) + 3) / (3 (e^(eps/2) - 1)^2), within 0.3% for the grid."""
    values = np.linspace(-1, 1, 21)[:, None]
    t = math.exp(epsilon / 2)
    expected = values**2 / (t - 1) + (t + 3) / (3 * (t - 1) ** 2)
    found = Piecewise(epsilon=epsilon, dimension=1, low=-1.0).variance(values).numpy()
    assert np.allclose(found, expected, rtol=3e-3)


def test_report_bytes() -> None:
    """An index of 11 bits and one of 170 levels."""
    assert Piecewise(epsilon=1.0, dimension=1433).report_bytes == (11 + 8) / 8
