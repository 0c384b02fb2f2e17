"""The mechanism with the least variance for a category."""

from __future__ import annotations

import pytest
import torch

from graphveil.errors import InputError
from graphveil.mechanisms import RandomizedResponse, SubsetSelection, UnaryEncoding, best_category


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 3.0, 6.0])
@pytest.mark.parametrize("classes", [2, 3, 8, 50, 256])
def test_no_other_has_less_variance_at_any_value(epsilon: float, classes: int) -> None:
    best = float(best_category(epsilon, classes).variance(torch.tensor([0])).sum())
    for kind in (RandomizedResponse, UnaryEncoding, SubsetSelection):
        for value in (0, classes - 1):
            other = float(kind(epsilon=epsilon, classes=classes).variance(torch.tensor([value])).sum())
            assert best <= other * (1 + 1e-9)


def test_of_equal_ones_the_smallest_report_is_taken() -> None:
    assert isinstance(best_category(3.0, 8), RandomizedResponse)
    assert isinstance(best_category(1.0, 2), RandomizedResponse)
    assert best_category(1.0, 256) == SubsetSelection(epsilon=1.0, classes=256)


def test_what_none_of_them_takes_is_refused() -> None:
    with pytest.raises(InputError, match="classes"):
        best_category(1.0, 1)
