"""Bounds of what honest reports do: met by simulations of the worst case, and broken by a law of another scale.

The rates of false alarms are those of the tests' own counts: seeds are fixed, so what passes once passes always.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from graphveil.collection import law
from graphveil.device.degree import Degree
from graphveil.device.features import Features
from graphveil.device.label import Label
from graphveil.device.links import Links
from tests.on_device.signing import degree, features, label, links

DRAWS = 20_000


def test_probabilities_are_those_of_the_whole_numbers_of_a_task() -> None:
    field = Features.of(features("1"))
    least, largest = law.bit_chances(field)
    assert least + largest == pytest.approx(1) and largest / least == pytest.approx(math.e, rel=1e-9)
    other, true = law.class_chances(Label.of(label("1")))
    assert true + 2 * other == pytest.approx(1) and true / other == pytest.approx(math.e, rel=1e-9)
    flip = law.flip_chance(Links.of(links(10, "2"), 10))
    assert (1 - flip) / flip == pytest.approx(math.exp(2), rel=1e-9)


def test_tails_are_exact() -> None:
    counts, trials = np.arange(11), np.full(11, 10)
    table = np.array([math.comb(10, k) * 0.3**k * 0.7 ** (10 - k) for k in range(11)])
    assert law.above(counts, trials, 0.3) == pytest.approx(table[::-1].cumsum()[::-1])
    assert law.below(counts, trials, 0.3) == pytest.approx(table.cumsum())
    assert law.either(np.array([0.01, 0.9]), np.array([0.5, 0.8])).tolist() == pytest.approx([0.02, 1.0])


@pytest.mark.parametrize(("mixed", "holds"), [((0.2, 0.3), True), ((0.3, 0.3), True), ((0.35, 0.45), False)])
def test_counts_of_unlike_bits_stay_below_the_likeliest_ones(mixed: tuple[float, float], holds: bool) -> None:
    """Bits of different people have different probabilities; a bound of 0.3 covers all of up to 0.3, and no more.

    Of 20,000 counts so rare that 0.1% are allowed, more than 50 come by once in 10^6 where 20 are expected.
    """
    rng = np.random.default_rng(1)
    chances = np.where(np.arange(60) % 2, *mixed)
    counts = (rng.random((DRAWS, 60)) < chances).sum(axis=1)
    alarms = int((law.above(counts, 60, 0.3) < 1e-3).sum())
    assert stats.poisson.sf(50, DRAWS * 1e-3) < 1e-6
    assert (alarms <= 50) is holds


@pytest.mark.parametrize(("scale", "holds"), [(1.0, True), (0.9, True), (1.25, False)])
def test_fishers_chi_square_joins_many_counts(scale: float, holds: bool) -> None:
    """Thirty reports of each of 400 coordinates: alone they say little, together a quarter more ones is plain."""
    rng = np.random.default_rng(2)
    asked = np.full(400, 30)
    found = [law.together(law.above(rng.binomial(asked, 0.5 * scale), asked, 0.5)) for _ in range(2000)]
    alarms = int((np.array(found) < 1e-3).sum())
    assert stats.poisson.sf(15, 2) < 1e-6
    assert (alarms <= 15) is holds
    assert law.together(np.empty(0)) == 1.0 and law.together(np.zeros(3)) == 0.0


@pytest.mark.parametrize(("most", "holds"), [(20, True), (25, True), (1, False)])
def test_lists_are_no_longer_than_links_and_noise_make_them(most: int, holds: bool) -> None:
    """People with 20 links: a public bound of 20 covers them, one of 1 does not."""
    rng = np.random.default_rng(3)
    asked, flip = np.full(DRAWS, 300), 0.05
    lengths = rng.binomial(20, 1 - flip, DRAWS) + rng.binomial(280, flip, DRAWS)
    alarms = int((law.longer(lengths, asked, flip, most) < 1e-3).sum())
    assert (alarms <= 50) is holds


@pytest.mark.parametrize(("scale", "holds"), [(1.0, True), (0.5, False)])
def test_the_spread_of_a_list_holds_for_any_links(scale: float, holds: bool) -> None:
    rng = np.random.default_rng(4)
    for linked in (0, 150, 300):
        lengths = rng.binomial(linked, 0.9, DRAWS) + rng.binomial(300 - linked, 0.1, DRAWS)
        mean = linked * 0.9 + (300 - linked) * 0.1
        wide = scale * law.list_spread(np.array([300]), 0.1, 1e-3)[0]
        assert (int((np.abs(lengths - mean) > wide).sum()) <= 100) is holds


@pytest.mark.parametrize("epsilon", ["0.3", "1", "2.5"])
def test_the_noise_of_degrees_falls_as_fast_as_is_said(epsilon: str) -> None:
    """Independent digits, drawn as the device does: P(more than k) is at most r^k; r is e^-epsilon."""
    field = Degree.of(degree(50, epsilon), 50)
    rate = law.degree_rate(field.digits, field.overflow)
    assert math.exp(-float(epsilon)) * 0.999 <= rate <= math.exp(-float(epsilon)) * 1.001
    rng = np.random.default_rng(5)
    chances = np.array([digit / 2**256 for digit in field.digits])
    drawn = (rng.random((DRAWS, len(chances))) < chances) @ (2.0 ** np.arange(len(chances)))
    for level in (1, 2, 5, 10):
        expected = rate**level
        seen = float((drawn >= level).mean())
        # Five and a half standard errors: once in 10^7 for each of twelve comparisons.
        room = 5.5 * math.sqrt(expected * (1 - expected) / DRAWS)
        assert seen <= expected + room
        # And not by far: a rate of another scale is seen.
        assert seen >= rate ** (2 * level) - room


@pytest.mark.parametrize("size", [2, 3, 5])
def test_equal_answers_are_no_likelier_than_is_said(size: int) -> None:
    """The bound is met where all have the same true value, and is above every mixture."""
    rng = np.random.default_rng(6)
    chances = np.array([0.6, 0.2, 0.2])
    bound = math.exp(law.log_equal(chances.tolist(), np.array([size]))[0])
    for unlike in range(size + 1):
        orders = [np.roll(chances, 1) if place < unlike else chances for place in range(size)]
        exact = float(np.prod(np.stack(orders), axis=0).sum())
        assert exact <= bound + 1e-12
        drawn = np.stack([rng.choice(3, DRAWS, p=order) for order in orders])
        seen = float((drawn == drawn[0]).all(axis=0).mean())
        assert abs(seen - exact) <= 5.5 * math.sqrt(exact / DRAWS)
    assert bound == pytest.approx(float((chances**size).sum()))


def test_groups_of_equal_reports_are_bounded_over_all_groups() -> None:
    """Ten people with four random bits each: how often some three are equal, beside the bound."""
    rng = np.random.default_rng(7)
    bits = rng.integers(0, 2, (4000, 10, 4)) @ (1 << np.arange(4))
    three = np.array([(np.bincount(row, minlength=16) >= 3).any() for row in bits])
    equal = 4 * law.log_equal([0.5, 0.5], np.array([3]))
    assert three.mean() <= math.exp(law.copies(10, np.array([3]), equal)[0])
    # One bit less, and the bound says less.
    assert law.copies(10, np.array([3]), equal * 3 / 4)[0] > law.copies(10, np.array([3]), equal)[0]
