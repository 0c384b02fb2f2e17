"""Randomized response for labels."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping

import mpmath
import numpy as np
import pytest
import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.mechanisms import LabelReports, RandomizedResponse
from graphveil.mechanisms.samplers.bits import WORD, bit_law
from graphveil.privacy import SeededRandomness
from tests.mechanisms import conformance


def case(classes: int, epsilon: float) -> conformance.Case:
    def build(epsilon: float) -> RandomizedResponse:
        return RandomizedResponse(epsilon=epsilon, classes=classes)

    def outputs(mechanism: conformance.Mechanism) -> Mapping[str, Tensor]:
        return {"labels": torch.arange(classes)}

    bad = {
        "row 1": torch.tensor([0, classes, 0]),
        "row 2": torch.tensor([0, 0, -1, 0]),
        "integers": torch.zeros(3),
        "one for each user": torch.zeros(3, 1, dtype=torch.int64),
    }
    forged = LabelReports(torch.tensor([classes]))
    return conformance.Case(
        build, epsilon, torch.arange(classes), outputs, LabelReports, torch.eye(classes), 8, bad, forged
    )


CASES = {"two classes": case(2, 0.5), "seven classes": case(7, 1.0)}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("check", conformance.PURE_CHECKS)
def test_conformance(check: Callable[[conformance.Case], None], name: str) -> None:
    check(CASES[name])


def test_guarantee() -> None:
    conformance.check_guarantee(CASES["seven classes"], "one user's label")


def test_probabilities_are_the_papers() -> None:
    mechanism = RandomizedResponse(epsilon=1.0, classes=7)
    assert mechanism.keep == pytest.approx(math.e / (math.e + 6))
    assert mechanism.flip == pytest.approx(1 / (math.e + 6))
    transition = mechanism.transition()
    assert torch.allclose(transition.sum(1), torch.ones(7).double())
    assert torch.allclose(transition.diagonal(), torch.tensor(mechanism.keep).double())


def test_integer_shares_never_exceed_epsilon_and_are_the_least_that_do_not() -> None:
    """In exact arithmetic, for 1000 random epsilons each: labels and bits; one share less would break it."""
    source = random.Random(1)
    with mpmath.workdps(80):
        for _ in range(1000):
            epsilon, classes = 10 ** source.uniform(-6, 1.6), source.randrange(2, 200)
            bound = mpmath.exp(mpmath.mpf(epsilon))
            width = RandomizedResponse(epsilon=epsilon, classes=classes).share
            assert WORD - (classes - 1) * width <= bound * width
            assert WORD - (classes - 1) * (width - 1) > bound * (width - 1)
            low = bit_law(epsilon, 1).low
            assert WORD - low <= bound * low
            assert WORD - (low - 1) > bound * (low - 1)


def test_numpy_labels_and_small_integers_are_read() -> None:
    mechanism = RandomizedResponse(epsilon=100.0, classes=7)
    labels = np.array([3, 6, 0], dtype=np.uint8)
    assert mechanism.randomize(labels, randomness=SeededRandomness(1)).labels.tolist() == [3, 6, 0]


def test_many_classes_and_extreme_epsilon() -> None:
    """The true class is kept at a very large epsilon however many classes there are."""
    mechanism = RandomizedResponse(epsilon=1e300, classes=1000)
    labels = torch.arange(1000)
    assert torch.equal(mechanism.randomize(labels, randomness=SeededRandomness(1)).labels, labels)


@pytest.mark.parametrize("classes", [1, 0, -3, 2.0, True])
def test_bad_class_counts_are_refused(classes: int) -> None:
    with pytest.raises(InputError, match="classes"):
        RandomizedResponse(epsilon=1.0, classes=classes)


def test_epsilon_too_small_for_the_classes_is_refused() -> None:
    with pytest.raises(InputError, match="too small for 2000000000 classes"):
        RandomizedResponse(epsilon=1e-12, classes=2_000_000_000)
