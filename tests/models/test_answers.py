"""Classes from labels and answers: what is learned, and that an answer counts for what it is worth."""

from __future__ import annotations

import numpy as np
import pytest

from graphveil.mechanisms import RandomizedResponse
from graphveil.models.answers import answer_shares, fit_answers, with_answers
from graphveil.privacy import SeededRandomness

TABLE = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])


def world(people: int, epsilon: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """True classes [n], posteriors from labels [n, 3] and the evidence of noisy answers [n, 2]."""
    source = np.random.default_rng(seed)
    posterior = source.dirichlet(np.full(3, 0.7), people)
    true = (source.random(people)[:, None] > posterior.cumsum(axis=1)).sum(axis=1)
    answer = (source.random(people) < TABLE[true, 1]).astype(np.int64)
    mechanism = RandomizedResponse(epsilon=epsilon, classes=2)
    return true, posterior, mechanism.evidence(mechanism.randomize(answer, randomness=SeededRandomness(seed)))


def test_how_classes_answer_is_learned_from_noisy_answers_alone() -> None:
    """40,000 people at epsilon 2: within 0.03, where the answers of everybody are up to 0.4 away."""
    _, posterior, evidence = world(40_000, 2.0, 1)
    table = fit_answers(posterior, evidence)
    assert table == pytest.approx(TABLE, abs=0.03)
    assert np.abs(answer_shares(evidence) - TABLE).max() > 0.3
    assert answer_shares(evidence) == pytest.approx(TABLE.mean(axis=0), abs=0.02)


def test_the_formula_on_one_person() -> None:
    """0.5 x (0.9 x 0.88 + 0.1 x 0.12) against 0.5 x (0.2 x 0.88 + 0.8 x 0.12)."""
    evidence = np.log(np.array([[0.88, 0.12]]))
    found = with_answers(np.array([[0.5, 0.5]]), evidence, TABLE[:2])
    assert found[0, 0] == pytest.approx(0.804 / (0.804 + 0.272))
    assert with_answers(np.array([[0.3, 0.7]]), np.zeros((1, 2)), TABLE[:2]) == pytest.approx(np.array([[0.3, 0.7]]))
    _, posterior, few = world(12, 1.0, 3)  # few people lean on what was declared
    assert np.abs(fit_answers(posterior, few, TABLE) - TABLE).max() < 0.15
    assert np.abs(fit_answers(posterior, few) - TABLE).max() > 0.15
