"""Classes from what labels say and from answers to a question: how often each class gives each answer is learned too.

    p(class v | labels, answer) ~ p(class v | labels) sum_a t(a | class) Pr[report v | a]
    t = argmax  sum_v log sum_c p(c | labels) sum_a t(a | c) Pr[report v | a]  +  log prior(t)       (EM)

The prior counts for `weight` people in each class: with declared statistics theirs, else with the answers of everybody,
which say nothing of the class. Everything read here was released.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]

#: How many people the prior of each class counts for: what everybody answers, and what was declared.
OWN_WEIGHT: Final = 2.0
DECLARED_WEIGHT: Final = 30.0
_ROUNDS: Final = 60


def answer_shares(evidence: Matrix) -> Matrix:
    """Return how often each answer is true among all who answered [k], by maximum likelihood of log Pr[report |
    answer].
    """
    likely = _likely(evidence)
    shares = np.full(likely.shape[1], 1 / likely.shape[1])
    for _ in range(_ROUNDS):
        parts = likely * shares
        # Half a person for each answer: one that nobody gave stays possible.
        shares = (parts / parts.sum(axis=1, keepdims=True)).sum(axis=0) + 0.5
        shares /= shares.sum()
    return shares


def fit_answers(posterior: Matrix, evidence: Matrix, statistics: Matrix | None = None) -> Matrix:
    """Return t [c, k]: how often each class gives each answer.

    Args:
        posterior: [n, c] of those who answered, from labels alone; evidence: log Pr[report | answer] [n, k].
        statistics: [c, k], declared and public; None: nothing is known before.
    """
    likely, classes = _likely(evidence), posterior.shape[1]
    prior = np.tile(answer_shares(evidence), (classes, 1)) if statistics is None else statistics
    weight = OWN_WEIGHT if statistics is None else DECLARED_WEIGHT
    table = prior.copy()
    for _ in range(_ROUNDS):
        chance = likely @ table.T
        share = posterior / (posterior * chance).sum(axis=1, keepdims=True)
        # The prior enters every round: what the rounds approach is the mode of the posterior, not of the likelihood.
        table = table * (share.T @ likely) + weight * prior
        table /= table.sum(axis=1, keepdims=True)
    return table


def with_answers(posterior: Matrix, evidence: Matrix, table: Matrix) -> Matrix:
    """Return the classes' probabilities [n, c] with the answers taken in.

    Args:
        posterior: [n, c], from labels alone; evidence: [n, k]; table: t [c, k].
    """
    # Given one's class, what others' labels say and one's own answer are taken to be independent.
    joint = posterior * (_likely(evidence) @ table.T)
    whole: Matrix = joint / joint.sum(axis=1, keepdims=True)
    return whole


def _likely(evidence: Matrix) -> Matrix:
    """Likelihoods up to a factor for each report, the largest of them 1."""
    # Factors of a report cancel in every posterior, and left in they could underflow.
    likely: Matrix = np.exp(evidence - evidence.max(axis=1, keepdims=True))
    return likely
