"""Noisy counts of disjoint sets: the worst ratio in exact numbers, the law of the noise, its tails."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
import torch

from graphveil.errors import InputError
from graphveil.mechanisms import NoisyCounts
from graphveil.mechanisms.samplers.two_sided import two_sided
from graphveil.privacy import SecureRandomness, SeededRandomness
from tests.mechanisms import conformance


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
def test_audit_of_disjoint_counts_rejects_a_pair_counted_twice(epsilon: float) -> None:
    """Edges in sets A and B, disjoint, cost epsilon; a copy that counts an edge in both costs 2 epsilon."""
    mechanism = NoisyCounts(epsilon=epsilon)
    outputs = [torch.tensor(pair) for pair in itertools.product(range(-3, 6), repeat=2)]

    def worst(moves: tuple[tuple[int, int], ...]) -> float:
        start = torch.tensor([1, 2])
        return max(
            abs(float((mechanism.log_likelihood(out, start + torch.tensor(move)) - base).sum()))
            for out in outputs
            for base in [mechanism.log_likelihood(out, start)]
            for move in moves
        )

    assert 0.999999 * epsilon < worst(((1, 0), (0, 1), (-1, 0), (0, -1))) <= epsilon * (1 + 1e-9)
    assert worst(((1, 1), (-1, -1))) > 1.9 * epsilon


@pytest.mark.parametrize("epsilon", [0.1, 2.0])
def test_sampler_follows_likelihood(epsilon: float) -> None:
    """Chi-square on 200,000 counts, false-alarm rate 1e-6; 3% more noise is found; the variance fits."""
    counts = torch.full((200_000,), 7)
    noisy = NoisyCounts(epsilon=epsilon).randomize(counts, randomness=SeededRandomness(2))
    noise, top = noisy.numpy() - 7, math.ceil(9 / epsilon)
    seen = np.bincount(np.clip(noise, -top, top) + top, minlength=2 * top + 1)

    def p_value(claimed: float) -> float:
        levels = torch.arange(-top, top + 1)
        law = NoisyCounts(epsilon=claimed).log_likelihood(levels, torch.zeros_like(levels)).numpy()
        law[[0, -1]] = float(two_sided(claimed).log_tail(np.array([top]))[0])
        return conformance.fits(seen, law)

    assert p_value(epsilon) > conformance.FALSE_ALARM > p_value(epsilon / 1.03)
    mechanism = NoisyCounts(epsilon=epsilon)
    assert noise.var() == pytest.approx(mechanism.variance, rel=0.08)
    assert torch.equal(mechanism.estimate(noisy), noisy.double())


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
    exact = NoisyCounts(epsilon=1e6).randomize(np.array([3, 0, 1 << 40]), randomness=SecureRandomness())
    assert exact.tolist() == [3, 0, 1 << 40]
    assert NoisyCounts(epsilon=1e-12).randomize(np.array([3]), randomness=SecureRandomness()).dtype == torch.int64
    for wrong in (torch.tensor([0, -1]), torch.tensor([0.5]), torch.zeros(2, 2, dtype=torch.int64)):
        with pytest.raises(InputError, match="count"):
            NoisyCounts(epsilon=1.0).randomize(wrong, randomness=SecureRandomness())
    with pytest.raises(InputError, match="as many"):
        NoisyCounts(epsilon=1.0).log_likelihood(torch.tensor([1]), torch.tensor([1, 2]))
