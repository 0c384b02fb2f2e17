"""Handing in a collection: the one that was paid for is free, another one of the same people is another price."""

from __future__ import annotations

import pytest

from graphveil.errors import BudgetError
from graphveil.methods import ClassSums
from graphveil.privacy import SeededRandomness
from tests.methods import curator_made as cm


def method() -> ClassSums:
    return ClassSums(epsilon=2.0, epochs=2, hidden=4)


def test_another_publication_is_not_handed_in_for_nothing() -> None:
    start = cm.graph()
    split, paid = cm.split_of(start), method()
    first = paid.publish(start, split=split, randomness=SeededRandomness(1))
    second = method().publish(start, split=split, randomness=SeededRandomness(2))
    for _ in range(2):
        paid.fit_published(first)
    with pytest.raises(BudgetError):
        paid.fit_published(second)
    assert len(paid.ledger.spends) == 1
