"""What the mechanisms on sampled coordinates have in common under test."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from graphveil.mechanisms import SampledReports
from graphveil.mechanisms.samplers.laws import Law, worst_variance
from graphveil.privacy import SeededRandomness
from tests.mechanisms import conformance
from tests.mechanisms.made import RANGE, bad_vectors, vectors

WORD = 2**64
Weights = Sequence[Sequence[int | Fraction]]


def case(kind: Callable[..., Any], dimension: int, sampled: int, epsilon: float) -> conformance.Case:
    """A conformance case of `kind` on [-1, 3]^dimension."""

    def build(epsilon: float) -> Any:
        return kind(epsilon=epsilon, dimension=dimension, low=RANGE[0], high=RANGE[1], sampled=sampled)

    def outputs(mechanism: Any) -> Mapping[str, Tensor]:
        pairs = itertools.product(
            itertools.combinations(range(dimension), sampled),
            itertools.product(range(mechanism.law.levels), repeat=sampled),
        )
        subsets, levels = zip(*pairs, strict=True)
        return {
            "indices": torch.tensor(subsets, dtype=torch.int32),
            "levels": torch.tensor(levels, dtype=torch.int16),
        }

    inputs = vectors(dimension)
    forged = SampledReports(torch.zeros(1, sampled, dtype=torch.int32), torch.full((1, sampled), -1, dtype=torch.int16))
    return conformance.Case(
        build, epsilon, inputs, outputs, SampledReports, inputs, 6 * sampled, bad_vectors(dimension), forged
    )


def exceeds(epsilon: float, high: int | Fraction, low: int | Fraction) -> bool:
    """Whether high / low > e^epsilon, in 80 digits."""
    with localcontext() as context:
        context.prec = 80
        ratio = Fraction(high) / Fraction(low)
        return Decimal(ratio.numerator) / Decimal(ratio.denominator) > Decimal(epsilon).exp()


def check_weights(weights: Weights, values: np.ndarray[Any, Any], moments: np.ndarray[Any, Any]) -> None:
    """Exactly, for the weights [position][level]: sum 2^64, means linear in the position, second moments as stated."""
    steps, exact = len(weights) - 1, [Fraction(float(v)) for v in values]
    for position, row in enumerate(weights):
        assert sum(row) == WORD
        mean = sum((w * v for w, v in zip(row, exact, strict=True)), Fraction()) / WORD
        second = sum(w * v * v for w, v in zip(row, exact, strict=True)) / WORD
        assert abs(mean - (Fraction(2 * position, steps) - 1)) <= Fraction(1, 2**50) * (1 + max(exact))
        assert abs(float(second) - moments[position]) <= 1e-9 * max(moments)


def worst_pair(weights: Weights) -> tuple[int | Fraction, int | Fraction]:
    """The two weights of one level, at any two positions, whose ratio is largest; mixtures of positions lie between."""
    pairs = [(max(column), min(column)) for column in zip(*weights, strict=True) if max(column)]
    return max(pairs, key=lambda pair: Fraction(*pair))


def check_ratio(weights: Weights, epsilon: float) -> None:
    """The worst ratio over all levels and pairs of inputs is at most e^epsilon, exactly, and nearly that."""
    high, low = worst_pair(weights)
    assert not exceeds(epsilon, high, low)
    assert epsilon > 20 or exceeds(epsilon * (1 - 1e-6), high, low)


def check_best_coordinates(kind: Callable[..., Any], make: Callable[[float, int], Law], most: int = 60) -> None:
    """The default number of coordinates has the least worst variance of all."""
    for epsilon in (0.1, 1.0, 2.0, 3.5, 4.0, 5.0, 6.0, 8.0, 12.5, 30.0, 90.0):
        for dimension in (1, 2, 3, 5, 20, 1433):
            found = kind(epsilon=epsilon, dimension=dimension)
            spreads = [worst_variance(make(epsilon, k), dimension, k) for k in range(1, min(dimension, most) + 1)]
            assert found.worst_variance * 4 <= min(spreads) * (1 + 1e-12), (epsilon, dimension)


def check_worst_variance(kind: Callable[..., Any]) -> None:
    """No input of a fine grid has a larger variance, and one comes close."""
    for epsilon, dimension in ((0.4, 1), (1.0, 1), (3.0, 1), (8.0, 2), (2.0, 30)):
        mechanism = kind(epsilon=epsilon, dimension=dimension, low=-2.0, high=5.0)
        values = np.linspace(-2.0, 5.0, 7001)[:, None].repeat(dimension, 1)
        largest = float(mechanism.variance(values).max())
        assert largest <= mechanism.worst_variance * (1 + 1e-12)
        assert largest >= mechanism.worst_variance * (1 - 1e-3)


def sampled_levels(law: Law, position: int, rows: int, size: int, seed: int = 1) -> np.ndarray[Any, Any]:
    """Levels that a law draws from one position."""
    drawn: np.ndarray[Any, Any] = law.draw(np.full((rows, size), position), SeededRandomness(seed))
    return drawn


def unit_variance(mechanism: Any) -> float:
    """The worst variance on [-1, 1]."""
    half = float(mechanism.high - mechanism.low) / 2
    return float(mechanism.worst_variance) / half**2


def check_samples(law: Law, other: Law) -> None:
    """Levels drawn at three positions fit the law (chi-square), and not another one of the same shape."""
    everything = np.arange(law.levels)
    for position in (0, law.steps // 2, law.steps):
        drawn = sampled_levels(law, position, 100_000, 2).ravel()
        counts = np.bincount(drawn, minlength=law.levels)
        fits = []
        for candidate in (law, other):
            places, sure = np.full((law.levels, 1), position), np.zeros((law.levels, 1))
            expected = np.exp(candidate.log_likelihood(everything[:, None], places, sure)) * drawn.size
            fits.append(float(stats.chisquare(counts[expected > 0], expected[expected > 0]).pvalue))
        assert fits[0] > conformance.FALSE_ALARM
        assert fits[1] < conformance.FALSE_ALARM
