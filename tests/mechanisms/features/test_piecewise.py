"""The piecewise mechanism."""

from __future__ import annotations

import math

import numpy as np
import pytest

from graphveil.mechanisms import Piecewise


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
