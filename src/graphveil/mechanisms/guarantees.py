"""The guarantee of a report that one user makes alone, in words that every mechanism shares."""

from __future__ import annotations

from graphveil.privacy import Guarantee

FEATURES = "one user's whole feature vector"
LABEL = "one user's label"
OBSERVERS = "the server and everybody it shares with"


def feature_guarantee(epsilon: float, delta: float, dimension: int, low: float, high: float) -> Guarantee:
    """The local guarantee of one randomized feature vector."""
    number = "its one feature" if dimension == 1 else f"its {dimension} features"
    return _local(
        FEATURES,
        epsilon,
        delta,
        f"the range [{low:g}, {high:g}] of {number} is public and was not read off the data",
    )


def label_guarantee(epsilon: float, classes: int) -> Guarantee:
    """The local guarantee of one randomized label."""
    return _local(LABEL, epsilon, 0.0, f"the list of the {classes} classes is public")


def _local(unit: str, epsilon: float, delta: float, *assumes: str) -> Guarantee:
    return Guarantee(
        unit=unit,
        relation="replace",
        model="local",
        epsilon=epsilon,
        delta=delta,
        against=OBSERVERS,
        assumes=(*assumes, "every user reports once", "who takes part is public"),
    )
