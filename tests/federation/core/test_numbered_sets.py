"""Guesses as numbers of sets: the law that is paid for, exactly and as drawn; which size is taken."""

from __future__ import annotations

import math

import pytest
import torch
from scipy import stats

from graphveil.federation.core.numbered_sets import MOST_SETS, NumberedSets, size_of_sets
from graphveil.federation.core.publication import Guessing
from graphveil.privacy import SeededRandomness

CASES = [(0.5, 6, 2), (1.0, 7, 2), (1.0, 10, 3), (0.1, 10, 5)]


@pytest.mark.parametrize(("epsilon", "classes", "size"), CASES)
def test_no_number_is_likelier_than_its_price_and_the_price_is_used(epsilon: float, classes: int, size: int) -> None:
    sets = NumberedSets(epsilon, classes, size)
    chances = sets.transition()
    assert chances.shape == (classes, math.comb(classes, size))
    assert torch.allclose(chances.sum(dim=1), torch.ones(classes, dtype=torch.float64), atol=1e-12)
    most = float((chances.max(dim=0).values / chances.min(dim=0).values).log().max())
    assert epsilon - 1e-9 < most <= epsilon + 1e-12
    # A set that holds the guess is one of those that are likelier, and they make up `keep`.
    likelier = chances > chances.mean(dim=1, keepdim=True)
    assert float((chances * likelier).sum(dim=1).max()) == pytest.approx(sets.keep, rel=1e-12)
    assert likelier.sum(dim=1).tolist() == [math.comb(classes - 1, size - 1)] * classes


@pytest.mark.parametrize(("epsilon", "classes", "size"), CASES)
def test_numbers_are_drawn_by_that_law_and_by_no_other(epsilon: float, classes: int, size: int) -> None:
    """Chi-square of 40,000 draws, false alarm 1e-6, seed fixed; the law of twice the epsilon is refused."""
    guesses = torch.full((40_000,), classes - 2)
    drawn = NumberedSets(epsilon, classes, size).randomize(guesses, randomness=SeededRandomness(4))
    counts = torch.bincount(drawn, minlength=math.comb(classes, size)).double()

    def chance(law: NumberedSets) -> float:
        wanted = law.transition()[classes - 2]
        return float(stats.chisquare(counts.numpy(), (wanted / wanted.sum() * len(guesses)).numpy()).pvalue)

    assert chance(NumberedSets(epsilon, classes, size)) > 1e-6
    assert chance(NumberedSets(2 * epsilon + 0.2, classes, size)) < 1e-6


def test_few_classes_or_much_epsilon_name_one_class() -> None:
    assert [size_of_sets(epsilon, 10) for epsilon in (0.1, 1.0, 4.0, math.inf)] == [5, 3, 1, 1]
    assert size_of_sets(1.0, 3) == size_of_sets(0.5, 2) == 1
    assert math.comb(40, size_of_sets(0.1, 40)) <= MOST_SETS < math.comb(40, size_of_sets(0.1, 40) + 1)
    assert size_of_sets(0.1, 500) == 1  # even pairs are too many


def test_a_guess_names_as_many_classes_as_tell_most_and_costs_the_same() -> None:
    price = Guessing.best(1.0, 10)
    assert (price.size, price.spent(1), price.channel.shape) == (3, 1.0, (10, 120))
    assert price.keep == pytest.approx(3 * math.e / (3 * math.e + 7), rel=1e-9)
    assert Guessing.best(4.0, 10) == Guessing(4.0, 10) and Guessing.best(math.inf, 10).keep == 1.0
