"""Mechanisms that report a class: exact shares, estimates and variances, and which of them is best."""

from __future__ import annotations

import random
from typing import Any

import mpmath
import numpy as np
import pytest
import torch

from graphveil.errors import InputError
from graphveil.mechanisms import (
    CategoryMechanism,
    MultiBit,
    RandomizedResponse,
    SubsetReports,
    SubsetSelection,
    UnaryEncoding,
    best_category,
)
from graphveil.mechanisms.samplers.bits import WORD, bit_law
from graphveil.privacy import SeededRandomness

KINDS = (RandomizedResponse, SubsetSelection, UnaryEncoding)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [0.2, 3.0])
def test_evidence_and_total_variance_follow_from_all_reports(kind: type[Any], epsilon: float) -> None:
    """Exactly, of every report of five classes; the evidence holds the likelihood of every class."""
    mechanism = kind(epsilon=epsilon, classes=5)
    assert isinstance(mechanism, CategoryMechanism)
    reports = mechanism.every_report()
    for true in range(5):
        likelihood = mechanism.log_likelihood(reports, torch.full((len(reports),), true)).numpy()
        assert likelihood == pytest.approx(mechanism.evidence(reports)[:, true])
        total = float(mechanism.variance(torch.tensor([true])).sum())
        assert total == pytest.approx(mechanism.law.total_variance, rel=1e-4)
    assert not isinstance(MultiBit(epsilon=1.0, dimension=5), CategoryMechanism)


def test_integer_shares_never_exceed_epsilon_and_are_the_least_that_do_not() -> None:
    """In exact arithmetic, for 300 random epsilons each: labels, bits and sets of classes."""
    source = random.Random(1)
    with mpmath.workdps(80):
        for _ in range(300):
            epsilon, classes = 10 ** source.uniform(-6, 1.6), source.randrange(2, 200)
            bound = mpmath.exp(mpmath.mpf(epsilon))
            width = RandomizedResponse(epsilon=epsilon, classes=classes).share
            assert WORD - (classes - 1) * width <= bound * width
            assert WORD - (classes - 1) * (width - 1) > bound * (width - 1)
            low = bit_law(epsilon, 1).low
            assert WORD - low <= bound * low
            assert WORD - (low - 1) > bound * (low - 1)
            epsilon, sent = 10 ** source.uniform(-3, 1), source.randrange(1, classes)
            out = mpmath.mpf(SubsetSelection(epsilon=epsilon, classes=classes, size=sent).left_out)
            ratio = (WORD - out) / out * (classes - sent) / sent
            assert ratio <= mpmath.exp(mpmath.mpf(epsilon)) <= ratio * (1 + mpmath.mpf(10) ** -9)


@pytest.mark.parametrize(("epsilon", "classes"), [(0.3, 5), (1.0, 40), (2.0, 8), (4.0, 300)])
def test_the_size_of_a_set_has_the_least_variance_of_all(epsilon: float, classes: int) -> None:
    every = [SubsetSelection(epsilon=epsilon, classes=classes, size=d).law.total_variance for d in range(1, classes)]
    assert SubsetSelection(epsilon=epsilon, classes=classes).law.total_variance == min(every)


def test_of_equal_ones_the_smallest_report_is_taken_and_large_epsilons_keep_labels() -> None:
    mechanism = RandomizedResponse(epsilon=1e300, classes=256)
    labels = np.arange(256, dtype=np.uint8)
    assert mechanism.randomize(labels, randomness=SeededRandomness(1)).labels.tolist() == labels.tolist()
    assert isinstance(best_category(3.0, 8), RandomizedResponse)
    assert isinstance(best_category(1.0, 2), RandomizedResponse)
    assert best_category(1.0, 256) == SubsetSelection(epsilon=1.0, classes=256)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0, 6.0])
@pytest.mark.parametrize("classes", [2, 3, 8, 256])
def test_no_other_has_less_variance_than_the_best(epsilon: float, classes: int) -> None:
    best = float(best_category(epsilon, classes).variance(torch.tensor([0])).sum())
    variances = [kind(epsilon=epsilon, classes=classes).variance(torch.tensor([0, classes - 1])) for kind in KINDS]
    assert all(best <= float(each.sum(1).min()) * (1 + 1e-9) for each in variances)


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_of_classes_that_are_none_and_an_epsilon_that_says_nothing_are_refused(kind: type[Any]) -> None:
    for classes in (1, 0, -3, 2.0, True):
        with pytest.raises(InputError, match="classes"):
            kind(epsilon=1.0, classes=classes)
    many = 2_000_000_000 if kind is RandomizedResponse else 4096
    if kind is not UnaryEncoding:  # whose bits know of no classes
        with pytest.raises(InputError, match=f"too small for {many} classes"):
            kind(epsilon=1e-12, classes=many)
    with pytest.raises(InputError, match="classes"):
        best_category(1.0, 1)


def test_sets_that_no_device_sends_are_refused() -> None:
    for size in (0, 7, -1, 2.0, True):
        with pytest.raises(InputError, match="size"):
            SubsetSelection(epsilon=1.0, classes=7, size=size)
    for row in ([1, 7], [1, 1], [4, 3]):
        with pytest.raises(InputError):
            SubsetSelection(epsilon=1.0, classes=7).estimate(SubsetReports(torch.tensor([row], dtype=torch.int32)))
    with pytest.raises(InputError, match="classes"):
        UnaryEncoding(epsilon=1.0, classes=4097)
