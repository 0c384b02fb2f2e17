"""What follows from how often reports name the true class and another, whatever mechanism made them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from graphveil.errors import InputError
from graphveil.mechanisms import (
    CategoryMechanism,
    MultiBit,
    RandomizedResponse,
    SubsetSelection,
    UnaryEncoding,
)
from graphveil.mechanisms.labels.one_hot import OneHotLaw

KINDS = (RandomizedResponse, SubsetSelection, UnaryEncoding)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_estimates_and_variances_follow_from_all_reports(kind: type, epsilon: float) -> None:
    """Exactly, by summing over every report: the mean is the one-hot class, and the spread is the stated variance."""
    mechanism = kind(epsilon=epsilon, classes=5)
    reports = mechanism.every_report()
    chances, worth = np.exp(mechanism.evidence(reports)), mechanism.estimate(reports).double().numpy()
    for true in range(5):
        mean = chances[:, true] @ worth
        spread = chances[:, true] @ worth**2 - mean**2
        assert mean == pytest.approx(np.eye(5)[true], abs=1e-5)
        assert spread == pytest.approx(mechanism.variance(torch.tensor([true]))[0].numpy(), rel=1e-4)
        assert spread.sum() == pytest.approx(mechanism.law.total_variance, rel=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_evidence_holds_the_likelihood_of_every_class(kind: type) -> None:
    mechanism = kind(epsilon=1.0, classes=5)
    reports = mechanism.every_report()
    evidence = mechanism.evidence(reports)
    for true in range(5):
        values = torch.full((len(reports),), true)
        assert mechanism.log_likelihood(reports, values).numpy() == pytest.approx(evidence[:, true])


@pytest.mark.parametrize("kind", KINDS)
def test_each_is_a_mechanism_for_a_category_and_no_vector_mechanism_is(kind: type) -> None:
    assert isinstance(kind(epsilon=1.0, classes=5), CategoryMechanism)
    assert not isinstance(MultiBit(epsilon=1.0, dimension=5), CategoryMechanism)


def test_a_law_of_two_probabilities() -> None:
    law = OneHotLaw(4, 0.5, 0.1)
    assert law.lean == pytest.approx(0.4)
    assert law.total_variance == pytest.approx((0.25 + 3 * 0.09) / 0.16)
    named = np.array([[True, False, False, True]])
    assert law.estimate(named)[0] == pytest.approx([2.25, -0.25, -0.25, 2.25])
    assert law.variances(np.array([2]))[0] == pytest.approx([0.5625, 0.5625, 1.5625, 0.5625])


def test_a_law_that_says_nothing_has_no_finite_variance() -> None:
    assert OneHotLaw(3, 0.2, 0.2).total_variance == math.inf


def test_probabilities_that_cannot_be_told_apart_are_refused() -> None:
    OneHotLaw(3, 0.4, 0.3).refuse_no_information(1.0)
    with pytest.raises(InputError, match=r"epsilon 0\.001 is too small for 3 classes"):
        OneHotLaw(3, 1 / 3, 1 / 3).refuse_no_information(0.001)
