"""Which coordinates a user reports: uniform subsets, whichever way they are drawn, and never a look at the data."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from graphveil.errors import InputError
from graphveil.mechanisms.samplers.subsets import draw_subsets, every_subset
from graphveil.privacy import SeededRandomness
from tests.mechanisms.samplers.scripted import Scripted

FALSE_ALARM = 1e-6
#: (d, k) on both sides of the size from which keys for all coordinates are cheaper than comparisons.
BOTH_WAYS = [(40, 2), (9, 3), (5, 4), (6, 5), (12, 11)]


def p_value(drawn: np.ndarray, dimension: int) -> float:
    """Chi-square of how often each subset was drawn, all of them equally likely."""
    every = {subset: place for place, subset in enumerate(itertools.combinations(range(dimension), drawn.shape[1]))}
    counts = np.bincount([every[tuple(row)] for row in drawn.tolist()], minlength=len(every))
    return float(stats.chisquare(counts).pvalue)


@pytest.mark.parametrize(("dimension", "size"), BOTH_WAYS)
def test_all_subsets_are_equally_likely(dimension: int, size: int) -> None:
    """False-alarm rate 1e-6 each, fixed seeds; a copy that rarely lets the last number in is found out."""
    drawn = draw_subsets(20_000, dimension, size, SeededRandomness(dimension))
    assert (np.diff(drawn, axis=1) > 0).all()
    assert p_value(drawn, dimension) > FALSE_ALARM
    second = draw_subsets(20_000, dimension, size, SeededRandomness(1000 + dimension))
    shy = np.where((drawn == dimension - 1).any(axis=1, keepdims=True), second, drawn)
    assert p_value(shy, dimension) < FALSE_ALARM


def test_who_reports_everything_draws_nothing_and_too_many_reports_are_not_listed() -> None:
    assert draw_subsets(3, 4, 4, Scripted([])).tolist() == [[0, 1, 2, 3]] * 3
    with pytest.raises(InputError, match=r"[\d,]+ possible reports are too many; allowed: at most 1,000,000"):
        every_subset(1433, 40, 2)


@pytest.mark.parametrize(("dimension", "size"), BOTH_WAYS)
def test_a_draw_takes_the_same_number_of_words_whatever_they_are(dimension: int, size: int) -> None:
    used = []
    for word in (0, 1, 2**63, 2**64 - 1):
        source = Scripted([word] * 1000)
        draw_subsets(7, dimension, size, source)
        used.append(1000 - len(source.left))
    assert len(set(used)) == 1
