"""The sampler of rounded normal noise: its law, its tails, and which words decide which draw."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.special import ndtr
from torch import Tensor

from graphveil.errors import InputError
from graphveil.mechanisms.samplers.rounded_normal import (
    LARGEST_LIMIT,
    WIDEST,
    FineNormal,
    RoundedNormal,
    _table,
    reach_of,
)
from graphveil.mechanisms.samplers.rounded_tensor import NormalTensors
from graphveil.privacy import BlockKey, BlockNoise, SecureRandomness, SeededRandomness, gaussian_delta
from graphveil.privacy.source.derived import KeyedStream

DRAWS = 1_000_000
#: A right sampler fails one of these tests with at most this probability.
FALSE_ALARM = 1e-6


def p_value(draws: np.ndarray, sigma: float, law: float) -> float:
    """The chi-square test of draws against round(N(0, law^2)), in some 100 groups of whole cells of equal weight."""
    ends = np.unique(np.round(stats.norm.ppf(np.arange(1, 100) / 100) * sigma)) + 0.5
    # The last groups on each side are the tails: as far out as still holds 20 draws.
    tail = np.floor(-stats.norm.ppf(20 / DRAWS) * sigma) + 0.5
    edges = np.concatenate([[-np.inf, -tail], ends, [tail, np.inf]])
    expected = np.diff(ndtr(edges / law)) * draws.size
    counts = np.histogram(draws, np.concatenate([[-1e18], edges[1:-1], [1e18]]))[0]
    return float(stats.chisquare(counts, expected * draws.size / expected.sum()).pvalue)


@pytest.mark.parametrize("sigma", [10.0, 20_000.0])
def test_the_law_is_the_rounded_normal(sigma: float) -> None:
    """Checklist item 18: chi-square on 1 M draws; 2% more noise is told apart."""
    law = RoundedNormal(sigma, math.ceil(12 * sigma))
    draws = np.zeros(DRAWS, np.float32)
    law.add_to(draws, SeededRandomness(3))
    assert p_value(draws, sigma, sigma) > FALSE_ALARM
    assert p_value(draws, sigma, sigma * 1.02) < FALSE_ALARM
    assert np.array_equal(draws, np.round(draws))


@pytest.mark.parametrize(("sigma", "limit"), [(12.0, 120), (700.0, 8400), (3000.0, 20_000)])
def test_the_table_has_the_chances_that_the_likelihood_tells(sigma: float, limit: int) -> None:
    """Strips and rest added up by cell, to the digits of float64; shifted by one cell they do not fit.

    Checklist item 18: so have the tails, where a 32-bit generator ends.
    """
    table, law = _table(sigma, limit), RoundedNormal(sigma, limit)
    chances = np.diff(table.ends.astype(np.float64), prepend=table.decided * 2.0**49, append=2.0**64) / 2.0**64
    inside = np.repeat(table.strips[: table.decided].astype(np.int64) << table.width, 1 << table.width)
    places = inside + np.tile(np.arange(1 << table.width), table.decided)
    chances += np.bincount(places + limit, minlength=2 * limit + 1) / 2.0 ** (15 + table.width)
    probabilities = np.exp(law.log_pmf(np.arange(-limit, limit + 1)))
    assert np.allclose(chances, probabilities, rtol=1e-9, atol=2.0**-52)
    assert not np.allclose(chances[1:], probabilities[:-1], rtol=1e-9, atol=2.0**-52)


def test_a_draw_has_its_own_place_in_the_source_whatever_came_before_it() -> None:
    """As the docstring of the module says it: half words by number, and the rest from a stream of its own."""
    law, source = RoundedNormal(700.0, 8400), SeededRandomness(8)
    rest, words = KeyedStream(source.bytes(32)), source.uint64(50_000).view(np.uint32)
    expected, undecided = _table(law.sigma, law.limit).read(words)
    more = rest.uint64(undecided.size) >> np.uint64(32)
    numbers = (words[undecided].astype(np.uint64) << np.uint64(32)) | more
    expected[undecided] = _table(law.sigma, law.limit).search(numbers)[0]
    assert undecided.size > 100
    assert np.array_equal(law.draw(100_000, SeededRandomness(8)), expected)
    for count in (0, 1, 40_001, 65_537):
        for kind in (np.float32, np.float64, np.int64):
            totals = np.full(count, 5, kind)
            law.add_to(totals, SeededRandomness(8))
            assert np.array_equal(totals, expected[:count] + 5)


def test_draws_are_fresh_and_noise_that_no_table_holds_is_refused() -> None:
    """Checklist item 17: nothing is replayed, within a call or between calls."""
    law, source = RoundedNormal(1000.0, 12_000), SecureRandomness()
    first, second = law.draw(70_000, source), law.draw(70_000, source)
    assert (first == second).mean() < 0.01
    assert (first[:1000] == first[65_536 : 65_536 + 1000]).mean() < 0.05
    with pytest.raises(InputError, match="a reach of at most 2097151 steps"):
        RoundedNormal(1e6, LARGEST_LIMIT + 1).draw(1, SeededRandomness(0))
    for sigma in (1000.0, WIDEST):
        with pytest.raises(InputError, match="noise of"):
            FineNormal(sigma)


def test_the_price_of_the_table() -> None:
    law = RoundedNormal(100.0, 1200)
    epsilon, delta = law.price(1.0, 1e-6, 64)
    assert epsilon == pytest.approx(1.0 + 128e-12, abs=1e-15)
    assert 1e-6 < delta < 1e-6 * (1 + 1e-9)
    near = replace(law, limit=500)
    assert near.price(1.0, 0.0, 10)[1] == pytest.approx(20 * stats.norm.sf(5) * (1 + math.e), rel=1e-6)
    assert reach_of(0.0) == reach_of(2.5) == 12.0
    assert reach_of(6.0) == 15.5 and reach_of(math.inf) == 25.0


@pytest.mark.parametrize(("limit", "shift", "epsilon"), [(60, 40, 15.0), (60, 40, 3.0), (120, 20, 2.0), (90, 70, 30.0)])
def test_the_price_bounds_what_a_shifted_table_shows(limit: int, shift: int, epsilon: float) -> None:
    """The exact delta of one number that a unit moves by `shift` steps, at a sigma of 10."""
    law = RoundedNormal(10.0, limit)
    chances = np.exp(law.log_pmf(np.arange(-limit, limit + 1)))
    here, there = np.pad(chances, (0, shift)), np.pad(chances, (shift, 0))
    exact = float(np.maximum(here - math.exp(epsilon) * there, 0.0).sum())
    charged = law.price(epsilon, gaussian_delta(10.0, epsilon, shift), 1, shift=shift / 10)[1]
    assert exact <= charged
    assert charged < 1.0 or exact > 0.1


@pytest.mark.parametrize("sigma", [2000.0, 163_841.0, 4.5e6, 1.9e9])
def test_the_law_is_the_normal_on_a_lattice_that_holds_whole_steps(sigma: float) -> None:
    """Right law at six deviations in a million; 1% more or less noise is told apart."""
    law = FineNormal(sigma)
    draws = law.draw(60_000, SeededRandomness(5))
    assert law.unit <= 1.0 and 2**30 <= sigma / law.unit < 2**31
    assert np.array_equal(draws, np.round(draws / law.unit) * law.unit)
    assert stats.kstest(draws / sigma, "norm").pvalue > 1e-6
    far = [stats.chi2.sf(np.sum((draws / other) ** 2), draws.size) for other in (1.02 * sigma, sigma, 0.98 * sigma)]
    assert far[0] > 1 - 1e-6 and 1e-6 < far[1] < 1 - 1e-6 and far[2] < 1e-6
    # Places within a cell are as likely as each other, but for the slope of the density.
    places = law.units(20_000, SeededRandomness(6)) % (1 << 20)
    assert stats.kstest(places / (1 << 20), "uniform").pvalue > 1e-6


def test_fine_sums_are_exact_rounded_afterwards_and_charged_as_a_table() -> None:
    law, start = FineNormal(300_000.0), np.arange(1000, dtype=np.float64)
    exact, short = start.copy(), start.astype(np.float32)
    law.add_to(exact, SeededRandomness(7))
    law.add_to(short, SeededRandomness(7))
    assert np.array_equal(exact - start, law.draw(1000, SeededRandomness(7)))
    assert np.array_equal(short, exact.astype(np.float32))
    epsilon, delta = FineNormal(1e6).price(200.0, 1e-6, 1000, shift=20.0)
    assert (epsilon, delta) == (pytest.approx(200.0 + 2e-9, abs=1e-12), pytest.approx(1e-6, rel=1e-6))
    assert RoundedNormal(100.0, 1200).price(200.0, 1e-6, 1000)[1] > 1.0, "a table that ends at 12 cannot be had at 200"


COUNT = 6001


@pytest.fixture(scope="module")
def keys() -> list[BlockKey]:
    return list(BlockNoise(SeededRandomness(1)).keys(3))


def law(sigma: float) -> RoundedNormal:
    return RoundedNormal(sigma, math.ceil(12 * sigma))


def drawn(sigma: float, count: int, key: BlockKey) -> np.ndarray:
    """What the sampler in numpy gives."""
    return law(sigma).draw(count, key.stream())


@pytest.mark.parametrize(("sigma", "count"), [(10.0, 1), (37.25, (1 << 16) + 1), (8192.0, COUNT)])
def test_draws_are_those_of_the_sampler_in_numpy(sigma: float, count: int, keys: list[BlockKey]) -> None:
    computed = NormalTensors.of(law(sigma), "cpu").draw(count, keys)
    for key, draws in zip(keys, computed, strict=True):
        assert np.array_equal(draws.numpy(), drawn(sigma, count, key))


def undecided(sigma: float, key: BlockKey) -> np.ndarray:
    """The first 64 bits of a stream's draws that no strip decides."""
    stream = key.stream()
    rest = KeyedStream(stream.bytes(32))
    words = stream.uint64(COUNT).view(np.uint32)[:COUNT]
    left = words[law(sigma).table.read(words)[1]]
    numbers: np.ndarray = (left.astype(np.uint64) << np.uint64(32)) | rest.uint64(left.size) >> np.uint64(32)
    return numbers


def halves(numbers: np.ndarray) -> tuple[Tensor, Tensor]:
    upper, lower = (
        torch.from_numpy(part.astype(np.uint32).view(np.int32)) for part in (numbers >> np.uint64(32), numbers)
    )
    return upper, lower


def test_a_draw_that_64_bits_leave_open_is_decided_by_all(keys: list[BlockKey]) -> None:
    """An end is planted where the last undecided draw falls: the sampler in numpy draws that row."""
    last = undecided(300.0, keys[1])[-1:]
    planted = replace(NormalTensors.of(law(300.0), "cpu"), ends=torch.from_numpy(last.view(np.int64)) ^ -(1 << 63))
    wrong, tied = planted.search(*halves(last))
    right = drawn(300.0, COUNT, keys[1])
    assert tied.all()
    assert wrong.item() not in right
    assert np.array_equal(planted.draw(COUNT, keys)[1].numpy(), right)


def test_numbers_are_compared_without_a_sign() -> None:
    """Halves from 2^31 on are negative in int32; the draws rise with the numbers all the same."""
    table = law(10.0).table
    # Between two ends of what cells are owed; in the tails 64 bits do not tell these apart.
    numbers = table.ends[:-1] // np.uint64(2) + table.ends[1:] // np.uint64(2)
    draws, tied = NormalTensors.of(law(10.0), "cpu").search(*halves(numbers))
    expected, ties = table.search(numbers)
    assert np.array_equal(draws.numpy(), expected)
    assert torch.nonzero(tied).ravel().tolist() == ties.tolist()
    assert len(set(draws.tolist())) > 100
