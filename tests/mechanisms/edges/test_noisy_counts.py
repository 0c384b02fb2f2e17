"""Noisy counts of disjoint sets: the worst ratio in exact numbers, the law of the noise, its tails."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
import torch

from graphveil.audit import exact
from graphveil.errors import InputError
from graphveil.mechanisms import ClassCounts, NoisyCounts
from graphveil.mechanisms.samplers.geometric import two_sided
from graphveil.privacy import SecureRandomness, SeededRandomness
from tests.mechanisms import pair_cases
from tests.mechanisms.pair_cases import ROUNDING


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 30.0])
def test_the_worst_ratio_is_epsilon_in_exact_numbers(epsilon: float) -> None:
    """One edge moves one of three counts by 1; every vector of noisy counts near the true one, in 100 digits."""
    noise = two_sided(epsilon)
    with localcontext() as context:
        context.prec = 60
        worst = max(
            noise.chance(z - c).ln() - noise.chance(z - c - 1).ln() for z, c in itertools.product(range(-6, 7), (0, 3))
        )
        assert Decimal(epsilon) * Decimal("0.999999") < worst <= Decimal(epsilon)
        assert two_sided(2 * epsilon).chance(0).ln() - two_sided(2 * epsilon).chance(1).ln() > Decimal(epsilon)


@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_a_pair_counted_twice_is_found(epsilon: float) -> None:
    """Edges in sets A and B, disjoint, cost epsilon; a copy that counts an edge in both costs 2 epsilon."""
    outputs = torch.cartesian_prod(torch.arange(-3, 6), torch.arange(-3, 6))
    mechanism, start = NoisyCounts(epsilon=epsilon), torch.tensor([1, 2]).expand_as(outputs)
    for move, many in ((torch.tensor([1, 0]), 1), (torch.tensor([1, 1]), 2)):
        moved = (start + move).ravel()
        ratios = mechanism.log_likelihood(outputs.ravel(), start.ravel()) - mechanism.log_likelihood(
            outputs.ravel(), moved
        )
        assert float(ratios.view(-1, 2).sum(1).abs().max()) == pytest.approx(many * epsilon, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 2.0])
def test_sampler_follows_likelihood(epsilon: float) -> None:
    """Chi-square on 200,000 counts, false-alarm rate 1e-6; 3% more noise is found; the variance fits."""
    counts, mechanism = torch.full((200_000,), 7), NoisyCounts(epsilon=epsilon)
    noisy = mechanism.randomize(counts, randomness=SeededRandomness(2))
    noise = noisy.numpy() - 7
    assert pair_cases.fits_two_sided(noise, epsilon) and not pair_cases.fits_two_sided(noise, epsilon / 1.03)
    assert noise.var() == pytest.approx(mechanism.variance, rel=0.08)
    assert torch.equal(mechanism.estimate(noisy), noisy.double())
    levels = torch.arange(-9, 10)
    law = math.log(math.tanh(epsilon / 2)) - epsilon * levels.abs()
    assert torch.allclose(mechanism.log_likelihood(levels, 0 * levels), law.double())


@pytest.mark.parametrize("epsilon", [1e-3, 0.7, 9.0])
def test_tails_are_those_of_the_law(epsilon: float) -> None:
    noise = two_sided(epsilon)
    levels = np.arange(-5, 6)
    for level, log_tail, log_pmf in zip(levels, noise.log_tail(levels), noise.log_pmf(levels), strict=True):
        assert math.exp(log_tail) == pytest.approx(float(noise.tail(int(level))), rel=1e-12)
        assert math.exp(log_pmf) == pytest.approx(float(noise.chance(int(level))), rel=1e-12)
    far = range(-200, 201)
    assert float(sum(noise.chance(z) for z in far) + 2 * noise.tail(201)) == pytest.approx(1.0, rel=1e-15)


def test_counts_of_any_size_are_taken_and_what_is_no_count_is_refused() -> None:
    assert NoisyCounts(epsilon=1.0).guarantee.assumption("counts-disjoint")
    large = NoisyCounts(epsilon=1e6).randomize(np.array([3, 0, 1 << 40]), randomness=SecureRandomness())
    assert large.tolist() == [3, 0, 1 << 40]
    assert NoisyCounts(epsilon=1e-12).randomize(np.array([3]), randomness=SecureRandomness()).dtype == torch.int64
    for wrong in (torch.tensor([0, -1]), torch.tensor([0.5]), torch.zeros(2, 2, dtype=torch.int64)):
        with pytest.raises(InputError, match="count"):
            NoisyCounts(epsilon=1.0).randomize(wrong, randomness=SecureRandomness())
    with pytest.raises(InputError, match="as many"):
        NoisyCounts(epsilon=1.0).log_likelihood(torch.tensor([1]), torch.tensor([1, 2]))


GROUPS = torch.tensor([0, 1, 1, 0])


def small(epsilon: float) -> ClassCounts:
    return ClassCounts(epsilon=epsilon, domain=pair_cases.tiny(), groups=GROUPS, classes=2)


def worst_ratio(mechanism: ClassCounts) -> float:
    """The largest |log ratio| of one edge more or less, over all 32 graphs and tables around some of them."""
    sets = pair_cases.all_sets(mechanism.domain)
    tables = [torch.from_numpy(mechanism.count(pairs)) + away for pairs in sets[::8] for away in (-2, 0, 2)]
    logs = np.array([[float(mechanism.log_likelihood(sent, pairs)) for sent in tables] for pairs in sets])
    return exact.worst_ratio(logs, exact.subset_neighbours(len(sets)))


@pytest.mark.parametrize("epsilon", [0.1, 8.0])
def test_audit_accepts_the_stated_epsilon_and_rejects_half_the_noise(epsilon: float) -> None:
    """All 32 graphs; the ratio of a table is that of its two counts alone, so no other table has a larger one."""
    claimed = small(epsilon)
    assert 0.999999 * epsilon < worst_ratio(claimed) <= claimed.guarantee.epsilon * (1 + ROUNDING)
    assert worst_ratio(small(2 * epsilon)) > epsilon * (1 + ROUNDING)


@pytest.mark.parametrize("epsilon", [0.4, 2.0])
def test_noise_is_that_of_counts_at_half_of_epsilon(epsilon: float) -> None:
    """The same draws and the same likelihood as those of `NoisyCounts`, whose law has its own test."""
    mechanism, counts = small(epsilon), NoisyCounts(epsilon=epsilon / 2)
    pairs, rows = pair_cases.all_sets(mechanism.domain)[-1], mechanism.domain.ids
    true = mechanism.count(pairs)
    sent = mechanism.randomize(pairs, randomness=SeededRandomness(3))
    drawn = counts.randomize(true[rows].reshape(-1), randomness=SeededRandomness(3))
    assert sent.numpy()[rows].reshape(-1).tolist() == drawn.tolist()
    expected = float(counts.log_likelihood(drawn, true[rows].reshape(-1)).sum())
    assert float(mechanism.log_likelihood(sent, pairs)) == pytest.approx(expected, rel=1e-12)
    assert mechanism.variance == counts.variance


def test_people_without_private_edges_have_rows_of_zeros_and_what_does_not_fit_is_refused() -> None:
    """Who may have private edges is declared, and all of those have noise, whether they have an edge or not."""
    domain, pairs = pair_cases.fifty()
    mechanism = ClassCounts(epsilon=0.05, domain=domain, groups=torch.arange(50) % 3, classes=3)
    sent, again = (mechanism.randomize(pairs, randomness=SecureRandomness()) for _ in range(2))
    isolated = torch.ones(50, dtype=torch.bool)
    isolated[torch.from_numpy(domain.ids)] = False
    assert not bool(sent[isolated].any()) and not torch.equal(sent, again)
    assert float((sent[~isolated] != 0).float().mean()) > 0.9
    assert torch.equal(mechanism.estimate(sent), sent.double())
    mechanism = small(1.0)
    with pytest.raises(InputError, match="counts are"):
        mechanism.log_likelihood(torch.zeros(3, 2, dtype=torch.int64), torch.zeros(2, 0, dtype=torch.int64))
    for groups, message in ((GROUPS[:3], "3 groups"), (GROUPS + 1, "does not exist"), (GROUPS.double(), "integers")):
        with pytest.raises(InputError, match=message):
            ClassCounts(epsilon=1.0, domain=pair_cases.tiny(), groups=groups, classes=2)
