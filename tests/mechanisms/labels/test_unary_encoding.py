"""Optimized unary encoding."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from graphveil.errors import InputError
from graphveil.mechanisms import OneBitReports, UnaryEncoding
from tests.mechanisms import conformance
from tests.mechanisms.labels.categories import case


def build(epsilon: float, classes: int) -> UnaryEncoding:
    return UnaryEncoding(epsilon=epsilon, classes=classes)


FORGED = OneBitReports(torch.zeros(1, 2, dtype=torch.uint8))
CASES = {
    "two classes": case(build, OneBitReports, FORGED, classes=2, epsilon=0.5, size=1),
    "six classes": case(build, OneBitReports, FORGED, classes=6, epsilon=1.0, size=1),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("check", conformance.PURE_CHECKS)
def test_conformance(check: Callable[[conformance.Case], None], name: str) -> None:
    check(CASES[name])


def test_guarantee() -> None:
    conformance.check_guarantee(CASES["six classes"], "one user's label")


def test_variance_is_the_papers() -> None:
    """Wang et al., equation 10: 4 e^eps / (e^eps - 1)^2 for a class that is not the true one."""
    variance = UnaryEncoding(epsilon=1.5, classes=9).variance(torch.tensor([4]))[0]
    e = math.exp(1.5)
    assert float(variance[0]) == pytest.approx(4 * e / (e - 1) ** 2)
    assert float(variance[4]) == pytest.approx(((e + 1) / (e - 1)) ** 2)


@pytest.mark.parametrize("classes", [1, 0, 4097, 2.0, True])
def test_bad_class_counts_are_refused(classes: int) -> None:
    with pytest.raises(InputError, match="classes"):
        UnaryEncoding(epsilon=1.0, classes=classes)
