"""Bounds of what honest reports do: exact tails of the worst case lie below them, and not below another scale's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from graphveil.collection.export import law
from graphveil.device.reports.degree import Degree
from graphveil.device.reports.features import Features
from graphveil.device.reports.label import Label
from graphveil.device.reports.links import Links
from tests.on_device.signing import degree, features, label, links


def above(mass: np.ndarray) -> np.ndarray:
    """Of the law of a count: the probability of as many or more."""
    return np.asarray(mass[::-1].cumsum()[::-1])


def binomial(trials: int, chance: float) -> np.ndarray:
    return np.asarray(stats.binom.pmf(np.arange(trials + 1), trials, chance))


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
    assert law.above(counts, trials, 0.3) == pytest.approx(above(table))
    assert law.below(counts, trials, 0.3) == pytest.approx(table.cumsum())
    assert law.either(np.array([0.01, 0.9]), np.array([0.5, 0.8])).tolist() == pytest.approx([0.02, 1.0])


@pytest.mark.parametrize(("mixed", "holds"), [((0.2, 0.3), True), ((0.3, 0.3), True), ((0.35, 0.45), False)])
def test_counts_of_unlike_bits_stay_below_the_likeliest_ones(mixed: tuple[float, float], holds: bool) -> None:
    """Bits of different people have different probabilities; a bound of 0.3 covers all of up to 0.3, and no more."""
    counts = np.convolve(*(binomial(30, chance) for chance in mixed))
    assert (above(counts) <= law.above(np.arange(61), 60, 0.3) + 1e-12).all() == holds


@pytest.mark.parametrize(("most", "holds"), [(20, True), (25, True), (1, False)])
def test_lists_are_no_longer_than_links_and_noise_make_them(most: int, holds: bool) -> None:
    """People with 20 links: a public bound of 20 covers them, one of 1 does not."""
    lengths, flip = np.arange(301), 0.05
    exact = above(np.convolve(binomial(20, 1 - flip), binomial(280, flip)))
    bound = law.longer(lengths, np.full(301, 300), flip, most)
    assert (exact[bound < 1e-3].max() <= 1e-3) == holds


@pytest.mark.parametrize(("scale", "holds"), [(1.0, True), (0.5, False)])
def test_the_spread_of_a_list_holds_for_any_links(scale: float, holds: bool) -> None:
    wide = scale * law.list_spread(np.array([300]), 0.1, 1e-3)[0]
    for linked in (0, 150, 300):
        lengths = np.convolve(binomial(linked, 0.9), binomial(300 - linked, 0.1))
        mean = linked * 0.9 + (300 - linked) * 0.1
        assert (lengths[np.abs(np.arange(301) - mean) > wide].sum() <= 1e-3) == holds


@pytest.mark.parametrize("epsilon", ["0.3", "1", "2.5"])
def test_the_noise_of_degrees_falls_as_fast_as_is_said(epsilon: str) -> None:
    """Of independent digits, as the device draws them: P(k or more) is at most r^k; r is e^-epsilon."""
    field = Degree.of(degree(50, epsilon), 50)
    rate = law.degree_rate(field.digits, field.overflow)
    assert math.exp(-float(epsilon)) * 0.999 <= rate <= math.exp(-float(epsilon)) * 1.001
    digits, more = [digit / 2**256 for digit in field.digits], field.overflow / 2**256
    mass = np.ones(1)
    for place, chance in enumerate(digits):
        mass = np.convolve(mass, [1 - chance, *[0.0] * (2**place - 1), chance])
    # Whoever draws beyond the highest digit goes on, as often as it comes up.
    rest = np.zeros(20 * 2 ** len(digits) + 1)
    rest[:: 2 ** len(digits)] = (1 - more) * more ** np.arange(21)
    mass = np.convolve(mass, rest)
    for level in (1, 2, 5, 10):
        assert rate ** (2 * level) <= above(mass)[level] <= rate**level * (1 + 1e-9)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_equal_answers_are_no_likelier_than_is_said(size: int) -> None:
    """The bound is met where all have the same true value, and is above every mixture."""
    chances = np.array([0.6, 0.2, 0.2])
    bound = math.exp(law.log_equal(chances.tolist(), np.array([size]))[0])
    for unlike in range(size + 1):
        orders = [np.roll(chances, 1) if place < unlike else chances for place in range(size)]
        assert float(np.prod(np.stack(orders), axis=0).sum()) <= bound + 1e-12
    assert bound == pytest.approx(float((chances**size).sum()))
