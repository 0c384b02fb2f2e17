"""LapGraph: exhaustive audits on four nodes, the sparse selection against sorting all cells, the exact likelihood."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln

from graphveil.engine import Blocks
from graphveil.errors import InputError
from graphveil.mechanisms import LapGraph
from graphveil.mechanisms.edges import noisy_top_k as top_k_module
from graphveil.mechanisms.edges.lap_graph import log_probability_of_top_k
from graphveil.mechanisms.edges.noisy_top_k import Cells, Threshold, noisy_top_k, threshold_for, uniform_subset
from graphveil.mechanisms.samplers.geometric import two_sided
from graphveil.privacy import SeededRandomness
from tests.mechanisms import pair_cases
from tests.mechanisms.pair_cases import FALSE_ALARM
from tests.mechanisms.samplers.scripted import Scripted


@pytest.mark.slow  # 2.5 CPU s: 2,048 exact likelihoods
@pytest.mark.parametrize(("epsilon", "share"), [(0.5, 0.3), (8.0, 0.01)])
def test_audit_accepts_the_stated_epsilon_and_rejects_half_the_noise(epsilon: float, share: float) -> None:
    domain = pair_cases.tiny()
    pair_cases.check_audit(lambda budget: LapGraph(epsilon=budget, domain=domain, count_share=share), epsilon, 0.8)


@pytest.mark.parametrize("share", [0.01, 0.3, 0.99])
def test_the_number_and_the_cells_share_epsilon(share: float) -> None:
    """One edge moves the number by 1 and one cell by 1: what noise of each costs adds up, to all of epsilon."""
    mechanism = LapGraph(epsilon=2.0, domain=pair_cases.tiny(), count_share=share)
    number, cells = mechanism._count_noise.rate, mechanism._cell_noise.rate
    assert (number, number + cells) == pytest.approx((2.0 * share, 2.0), rel=1e-9)
    assert number + cells <= 2.0


@pytest.mark.slow  # samples
def test_sampler_follows_likelihood() -> None:
    """Chi-square on 600 releases of a graph, false-alarm rate 1e-6; twice the epsilon is found."""
    mechanism, wrong = (LapGraph(epsilon=e, domain=pair_cases.tiny(), count_share=0.3) for e in (2.0, 4.0))
    pairs, randomness = pair_cases.all_sets(mechanism.domain)[22], SeededRandomness(3)
    drawn = [mechanism.randomize(pairs, randomness=randomness) for _ in range(600)]
    counts = np.bincount([pair_cases.number_of(mechanism.domain, out) for out in drawn], minlength=32)
    assert pair_cases.fits(counts, pair_cases.table(mechanism)[22])
    assert not pair_cases.fits(counts, pair_cases.table(wrong)[22])


def dense(mechanism: LapGraph, true: Any, randomness: SeededRandomness) -> Any:
    """The plain definition: a cell for every protected pair, all sorted, equal ones in random order."""
    size = mechanism.domain.size
    count = len(true) + int(mechanism._count_noise.draw(1, randomness)[0])
    cells = mechanism._cell_noise.draw(size, randomness)
    cells[true] += 1
    order = np.lexsort((randomness.uint64(size), cells))
    return order[size - min(max(count, 0), size) :]


def test_sparse_selection_has_the_law_of_sorting_all_cells() -> None:
    """Four chi-square tests with 400 releases each way, false-alarm rate 1e-6 each; a third less noise is found."""
    (domain, pairs), sources = pair_cases.fifty(), [SeededRandomness(seed) for seed in range(3)]
    mechanism, wrong = (LapGraph(epsilon=epsilon, domain=domain, count_share=0.2) for epsilon in (3.0, 4.5))
    sparse, plain, weak = (
        pair_cases.releases(draw, domain.size, 400)
        for draw in (
            lambda: domain.rank(mechanism.randomize(pairs, randomness=sources[0])),
            lambda: dense(mechanism, domain.rank(pairs), sources[1]),
            lambda: dense(wrong, domain.rank(pairs), sources[2]),
        )
    )
    assert pair_cases.same_law(sparse, plain) > FALSE_ALARM > pair_cases.same_law(sparse, weak)


def true_hits(size: int, true: int, wanted: int, epsilon: float) -> np.ndarray[Any, Any]:
    """The exact law of how many of the cells that hold 1 are among the largest, [true + 1]."""
    noise = two_sided(epsilon)

    def ways(cells: int, chosen: int) -> float:
        return float(gammaln(cells + 1) - gammaln(chosen + 1) - gammaln(cells - chosen + 1))

    law = np.zeros(true + 1)
    for k in range(max(0, wanted - (size - true)), min(true, wanted) + 1):
        chance = log_probability_of_top_k((wanted - k, k), (size - true - wanted + k, true - k), noise)
        law[k] = math.exp(ways(true, k) + ways(size - true, wanted - k) + chance)
    return law


@pytest.mark.slow  # samples
def test_a_threshold_that_too_few_cells_pass_is_lowered_without_a_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """How many of 10 cells that hold 1 are among the 12 largest of 60 in 3 blocks, 150 times; thresholds start high."""
    targets: list[float] = []

    def high(target: float, size: int, edges: int, noise: Any) -> Any:
        targets.append(target)
        return threshold_for(0.3 * target, size, 0, noise)

    monkeypatch.setattr(top_k_module, "MARGIN", (1.0, 2.0))
    monkeypatch.setattr(top_k_module, "threshold_for", high)
    true, randomness, noise = np.arange(0, 50, 5), SeededRandomness(2), two_sided(0.6)
    chosen = [noisy_top_k(true, Blocks(60, 25), 12, noise, randomness) for _ in range(150)]
    hits = np.bincount([int(np.isin(places, true).sum()) for places in chosen], minlength=11)
    assert pair_cases.fits(hits, true_hits(60, 10, 12, 0.6))
    assert len(targets) > 2 * 150


@pytest.mark.parametrize(
    ("size", "true", "wanted", "epsilon"),
    [(680, 3, 300, 0.05), (10**6, 120, 105, 9.0), (10**6, 0, 5, 20.0), (50, 50, 7, 1.0)],
)
def test_probabilities_of_all_sets_add_up(size: int, true: int, wanted: int, epsilon: float) -> None:
    """Sets with as many true pairs are equally likely; over all numbers of true pairs the sum is 1."""
    assert true_hits(size, true, wanted, epsilon).sum() == pytest.approx(1.0, abs=1e-7)


def test_equal_keys_of_a_lot_are_drawn_again() -> None:
    assert uniform_subset(3, 1, Scripted([3, 1, 1, 3, 2, 1])).tolist() == [2]


def test_shares_of_the_number_that_are_none_are_refused() -> None:
    for share in (0.0, 1.0, -0.1, math.nan, "0.1", True, None, 1e-12):
        with pytest.raises(InputError, match="count_share"):
            LapGraph(epsilon=1.0, domain=pair_cases.tiny(), count_share=share)  # type: ignore[arg-type]


def test_thresholds_pass_half_the_cells_whole_and_later_what_did_not_pass_before() -> None:
    noise = two_sided(1.0)
    threshold = threshold_for(50.0, 100, 0, noise)
    assert threshold.everything
    assert Cells(noise, None).chance(threshold) == 1
    assert Cells(noise, None).passes(np.array([-9, 0, 9]), threshold, SeededRandomness(0)).all()
    # Pr[low] = Pr[high] + (1 - Pr[high]) Pr[low | not high], in 120 digits.
    high, low = Threshold(5, Decimal("0.25")), Threshold(5, Decimal("0.75"))
    first, both = Cells(noise, None).chance(high), Cells(noise, None).chance(low)
    later = Cells(noise, high).chance(low)
    assert abs(first + (1 - first) * later - both) < Decimal(10) ** -25
    # A quarter of the cells at level 5 passed before; of the rest (0.75 - 0.25) / 0.75 pass now, within 5.5 deviations.
    draws, cells = 20_000, Cells(noise, high)
    passed = cells.passes(np.full(draws, 5), low, SeededRandomness(1))
    assert abs(passed.mean() - 2 / 3) < 5.5 * np.sqrt(2 / 9 / draws)
    assert not cells.passes(np.full(9, 4), low, SeededRandomness(1)).any()
    assert cells.passes(np.full(9, 6), low, SeededRandomness(1)).all()


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 3000), st.data(), st.floats(0.05, 20), st.integers(0, 999))
def test_places_are_distinct_in_order_and_as_many_as_wanted(
    size: int, data: st.DataObject, epsilon: float, seed: int
) -> None:
    wanted = data.draw(st.integers(0, size))
    true = np.flatnonzero(np.random.default_rng(seed).random(size) < 0.1)
    blocks = Blocks(size, data.draw(st.integers(1 + size // 8, size)))
    places = noisy_top_k(true, blocks, wanted, two_sided(epsilon), SeededRandomness(seed))
    assert len(places) == wanted
    assert (np.diff(places) > 0).all()
    assert not wanted or (places[0] >= 0 and places[-1] < size)
