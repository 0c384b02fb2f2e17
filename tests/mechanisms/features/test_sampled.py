"""The laws of one coordinate: those of the papers, and private in the very integers that decide the draws."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch

from graphveil.mechanisms import Duchi, Hybrid, MultiBit, OneBit, Piecewise, SubOptimal, ThreeOutputs
from graphveil.mechanisms.features.duchi import signs_law
from graphveil.mechanisms.features.hybrid import HybridLaw, hybrid_law
from graphveil.mechanisms.features.three_outputs import three_outputs_law
from graphveil.mechanisms.samplers.laws import worst_variance
from graphveil.privacy import SeededRandomness
from tests.mechanisms import sampled_cases
from tests.mechanisms.sampled_cases import WORD, exceeds

#: Worst variance of one coordinate at epsilon 0.5, 1, 2 and 5: Zhao et al., and how exactly it is printed.
PUBLISHED: dict[Any, tuple[tuple[float, ...], float]] = {
    Duchi: ((16.7, 4.68, 1.72, 1.03), 0.01),
    Piecewise: ((21.2, 5.22, 1.23, 0.13), 0.01),
    Hybrid: ((16.7, 4.29, 1.04, 0.12), 0.0051),
    ThreeOutputs: ((16.7, 4.46, 1.00, 0.27), 0.0051),
    SubOptimal: ((21.1, 5.08, 1.11, 0.08), 0.0051),
}


@pytest.mark.parametrize("kind", PUBLISHED, ids=lambda kind: kind.name)
def test_worst_variance_of_one_coordinate_is_the_published_one(kind: Any) -> None:
    figures, digits = PUBLISHED[kind]
    for epsilon, expected in zip((0.5, 1.0, 2.0, 5.0), figures, strict=True):
        variance = 4 * kind(epsilon=epsilon, dimension=1).worst_variance
        assert variance == pytest.approx(expected, abs=0.051 if expected > 6 else digits)


@pytest.mark.parametrize("kind", PUBLISHED, ids=lambda kind: kind.name)
def test_default_number_of_coordinates_is_the_best(kind: Any) -> None:
    """Of 1 to 60, and of 1 to 8 where signs share a report: no other has a smaller worst variance."""
    most = 8 if kind is Duchi else 60
    for epsilon in (0.1, 2.0, 4.0, 8.0, 30.0):
        for dimension in (1, 3, 20, 1433):
            spreads = [worst_variance(kind.law(epsilon, k), dimension, k) for k in range(1, min(dimension, most) + 1)]
            mechanism = kind(epsilon=epsilon, dimension=dimension)
            assert mechanism.worst_variance * 4 <= min(spreads) * (1 + 1e-12), (epsilon, dimension)


# ---- hybrid ----


def hybrid_weights(law: HybridLaw) -> list[list[int]]:
    """2^128 words of both draws together, spread over the levels at each position."""
    rows = []
    for position in range(law.steps + 1):
        plus = int(law._thresholds(np.array([position]))[0])
        window: list[int] = []
        if law.window is not None:
            levels = np.arange(law.window.levels)
            near = (levels >= position) & (levels < position + law.window.weights.near)
            window = [law.window.weights.high if is_near else law.window.weights.low for is_near in near]
        rows.append([w * (WORD - law.chance) for w in (WORD - plus, plus)] + [w * law.chance for w in window])
    return rows


@pytest.mark.parametrize("epsilon", [1e-9, 0.61, 0.62, 1.0, 3.0])
def test_hybrid_stays_within_epsilon(epsilon: float) -> None:
    """Every level at every position in integers: sums, means, second moments and the worst ratio."""
    law = hybrid_law(epsilon, 1)
    weights = hybrid_weights(law)
    sampled_cases.check_weights(weights, law, WORD**2)
    sampled_cases.check_ratio(weights, epsilon)
    for position in (0, law.steps // 3, law.steps):
        chances = law.probability(np.arange(law.levels), np.full(law.levels, position))
        assert np.allclose(chances, [w / WORD**2 for w in weights[position]], rtol=1e-12)


# ---- three outputs ----


@pytest.mark.parametrize("epsilon", [1e-9, 0.3, 0.69, 0.7, 1.0, 1.71, 6.0, 15.0, 50.0, 1e300])
def test_three_outputs_stay_within_epsilon(epsilon: float) -> None:
    law = three_outputs_law(epsilon, 1)
    sampled_cases.check_weights([list(row) for row in law.weights], law)
    if epsilon > 1e-6:
        sampled_cases.check_ratio([list(row) for row in law.weights], epsilon)


EPSILONS = (1e-9, 0.1, 1.0, 5.0, 40.0)


@pytest.mark.parametrize("signs", range(1, 9))
def test_every_sign_vector_is_private_in_integers(signs: int) -> None:
    """All outputs under all corners: weights add up to 2^64, the worst ratio is at most e^epsilon, exactly."""
    corners = np.array(list(itertools.product((0, 1), repeat=signs)))
    agreeing = (corners[0] == corners).sum(axis=1)
    for epsilon in EPSILONS:
        law = signs_law(epsilon, signs)
        weights = [law.weights.high if 2 * k > signs else law.weights.low for k in agreeing]
        assert sum(weights) == 2**64
        assert not exceeds(epsilon, max(weights), min(weights))
        assert not 0.1 <= epsilon <= 20 or exceeds(epsilon * (1 - 1e-6), max(weights), min(weights))
        for row, weight in zip(corners, weights, strict=True):
            logs = law.log_likelihood(row[None], np.zeros((1, signs), np.int64), np.zeros((1, signs)))
            assert logs[0] == pytest.approx(math.log(weight / 2**64), abs=1e-12)


@pytest.mark.parametrize(
    ("epsilon", "dimension", "expected"),
    [(0.01, 100, 1), (1.0, 1433, 1), (4.35, 9, 1), (4.36, 9, 2), (21.8, 9, 9), (1e300, 5, 5), (6.54, 2, 2)],
)
def test_number_of_sampled_coordinates_is_the_papers(epsilon: float, dimension: int, expected: int) -> None:
    assert MultiBit(epsilon=epsilon, dimension=dimension).coordinates == expected


def test_one_bit_is_multi_bit_with_every_coordinate() -> None:
    """Same law: every report is as likely as the multi-bit report with the same bits."""
    onebit = OneBit(epsilon=3.0, dimension=10)
    multi = MultiBit(epsilon=3.0, dimension=10, sampled=10)
    values = np.random.default_rng(1).random((40, 10))
    reports = onebit.randomize(values, randomness=SeededRandomness(1))
    bits = torch.from_numpy(np.unpackbits(reports.packed.numpy(), axis=1, count=10))
    tensors = {"indices": torch.arange(10, dtype=torch.int32).repeat(40, 1), "bits": bits}
    same = type(multi.randomize(values, randomness=SeededRandomness(1))).from_tensors(tensors)
    assert torch.allclose(onebit.log_likelihood(reports, values), multi.log_likelihood(same, values))
    assert torch.allclose(onebit.estimate(reports), multi.estimate(same))
    assert onebit.scale == pytest.approx(multi.scale)
    assert torch.allclose(onebit.variance(values), multi.variance(values))
