"""Subset selection."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import mpmath
import pytest
import torch

from graphveil.errors import InputError
from graphveil.mechanisms import RandomizedResponse, SubsetReports, SubsetSelection
from graphveil.mechanisms.samplers.bits import WORD
from graphveil.privacy import SeededRandomness
from tests.mechanisms import conformance
from tests.mechanisms.labels.categories import case


def build(epsilon: float, classes: int) -> SubsetSelection:
    return SubsetSelection(epsilon=epsilon, classes=classes)


def reports(*rows: list[int]) -> SubsetReports:
    return SubsetReports(torch.tensor(rows, dtype=torch.int32))


CASES = {
    "two classes": case(build, SubsetReports, reports([0, 1]), classes=2, epsilon=0.5, size=4),
    "a class that is none": case(build, SubsetReports, reports([1, 7]), classes=7, epsilon=1.0, size=8),
    "a class twice": case(build, SubsetReports, reports([1, 1]), classes=7, epsilon=1.0, size=8),
    "out of order": case(build, SubsetReports, reports([4, 3, 1]), classes=9, epsilon=0.7, size=12),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("check", conformance.PURE_CHECKS)
def test_conformance(check: Callable[[conformance.Case], None], name: str) -> None:
    check(CASES[name])


def test_guarantee() -> None:
    conformance.check_guarantee(CASES["a class twice"], "one user's label")


def test_one_class_is_randomized_response() -> None:
    one, other = SubsetSelection(epsilon=3.0, classes=8, size=1), RandomizedResponse(epsilon=3.0, classes=8)
    assert (one.law.keep, one.law.flip) == pytest.approx((other.keep, other.flip))
    assert SubsetSelection(epsilon=3.0, classes=8).sent == 1


def test_integer_shares_never_exceed_epsilon() -> None:
    """In exact arithmetic, for 1000 random epsilons: sets with the true class over sets without it."""
    source = random.Random(1)
    with mpmath.workdps(80):
        for _ in range(1000):
            epsilon, classes = 10 ** source.uniform(-3, 1), source.randrange(2, 200)
            sent = source.randrange(1, classes)
            out = mpmath.mpf(SubsetSelection(epsilon=epsilon, classes=classes, size=sent).left_out)
            ratio = (WORD - out) / out * (classes - sent) / sent
            assert ratio <= mpmath.exp(mpmath.mpf(epsilon)) <= ratio * (1 + mpmath.mpf(10) ** -9)


@pytest.mark.parametrize(("epsilon", "classes"), [(0.3, 5), (1.0, 8), (1.0, 40), (2.0, 8), (2.0, 100), (4.0, 300)])
def test_the_size_has_the_least_variance_of_all(epsilon: float, classes: int) -> None:
    every = [SubsetSelection(epsilon=epsilon, classes=classes, size=d).law.total_variance for d in range(1, classes)]
    assert SubsetSelection(epsilon=epsilon, classes=classes).law.total_variance == min(every)


def test_probabilities_are_the_papers() -> None:
    """Ye and Barg, equations 5 to 8: the true class is named with d e^eps / (d e^eps + c - d)."""
    e, classes, d = math.e, 20, 5
    law = SubsetSelection(epsilon=1.0, classes=classes, size=d).law
    assert law.keep == pytest.approx(d * e / (d * e + classes - d))
    assert law.lean == pytest.approx(d * (classes - d) * (e - 1) / ((classes - 1) * (d * e + classes - d)))
    assert law.keep + (classes - 1) * law.flip == pytest.approx(d)


@pytest.mark.parametrize("size", [0, 7, -1, 2.0, True])
def test_bad_sizes_are_refused(size: int) -> None:
    with pytest.raises(InputError, match="size"):
        SubsetSelection(epsilon=1.0, classes=7, size=size)


def test_the_number_of_draws_does_not_depend_on_the_label() -> None:
    mechanism, left = SubsetSelection(epsilon=1.0, classes=30), []
    for label in (0, 29):
        source = SeededRandomness(1)
        mechanism.randomize(torch.full((50,), label), randomness=source)
        left.append(source.uint64(1)[0])
    assert left[0] == left[1]


def test_epsilon_too_small_for_the_classes_is_refused() -> None:
    with pytest.raises(InputError, match="too small for 4096 classes"):
        SubsetSelection(epsilon=1e-12, classes=4096)
