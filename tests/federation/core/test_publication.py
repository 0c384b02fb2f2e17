"""What a publication costs and the noise that it has, number by number."""

from __future__ import annotations

import math

import pytest
import torch

from graphveil.errors import BudgetError
from graphveil.federation.core.publication import Publication, Publisher
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


def test_every_publication_counts_and_no_more_leave_than_were_paid_for() -> None:
    one = publisher(Publication(8.0, 1e-4, 3, 32))
    for rounds in (1, 2, 3):
        sent = one.publish(torch.full((5, 32), rounds / 10), rounds)
        assert (len(one.seen), one.spent) == (rounds, one.publication.spent(rounds))
    with pytest.raises(BudgetError, match="publication 4 of 3"):
        one.publish(torch.full((5, 32), 0.4), 4)
    assert torch.equal(one.publish(torch.full((5, 32), 0.3), 3), sent)  # the same bytes again, for nothing


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
