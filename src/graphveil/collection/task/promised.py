"""What a task promises: of each unit one guarantee, which adds up all answers about it that a report carries.

    one relationship            list + number of links, times two where both ends report or may do so
    features, label             each by itself
    all that a person reports   features + label + one relationship

A list and a number of links leave together, so whoever reads the report divides by both: a guarantee of either alone
would say of a report what holds of a part of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

from graphveil.mechanisms import AdjacencyRR, MultiBit, RandomizedResponse
from graphveil.mechanisms.edges.degrees import NoisyDegree
from graphveil.mechanisms.permanent import permanent_guarantee
from graphveil.privacy import Guarantee, ProtectedUnit, compose, together

Mechanism: TypeAlias = MultiBit | RandomizedResponse | AdjacencyRR | NoisyDegree


def promises(mechanisms: Sequence[Mechanism], epsilons: Sequence[str]) -> list[Guarantee]:
    """Return what is promised: of each unit, then of all of them together where there are several.

    Args:
        mechanisms: that answer, one a field. epsilons: of the fields, as the decimals that the task states.
    """
    # At the epsilon that is stated: devices pay it, also where no threshold of 64 bits can lose as much.
    stated = [_of_both_ends(mechanism, float(epsilon)) for mechanism, epsilon in zip(mechanisms, epsilons, strict=True)]
    people = [
        permanent_guarantee(mechanism) for mechanism in stated if isinstance(mechanism, MultiBit | RandomizedResponse)
    ]
    lists = [permanent_guarantee(mechanism) for mechanism in stated if isinstance(mechanism, AdjacencyRR | NoisyDegree)]
    of_lists = [_added(lists, lists[0].unit)] if len(lists) > 1 else lists
    each = [*people, *of_lists]
    # To replace a relationship by another would change two bits: what is replaced is whether one exists.
    whole = [
        *people,
        *(replace(mechanism, unit=mechanism.unit.existence(), relation="replace") for mechanism in of_lists),
    ]
    return each if len(each) == 1 else [*each, _added(whole, together(mechanism.unit for mechanism in whole))]


def _of_both_ends(mechanism: Mechanism, epsilon: float) -> Mechanism:
    # Of friends each names the other, also where lists hold what begins at their person: whoever reads both divides
    # twice, whatever a single link costs.
    if isinstance(mechanism, AdjacencyRR | NoisyDegree) and mechanism.mode == "directed":
        return replace(mechanism, epsilon=epsilon, mode="both")
    return replace(mechanism, epsilon=epsilon)


def _added(parts: Sequence[Guarantee], unit: ProtectedUnit) -> Guarantee:
    # As the decimals that people read: 0.1 and 0.2 in binary are a little more than 0.3, and would be told as 0.300001.
    exact = sum(Fraction(str(part.epsilon)) for part in parts)
    return replace(compose(parts, unit=unit), epsilon=float(exact))
