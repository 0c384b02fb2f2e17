"""The sampler of rounded normal noise: its law, its undecided draws, its guide."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

from graphveil.errors import InputError
from graphveil.mechanisms.samplers import rounded_normal
from graphveil.mechanisms.samplers.rounded_normal import LARGEST_LIMIT, RoundedNormal, _cumulative, _table
from graphveil.privacy import SecureRandomness, SeededRandomness

DRAWS = 4_000_000
#: A right sampler fails one of these tests with at most this probability.
FALSE_ALARM = 1e-6


class Tied:
    """A source that spells out `whole`, a 512-bit number, for each of two draws: 32 bits, the next 32, the rest."""

    void = None

    def __init__(self, whole: int) -> None:
        self.whole, self.calls = whole, 0

    def uint64(self, count: int) -> np.ndarray:
        self.calls += 1
        top, following = self.whole >> 480, (self.whole >> 448) % 2**32
        word = top << 32 | top if self.calls == 1 else following << 32 | 12345
        return np.full(count, word, dtype=np.uint64)

    def bytes(self, count: int) -> bytes:
        return (self.whole % 2**448).to_bytes(count, "little")


def p_value(draws: np.ndarray, sigma: float, law: float) -> float:
    """The chi-square test of draws against round(N(0, law^2)), in some 100 groups of whole cells of equal weight."""
    ends = np.unique(np.round(stats.norm.ppf(np.arange(1, 100) / 100) * sigma)) + 0.5
    # The last groups on each side are the tails: as far out as still holds 20 draws.
    tail = np.floor(-stats.norm.ppf(20 / DRAWS) * sigma) + 0.5
    edges = np.concatenate([[-np.inf, -tail], ends, [tail, np.inf]])
    expected = np.diff(ndtr(edges / law)) * draws.size
    found = np.histogram(draws, np.concatenate([[-1e18], edges[1:-1], [1e18]]))[0]
    return float(stats.chisquare(found, expected * draws.size / expected.sum()).pvalue)


@pytest.mark.parametrize("sigma", [10.0, 37.5, 1448.2, 20_000.0])
def test_the_law_is_the_rounded_normal(sigma: float) -> None:
    """Checklist item 18: chi-square on 4 M draws; 1% more or less noise is told apart."""
    law = RoundedNormal(sigma, math.ceil(12 * sigma))
    draws = np.zeros(DRAWS, np.float32)
    law.add_to(draws, SeededRandomness(3))
    assert p_value(draws, sigma, sigma) > FALSE_ALARM
    assert p_value(draws, sigma, sigma * 1.01) < FALSE_ALARM
    assert p_value(draws, sigma, sigma / math.sqrt(2)) < FALSE_ALARM
    assert np.array_equal(draws, np.round(draws))


def test_tails_that_a_float_generator_never_reaches_are_drawn() -> None:
    """Checklist item 18: the 32-bit numbers next to either end lie beyond 6 deviations, on both sides."""
    law = RoundedNormal(100.0, 1200)
    table = _table(law.sigma, law.limit)
    _, undecided = table.guide.read(np.array([0, 2**32 - 1], np.uint32))
    assert undecided.tolist() == [0, 1]
    ends = law._search(np.array([1, 2**63, 2**64 - 2], np.uint64), SeededRandomness(1))
    assert ends[0] < -600 and ends[1] == 0 and ends[2] > 600


@pytest.mark.parametrize("sigma", [10.0, 37.5])
def test_every_cell_has_its_share(sigma: float) -> None:
    """Cell by cell, where a wrong comparison at one boundary would show."""
    draws = RoundedNormal(sigma, math.ceil(12 * sigma)).draw(DRAWS, SeededRandomness(4))
    reach = int(4 * sigma)
    cells = np.arange(-reach, reach + 1)
    expected = (ndtr((cells + 0.5) / sigma) - ndtr((cells - 0.5) / sigma)) * DRAWS
    found = np.bincount(draws + 20 * int(sigma))[cells + 20 * int(sigma)]
    rest = DRAWS - found.sum(), DRAWS - expected.sum()
    pvalue = stats.chisquare([*found, rest[0]], [*expected, rest[1]]).pvalue
    assert pvalue > FALSE_ALARM
    moved = np.roll(expected, 1)
    assert stats.chisquare([*found, rest[0]], [*moved, rest[1]]).pvalue < FALSE_ALARM


@pytest.mark.parametrize(("sigma", "limit"), [(12.0, 120), (700.0, 8400), (3000.0, 36_000)])
def test_the_guide_says_what_the_table_says(sigma: float, limit: int) -> None:
    """Every entry of the guide, at the ends of its range and around its boundary, against the sorted table."""
    table = _table(sigma, limit)
    guide, top = table.guide, table.first >> np.uint64(32)
    starts = np.arange(1 << 32 - guide.low, dtype=np.uint64) << np.uint64(guide.low)
    ends = starts + np.uint64((1 << guide.low) - 1)
    words = np.concatenate([starts, starts + np.uint64(1), ends, top - np.uint64(1), top, top + np.uint64(1)])
    words = words[words < 2**32]
    cells, undecided = guide.read(words.astype(np.uint32))
    decided = np.setdiff1d(np.arange(words.size), undecided)
    # A 32-bit number decides if the lowest and the highest 64-bit number that begin with it agree.
    low = np.searchsorted(table.first, words << np.uint64(32))
    high = np.searchsorted(table.first, (words << np.uint64(32)) + np.uint64(2**32 - 1), side="right")
    assert np.array_equal(low[decided], high[decided])
    assert np.array_equal(cells[decided], low[decided] - limit)
    assert decided.size > words.size / 4


def test_the_first_64_bits_are_those_of_the_exact_sums() -> None:
    sums = _cumulative(37.5, 900)
    assert len(sums) == 1801 and sums == sorted(sums)
    assert _table(37.5, 900).first.tolist() == [total >> 448 for total in sums[:-1]]


def test_few_draws_are_left_undecided() -> None:
    words = SeededRandomness(5).uint64(1 << 19).view(np.uint32)
    for sigma in (16.0, 1448.2, 5000.0, 20_000.0):
        guide = _table(sigma, math.ceil(12 * sigma)).guide
        assert guide.read(words)[1].size < 0.03 * words.size


def test_bits_past_the_32nd_and_64th_decide_where_the_first_tie() -> None:
    law = RoundedNormal(12.0, 120)
    sums = _cumulative(12.0, 120)
    assert sums[-1] == 2**512
    for place in (0, 1, 60, 120, 180, 239):
        assert law.draw(2, Tied(sums[place] - 1)).tolist() == [place - 120] * 2
        assert law.draw(2, Tied(sums[place])).tolist() == [place - 119] * 2
    for place in (60, 120, 180):
        assert law.draw(2, Tied(sums[place] + 2**449)).tolist() == [place - 119] * 2
        assert law.draw(2, Tied(sums[place] - 2**449)).tolist() == [place - 120] * 2
    assert not _table(12.0, 120).first.flags.writeable
    assert not _table(12.0, 120).guide.entries.flags.writeable


@pytest.mark.parametrize("count", [0, 1, 2, 65_535, 65_536, 65_537, 200_001])
def test_any_number_of_draws_is_made_block_by_block(count: int) -> None:
    law = RoundedNormal(30.0, 360)
    totals = np.full(count, 5.0, np.float32)
    law.add_to(totals, SeededRandomness(6))
    draws = law.draw(count, SeededRandomness(6))
    assert draws.dtype == np.int64
    assert np.array_equal(totals, draws + 5)
    assert count < 3 or np.unique(draws).size > 2


def test_draws_are_fresh() -> None:
    """Checklist item 17: nothing is replayed, within a call or between calls."""
    law, source = RoundedNormal(1000.0, 12_000), SecureRandomness()
    first, second = law.draw(70_000, source), law.draw(70_000, source)
    assert (first == second).mean() < 0.01
    assert (first[:1000] == first[65_536 : 65_536 + 1000]).mean() < 0.05


def test_noise_that_no_table_holds_is_refused() -> None:
    with pytest.raises(InputError, match="a reach of at most 2097151 steps"):
        rounded_normal._guide(np.zeros(1, np.uint64), 1e6, LARGEST_LIMIT + 1)


def test_the_price_of_the_table() -> None:
    law = RoundedNormal(100.0, 1200)
    epsilon, delta = law.price(1.0, 1e-6, 64)
    assert epsilon == pytest.approx(1.0 + 128e-12, abs=1e-15)
    assert 1e-6 < delta < 1e-6 * (1 + 1e-9)
    near = replace(law, limit=500)
    assert near.price(1.0, 0.0, 10)[1] == pytest.approx(20 * stats.norm.sf(5) * (1 + math.e), rel=1e-6)
