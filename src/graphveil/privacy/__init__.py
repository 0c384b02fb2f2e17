"""Guarantees, budgets, accounting and randomness: what privacy means here, without any machine learning."""

from graphveil.privacy.accountant import compose, epsilon_of
from graphveil.privacy.calibration import analytic_gaussian_sigma, calibrate
from graphveil.privacy.gaussian import gaussian_delta, gaussian_epsilon
from graphveil.privacy.guarantee import Guarantee
from graphveil.privacy.ledger import Budget, Ledger, Spend
from graphveil.privacy.randomness import Randomness, SecureRandomness, SeededRandomness

__all__ = [
    "Budget",
    "Guarantee",
    "Ledger",
    "Randomness",
    "SecureRandomness",
    "SeededRandomness",
    "Spend",
    "analytic_gaussian_sigma",
    "calibrate",
    "compose",
    "epsilon_of",
    "gaussian_delta",
    "gaussian_epsilon",
]
