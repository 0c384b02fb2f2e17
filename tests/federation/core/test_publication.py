"""What a publication costs and the noise that it has, number by number."""

from __future__ import annotations

import math

import pytest
import torch
from scipy import stats

from graphveil.errors import BudgetError
from graphveil.federation.core.publication import MOST_SETS, Guessing, NumberedSets, Publication, size_of_sets
from graphveil.federation.core.publisher import Publisher, _Keyed
from graphveil.federation.core.rows import GROUPS, TRAIN
from graphveil.federation.crypto.masks import MaskKey
from graphveil.privacy import SeededRandomness, gaussian_epsilon


def publisher(publication: Publication, seed: int = 0) -> Publisher:
    return Publisher(publication, MaskKey.fresh(SeededRandomness(seed)))


def test_the_noise_of_a_long_message_does_not_repeat() -> None:
    """Draws are made 65,536 at a time, each from words of its own."""
    noise = publisher(Publication(8.0, 1e-4, 1, 64))._noise("1", (4096, 64)).reshape(4, -1)
    assert len({tuple(block[:64].tolist()) for block in noise}) == 4
    for block in noise[1:]:
        assert abs(float(torch.corrcoef(torch.stack([noise[0], block]))[0, 1])) < 0.02  # 5 deviations: 6e-7


def test_a_sampler_that_asks_twice_gets_other_words() -> None:
    words = _Keyed(MaskKey.fresh(SeededRandomness(0)), "1")
    again = _Keyed(MaskKey.fresh(SeededRandomness(0)), "1")
    first, second = words.uint64(8), words.bytes(64)
    assert len({first.tobytes(), second, words.bytes(64)}) == 3
    assert (again.uint64(8).tobytes(), again.bytes(64)) == (first.tobytes(), second)


def test_every_publication_counts_and_no_more_leave_than_were_paid_for() -> None:
    own = publisher(Publication(8.0, 1e-4, 3, 32))
    for rounds in (1, 2, 3):
        sent = own.publish(torch.full((5, 32), rounds / 10), str(rounds), TRAIN)
        assert (own.times_published, own.spent) == (rounds, own.publication.spent(rounds))
    for other, round in ((0.4, 4), (-0.3, 3)):  # another round, and other rows in one that is run again
        with pytest.raises(BudgetError, match="publication 4 of 3"):
            own.publish(torch.full((5, 32), other), str(round), TRAIN)
    assert torch.equal(own.publish(torch.full((5, 32), 0.3), "3", TRAIN), sent)  # the same bytes again, for nothing


def test_groups_with_the_same_rows_have_other_noise() -> None:
    rows, publication = torch.zeros(5, 32), Publication(8.0, 1e-4, 3, 32)
    sent = [publisher(publication).publish(rows, "1", group) for group in GROUPS]
    assert len({tuple(body.flatten().tolist()) for body in sent}) == 3


def test_the_noise_has_the_deviation_that_is_paid_for() -> None:
    """Within 1 % of sigma, in units of the clip: 5 deviations of an estimate from 131,072 draws."""
    publication = Publication(8.0, 1e-4, 3, 32, clip=0.5)
    steps = publisher(publication)._noise("1", (4096, 32)) * 2.0**-publication.bits
    assert float(steps.std()) == pytest.approx(publication.sigma, rel=0.01)


def test_the_rounding_of_noise_is_charged_for_every_number_of_every_round() -> None:
    publication = Publication(8.0, 1e-4, 50, 4000)
    for rounds in (1, 7, 50):
        below = publication.delta * (1 - 1e-5 / 2)
        exact = gaussian_epsilon(publication.sigma, below, 2 * math.sqrt(rounds))
        assert publication.spent(rounds) - exact == pytest.approx(2e-12 * rounds * 4000, rel=1e-3)
    assert publication.total <= 8.0


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
