"""The sampler of rounded normal noise: its law, its tails, and which words decide which draw."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.special import ndtr

from graphveil.errors import InputError, NoiseError
from graphveil.mechanisms.samplers.rounded_normal import (
    LARGEST_LIMIT,
    WIDEST,
    FineNormal,
    RoundedNormal,
    _table,
    reach_of,
)
from graphveil.privacy import BlockKey, BlockNoise, SecureRandomness, SeededRandomness, gaussian_delta
from graphveil.privacy.source.randomness import open_stream
from tests import pretended  # noqa: F401 (kernels run by the interpreter where there is no GPU)

chacha_kernel, normal_kernel = (
    pytest.importorskip(name, reason="Triton is not installed", exc_type=ImportError)
    for name in ("graphveil.privacy.source.chacha_kernel", "graphveil.mechanisms.samplers.normal_kernel")
)

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


def numbers(key: bytes, nonce: int, count: int) -> np.ndarray:
    return np.frombuffer(open_stream(key, nonce).update(bytes(4 * count)), "<u4")


def test_a_draw_has_its_own_place_in_the_streams_of_its_call() -> None:
    """As the docstring of the module says: numbers by draw, and by tile for those that these leave open."""
    law, key = RoundedNormal(700.0, 8400), SeededRandomness(8).bytes(32)
    words = numbers(key, 0, 100_000)
    expected, places = _table(law.sigma, law.limit).read(words)
    counts, tiles = np.bincount(places // 1024), numbers(key, 1, 98 * 64).reshape(98, 64)
    more = [tile[:count] for tile, count in zip(tiles, counts, strict=True)]
    whole = (words[places].astype(np.uint64) << np.uint64(32)) | np.concatenate(more)
    expected[places] = _table(law.sigma, law.limit).search(whole)[0]
    assert places.size > 1000
    for count in (0, 1, 40_001, 65_537, 100_000):
        for kind in (np.float32, np.float64, np.int64):
            totals = np.full(count, 5, kind)
            law.add_to(totals, SeededRandomness(8))
            assert np.array_equal(totals, expected[:count] + 5)


@pytest.mark.parametrize("count", [1000, 70_000])
def test_draws_that_a_tile_has_no_number_for_take_those_of_the_next_nonce(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table that decides a tenth of all draws: many tiles have more than 64 others, some more than 128."""
    law, key = RoundedNormal(700.0, 8400), SeededRandomness(8).bytes(32)
    table = _table(law.sigma, law.limit)
    poor = replace(table, decided=table.decided // 10)
    # No end lies below what was decided before.
    none = np.zeros(table.decided - poor.decided << table.width, np.int32)
    poor = replace(poor, starts=np.concatenate([none, table.starts]))
    words = numbers(key, 0, count)
    places = np.flatnonzero(words >> np.uint32(17) >= poor.decided)
    ordinals = np.arange(places.size) - np.searchsorted(places // 1024, places // 1024)
    late = places[ordinals >= 64].tolist()
    settled: list[tuple[int, int]] = []
    monkeypatch.setattr(RoundedNormal, "table", property(lambda _: poor))
    monkeypatch.setattr(
        RoundedNormal, "_draw_undecided", lambda self, word, draw, ordinal, key: settled.append((draw, ordinal)) or 0
    )
    law.add_to(np.zeros(count), SeededRandomness(8))
    assert [draw for draw, _ in settled] == late and max(ordinal for _, ordinal in settled) > 128


def test_what_64_bits_leave_open_is_settled_by_the_places_of_the_draw() -> None:
    """The number after them under the next nonce for every 64 of a tile, the last 448 bits by the draw."""
    law, key = RoundedNormal(300.0, 3600), SeededRandomness(8).bytes(32)
    table, word = _table(law.sigma, law.limit), 0xFFFF0000
    for draw, ordinal in ((5, 0), (70_000, 3), (70_000, 67)):
        further = numbers(key, 1 + ordinal // 64, 64 * 70)[64 * (draw // 1024) + ordinal % 64]
        number = np.array([word << 32 | int(further)], np.uint64)
        assert law._draw_undecided(word, draw, ordinal, key) == table.search(number)[0][0]


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


@pytest.mark.parametrize(("sigma", "count", "last"), [(10.0, 1, 1), (37.25, 3000, 17), (8192.0, COUNT, COUNT)])
def test_the_kernel_draws_what_the_sampler_in_numpy_draws(
    sigma: float, count: int, last: int, keys: list[BlockKey]
) -> None:
    """Onto sums that are there, scaled after them; the last part has fewer."""
    before = torch.arange(2 * count + last).float()
    totals = before.clone()
    normal_kernel.NormalKernel.of(law(sigma), "cpu").add_to(totals, keys, size=count, scale=0.5)
    expected = np.concatenate([drawn(sigma, count, key) for key in keys])[: len(totals)]
    assert np.array_equal(totals.numpy(), (before.numpy() + expected) / 2)


def test_a_draw_that_the_kernel_leaves_open_is_the_sampler_s(keys: list[BlockKey]) -> None:
    """An end is planted where the last searched draw falls; and a table that decides little, so that lists end."""
    right = np.concatenate([drawn(300.0, COUNT, key) for key in keys])
    planted = normal_kernel.NormalKernel.of(law(300.0), "cpu")
    streams = keys[1].stream().bytes(32)
    words = numbers(streams, 0, COUNT)
    place = law(300.0).table.read(words)[1][-1]
    ordinal = np.sum(law(300.0).table.read(words)[1] // 1024 == place // 1024) - 1
    end = int(words[place]) << 32 | int(numbers(streams, 1, 64 * 6)[64 * (place // 1024) + ordinal])
    below = int(np.searchsorted(law(300.0).table.ends, np.uint64(end)))
    planted.ends[below] = int(np.array([end], np.uint64).view(np.int64)[0])
    totals = torch.zeros(3 * COUNT)
    planted.add_to(totals, keys, size=COUNT)
    assert np.array_equal(totals.numpy(), right)
    calls = chacha_kernel.cipher_numbers(chacha_kernel.keys_on(keys, "cpu"), 0, 0, 8)
    tables = planted.strips, planted.ends, planted.starts, list(planted.law)
    opened = normal_kernel.add_rounded_normal(totals, calls, *tables, COUNT, 1.0)
    assert opened[:2].tolist() == [1, COUNT + place], "all 64 bits of that draw were compared, and of no other"


def test_more_open_draws_than_there_is_room_for_are_refused(keys: list[BlockKey]) -> None:
    """A table that decides a tenth of all draws: the sums of those behind the end would go without noise."""
    table, kernel = law(300.0).table, normal_kernel.NormalKernel.of(law(300.0), "cpu")
    less = table.decided // 10
    starts = torch.cat([torch.zeros(table.decided - less << table.width, dtype=torch.int32), kernel.starts])
    with pytest.raises(NoiseError, match="draws are left open on the GPU; allowed: 256"):
        replace(kernel, law=(less, *kernel.law[1:]), starts=starts).add_to(torch.zeros(COUNT), keys[:1], size=COUNT)
