"""The k largest of many noisy cells: ties by lot, thresholds that pass what they say, and places in order."""

from __future__ import annotations

from decimal import Decimal
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from graphveil.engine import Blocks
from graphveil.mechanisms.edges.noisy_top_k import Cells, Threshold, noisy_top_k, threshold_for, top_k
from graphveil.mechanisms.samplers.two_sided import two_sided
from graphveil.privacy import SeededRandomness

FALSE_ALARM = 1e-6


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(-3, 3), min_size=1, max_size=12), st.data(), st.integers(0, 99))
def test_the_largest_are_chosen_and_only_ties_are_left_to_lot(
    levels: list[int], data: st.DataObject, seed: int
) -> None:
    wanted = data.draw(st.integers(0, len(levels)))
    chosen = top_k(np.array(levels), wanted, SeededRandomness(seed))
    assert len(set(chosen.tolist())) == wanted
    assert sorted((levels[place] for place in chosen), reverse=True) == sorted(levels, reverse=True)[:wanted]


def test_equal_cells_are_equally_likely() -> None:
    """Which 2 of 4 ties beside one winner, 3,000 draws: chi-square at false-alarm rate 1e-6; the first two fail."""
    source, levels = SeededRandomness(5), np.array([1, 7, 1, 1, 1])
    pairs = {pair: place for place, pair in enumerate(combinations((0, 2, 3, 4), 2))}
    counts = np.zeros(6)
    for _ in range(3000):
        chosen = set(top_k(levels, 3, source).tolist())
        assert 1 in chosen
        counts[pairs[tuple(sorted(chosen - {1}))]] += 1
    assert stats.chisquare(counts).pvalue > FALSE_ALARM
    assert stats.chisquare(np.array([3000, 0, 0, 0, 0, 0])).pvalue < FALSE_ALARM


@settings(max_examples=20, deadline=None)
@given(st.floats(0.05, 8), st.integers(100, 10**9), st.floats(0.0001, 0.49), st.floats(0, 1))
def test_a_threshold_passes_about_as_many_as_it_was_made_for(
    epsilon: float, size: int, share: float, held: float
) -> None:
    noise, ones = two_sided(epsilon), round(held * share * size)
    threshold = threshold_for(share * size, size, ones, noise)
    assert not threshold.everything and threshold.level >= 0 and 0 < threshold.part < 1
    # A cell that holds 1 passes where its noise reaches one level less.
    lower = float(noise.tail(threshold.level) + threshold.part * noise.chance(threshold.level - 1))
    passing = float(Cells(noise, None).chance(threshold)) * size + lower * ones
    assert passing == pytest.approx(share * size, rel=1e-6)


def test_where_half_the_cells_or_more_are_wanted_all_pass() -> None:
    noise = two_sided(1.0)
    threshold = threshold_for(50.0, 100, 0, noise)
    assert threshold.everything
    assert Cells(noise, None).chance(threshold) == 1
    assert Cells(noise, None).passes(np.array([-9, 0, 9]), threshold, SeededRandomness(0)).all()


def test_a_later_threshold_passes_only_what_did_not_pass_before() -> None:
    """Pr[low] = Pr[high] + (1 - Pr[high]) Pr[low | not high], in 120 digits."""
    noise = two_sided(1.0)
    high, low = Threshold(5, Decimal("0.25")), Threshold(5, Decimal("0.75"))
    first, both = Cells(noise, None).chance(high), Cells(noise, None).chance(low)
    later = Cells(noise, high).chance(low)
    assert abs(first + (1 - first) * later - both) < Decimal(10) ** -25


def test_cells_at_the_level_pass_with_what_is_left_of_their_part() -> None:
    """A quarter of the cells at level 5 passed before; of the rest (0.75 - 0.25) / 0.75 pass now."""
    noise, draws = two_sided(1.0), 20_000
    cells = Cells(noise, Threshold(5, Decimal("0.25")))
    passed = cells.passes(np.full(draws, 5), Threshold(5, Decimal("0.75")), SeededRandomness(1))
    # 5.5 standard errors: false-alarm rate 4e-8
    assert abs(passed.mean() - 2 / 3) < 5.5 * np.sqrt(2 / 9 / draws)
    assert not cells.passes(np.full(9, 4), Threshold(5, Decimal("0.75")), SeededRandomness(1)).any()
    assert cells.passes(np.full(9, 6), Threshold(5, Decimal("0.75")), SeededRandomness(1)).all()


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 3000), st.data(), st.floats(0.05, 20), st.integers(0, 999))
def test_places_are_distinct_in_order_and_as_many_as_wanted(
    size: int, data: st.DataObject, epsilon: float, seed: int
) -> None:
    wanted = data.draw(st.integers(0, size))
    true = np.flatnonzero(np.random.default_rng(seed).random(size) < 0.1)
    blocks = Blocks(size, data.draw(st.integers(1 + size // 8, size)))
    found = noisy_top_k(true, blocks, wanted, two_sided(epsilon), SeededRandomness(seed))
    assert len(found) == wanted
    assert (np.diff(found) > 0).all()
    assert not wanted or (found[0] >= 0 and found[-1] < size)
