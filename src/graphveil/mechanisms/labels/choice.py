"""Which mechanism reports a category: the one with the least variance at its number of values and its epsilon."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from graphveil.mechanisms.base.category import CategoryMechanism
from graphveil.mechanisms.labels.randomized_response import RandomizedResponse
from graphveil.mechanisms.labels.subset_selection import SubsetSelection
from graphveil.mechanisms.labels.unary_encoding import UnaryEncoding


@lru_cache(maxsize=256)
def best_category(epsilon: float, classes: int) -> CategoryMechanism[Any]:
    """The mechanism whose one-hot estimate has the least variance, all coordinates together. Among equally good ones,
    the one with the smallest report. It is chosen from public facts alone.

    Args:
        classes: how many values the category has, 2 to 4096.

    >>> best_category(3.0, 8)
    RandomizedResponse(epsilon=3.0, classes=8)
    >>> best_category(1.0, 8)
    SubsetSelection(epsilon=1.0, classes=8, size=None)
    """
    candidates: tuple[CategoryMechanism[Any], ...] = (
        RandomizedResponse(epsilon=epsilon, classes=classes),
        SubsetSelection(epsilon=epsilon, classes=classes),
        UnaryEncoding(epsilon=epsilon, classes=classes),
    )
    least = min(mechanism.law.total_variance for mechanism in candidates)
    # Equal up to rounding: a set of one class is randomized response.
    return next(mechanism for mechanism in candidates if mechanism.law.total_variance <= least * (1 + 1e-9))
