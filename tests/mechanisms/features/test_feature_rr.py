"""FeatureRR: its integer tables, shares, decodings, and the noise that sending every feature costs."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.mechanisms import BinReports, FeatureRR
from graphveil.mechanisms.features.feature_rr import BinLaws, bin_laws
from graphveil.mechanisms.samplers.bits import WORD
from graphveil.privacy import SeededRandomness
from tests.mechanisms.samplers.scripted import Scripted


def every_pair_of_bins(bins: int) -> Tensor:
    return torch.cartesian_prod(torch.arange(bins), torch.arange(bins)).to(torch.uint8)


def integers(laws: BinLaws) -> list[list[list[int]]]:
    """How many of the 2^64 words each bin owns, from the very numbers that decide the draws: [laws][true][bin]."""
    ends = laws.last[:, :, : laws.bins - 1].tolist()
    return [[[b - a for a, b in itertools.pairwise([-1, *row, WORD - 1])] for row in law] for law in ends]


@pytest.mark.parametrize(
    ("epsilon", "bins"), [(1e-9, 3), (1e-4, 33), (0.5, 256), (4.0, 10), (20.0, 2), (39.0, 33), (1000.0, 10)]
)
def test_theorem_3_holds_and_is_tight_in_integers(epsilon: float, bins: int) -> None:
    """Every bin under every pair of true bins; enumerated, so no false alarm. Half of sigma is found out."""
    (words,) = integers(bin_laws((epsilon,), bins))
    assert all(sum(row) == WORD and min(row) >= 1 for row in words)
    with localcontext() as context:
        context.prec = 40

        def worst(table: list[list[int]]) -> Decimal:
            columns = list(zip(*table, strict=True))
            return max((Decimal(max(column)) / Decimal(min(column))).ln() for column in columns)

        assert worst(words) <= Decimal(epsilon)
        # What the private side costs shows only where next to nothing is told.
        assert worst(words) >= Decimal(min(epsilon, 40.0)) * Decimal("0.99" if epsilon > 1e-6 else "0.5")
        if epsilon < 20:
            assert worst(integers(bin_laws((2 * epsilon,), bins))[0]) > Decimal(epsilon)


def test_drawn_bins_are_those_that_own_the_word() -> None:
    laws = bin_laws((1.0, 3.0), 7)
    for law, true, expected in ((0, 0, 3), (1, 6, 0), (1, 2, 6), (0, 5, 2)):
        first = sum(integers(laws)[law][true][:expected])
        edges = [first, first + integers(laws)[law][true][expected] - 1]
        drawn = laws.draw(np.array([law] * 2), np.full((1, 2), true), Scripted(edges))
        assert drawn.tolist() == [[expected, expected]]


def test_a_share_is_what_one_feature_costs_and_they_add_up() -> None:
    """Corners of three features with shares 1/2, 0, 1/2 of epsilon; the feature without one leaves no trace."""
    mechanism = FeatureRR(epsilon=2.0, dimension=3, bins=5, shares=(2.0, 0.0, 2.0))
    reports = BinReports(every_pair_of_bins(5))

    def likelihood(*row: float) -> Tensor:
        return mechanism.log_likelihood(reports, torch.tensor([row] * len(reports)))

    base = likelihood(0.0, 0.0, 0.0)
    assert float((likelihood(1.0, 0.0, 0.0) - base).abs().max()) == pytest.approx(1.0, rel=1e-6)
    assert float((likelihood(1.0, 0.0, 1.0) - base).abs().max()) == pytest.approx(2.0, rel=1e-6)
    assert torch.equal(likelihood(0.0, 1.0, 0.0), base)
    assert mechanism.theta.tolist() == [0.5, 0.0, 0.5]
    noisy = mechanism.randomize(torch.rand(50, 3), randomness=SeededRandomness(1))
    assert noisy.bins.shape == (50, 2)
    assert mechanism.estimate(noisy)[:, 1].tolist() == mechanism.raw(noisy)[:, 1].tolist() == [0.5] * 50
    assert bool(torch.isinf(mechanism.variance(torch.rand(4, 3))).any(1).all())
    assert math.isinf(mechanism.worst_variance)
    assert mechanism.report_bytes == 2 * 3 / 8


def test_shares_that_users_choose_from_their_own_data_break_the_claim() -> None:
    """One user splits epsilon evenly, another puts it all on one feature: the ratio exceeds the stated epsilon."""
    reports = BinReports(every_pair_of_bins(10))
    users = (((1.0, 1.0), [0.0, 0.0]), ((1.0, 1e-6), [1.0, 0.0]))
    ratios = [
        FeatureRR(epsilon=8.0, dimension=2, shares=shares).log_likelihood(reports, torch.tensor([row] * len(reports)))
        for shares, row in users
    ]
    assert float((ratios[0] - ratios[1]).abs().max()) > 1.1 * 8.0


def test_worst_variance_is_the_largest_of_all_inputs() -> None:
    mechanism = FeatureRR(epsilon=30.0, dimension=3, low=-2.0, high=2.0, bins=6, shares=(1.0, 2.0, 4.0))
    fine = np.linspace(-2.0, 2.0, 20_001)
    largest = float(mechanism.variance(np.stack([fine] * 3, axis=1)).max())
    assert mechanism.worst_variance == pytest.approx(largest, rel=1e-6)


def test_raw_decoding_is_the_middle_of_the_bin_and_what_is_too_large_is_refused() -> None:
    mechanism = FeatureRR(epsilon=2.0, dimension=1)
    assert mechanism.raw(mechanism.every_report())[:, 0].tolist() == pytest.approx([(k + 0.5) / 10 for k in range(10)])
    assert FeatureRR(epsilon=1.0, dimension=2, shares=(3.0, 1.0)).guarantee.assumption("shares-public")
    with pytest.raises(InputError, match=r"fewer bins"):
        FeatureRR(epsilon=1.0, dimension=300, bins=256, shares=tuple(float(k + 1) for k in range(300)))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        *(("bins", bins, "bins") for bins in (1, 257)),
        *(("shares", shares, "feature [012]") for shares in ((1, -1, 1), (1, 1, math.nan), (True, 1, 1))),
        ("shares", (1.0, 1.0), "shares"),
        ("shares", (0.0, 0.0, 0.0), "no feature has a share"),
        ("shares", (1.0, 1e-12, 1.0), "leaves"),
        ("epsilon", 1e-9, "leaves"),
    ],
)
def test_bad_parameters_are_refused(name: str, value: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        FeatureRR(**{"epsilon": 1.0, "dimension": 3, name: value})
