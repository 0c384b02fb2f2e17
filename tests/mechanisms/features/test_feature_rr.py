"""FeatureRR: its integer tables, shares, decodings, and the noise that sending every feature costs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from decimal import Decimal, localcontext

import numpy as np
import pytest
import scipy.sparse
import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.mechanisms import BinReports, FeatureRR, Hybrid, MultiBit, Piecewise
from graphveil.mechanisms.samplers.bins import BinLaws, bin_laws
from graphveil.mechanisms.samplers.bits import WORD
from graphveil.privacy import SecureRandomness, SeededRandomness
from tests.mechanisms import conformance
from tests.mechanisms.made import RANGE, bad_vectors, by_every_road, vectors

BINS = 4


def build(epsilon: float) -> FeatureRR:
    return FeatureRR(epsilon=epsilon, dimension=2, low=RANGE[0], high=RANGE[1], bins=BINS, shares=(3.0, 1.0))


def every_pair_of_bins(bins: int = BINS) -> Tensor:
    return torch.cartesian_prod(torch.arange(bins), torch.arange(bins)).to(torch.uint8)


def outputs(mechanism: conformance.Mechanism) -> Mapping[str, Tensor]:
    return {"bins": every_pair_of_bins()}


INPUTS = vectors(2)
FORGED = BinReports(torch.full((1, 2), BINS, dtype=torch.uint8))
CASE = conformance.Case(build, 2.0, INPUTS, outputs, BinReports, INPUTS, 2, bad_vectors(2), FORGED)


@pytest.mark.parametrize("check", conformance.PURE_CHECKS)
def test_conformance(check: Callable[[conformance.Case], None]) -> None:
    check(CASE)


def test_guarantee() -> None:
    conformance.check_guarantee(CASE, "one user's whole feature vector")
    assert build(1.0).guarantee.assumption("shares-public")


def integers(laws: BinLaws) -> list[list[list[int]]]:
    """How many of the 2^64 words each bin owns, from the very numbers that decide the draws: [laws][true][bin]."""
    ends = laws.last[:, :, : laws.bins - 1].tolist()
    return [[[b - a for a, b in itertools.pairwise([-1, *row, WORD - 1])] for row in law] for law in ends]


@pytest.mark.parametrize("bins", [2, 3, 10, 33, 256])
@pytest.mark.parametrize("epsilon", [1e-9, 1e-4, 0.5, 4.0, 20.0, 39.0, 1000.0])
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

    class Words:
        void = None

        def __init__(self, words: list[int]) -> None:
            self.words = np.array(words, np.uint64)

        def uint64(self, count: int) -> np.ndarray:
            return self.words

        def bytes(self, count: int) -> bytes:
            return bytes(count)

    for law, true, found in ((0, 0, 3), (1, 6, 0), (1, 2, 6), (0, 5, 2)):
        first = sum(integers(laws)[law][true][:found])
        edges = [first, first + integers(laws)[law][true][found] - 1]
        drawn = laws.draw(np.array([law] * 2), np.full((1, 2), true), Words(edges))
        assert drawn.tolist() == [[found, found]]


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
    found = mechanism.randomize(torch.rand(50, 3), randomness=SeededRandomness(1))
    assert found.bins.shape == (50, 2)
    assert mechanism.estimate(found)[:, 1].tolist() == mechanism.raw(found)[:, 1].tolist() == [0.5] * 50
    assert bool(torch.isinf(mechanism.variance(torch.rand(4, 3))).any(1).all())
    assert math.isinf(mechanism.worst_variance)
    assert mechanism.report_bytes == 2 * 3 / 8


def test_shares_that_users_choose_from_their_own_data_break_the_claim() -> None:
    """One user splits epsilon evenly, another puts it all on one feature: the ratio exceeds the stated epsilon."""
    reports = BinReports(every_pair_of_bins(10))
    users = (((1.0, 1.0), [0.0, 0.0]), ((1.0, 1e-6), [1.0, 0.0]))
    told = [
        FeatureRR(epsilon=8.0, dimension=2, shares=shares).log_likelihood(reports, torch.tensor([row] * len(reports)))
        for shares, row in users
    ]
    assert float((told[0] - told[1]).abs().max()) > 1.1 * 8.0


def test_the_noise_at_the_documented_dimensions() -> None:
    """Against the mechanisms that sample features, at epsilon 1 on [0, 1] with 10 bins.

    A linear decoding that is right on average over the bins has mean variance 4.1e3 (d = 50) and 6.9e6 (2,048), 70 and
    2,900 times that of multi-bit. Being right for every bin takes three times as much again.
    """
    for dimension, linear, exact in (
        (50, (4.09e3, 70.0), (1.235e4, 211.0)),
        (2048, (6.87e6, 2863.0), (2.097e7, 8744.0)),
    ):
        mechanism = FeatureRR(epsilon=1.0, dimension=dimension)
        rival = MultiBit(epsilon=1.0, dimension=dimension).worst_variance
        chances, middles = bin_laws((1 / dimension,), 10).chances[0], (np.arange(10) + 0.5) / 10
        worth = middles / np.polyfit(middles, chances @ middles, 1)[0]
        spread = float((chances @ worth**2 - (chances @ worth) ** 2).mean())
        assert spread == pytest.approx(linear[0], rel=0.01)
        assert spread / rival == pytest.approx(linear[1], rel=0.02)
        assert mechanism.worst_variance == pytest.approx(exact[0], rel=0.01)
        assert mechanism.worst_variance / rival == pytest.approx(exact[1], rel=0.02)
        for other in (Piecewise, Hybrid):
            assert mechanism.worst_variance > linear[1] * other(epsilon=1.0, dimension=dimension).worst_variance


def test_worst_variance_is_the_largest_of_all_inputs() -> None:
    mechanism = FeatureRR(epsilon=30.0, dimension=3, low=-2.0, high=2.0, bins=6, shares=(1.0, 2.0, 4.0))
    fine = np.linspace(-2.0, 2.0, 20_001)
    largest = float(mechanism.variance(np.stack([fine] * 3, axis=1)).max())
    assert mechanism.worst_variance == pytest.approx(largest, rel=1e-6)


def test_raw_decoding_is_the_middle_of_the_bin_and_biased() -> None:
    """The mean of 200,000 raw decodings of 1 lies 50 deviations and more below 1; that of estimates within 5."""
    mechanism = FeatureRR(epsilon=2.0, dimension=1)
    reports = mechanism.randomize(torch.ones(200_000, 1), randomness=SeededRandomness(1))
    raw, deviation = mechanism.raw(reports), math.sqrt(mechanism.worst_variance / 200_000)
    assert raw.unique().numpy() == pytest.approx((np.arange(10) + 0.5) / 10, abs=1e-6)
    assert float(raw.mean()) < 1 - 50 * deviation
    assert abs(float(mechanism.estimate(reports).mean()) - 1) < 5 * deviation


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
def test_every_form_of_input_gives_the_same_reports() -> None:
    values = torch.rand(40, 12, generator=torch.Generator().manual_seed(0)).round()
    mechanism = FeatureRR(epsilon=3.0, dimension=12, shares=tuple(float(k % 4) for k in range(12)))
    found = [mechanism.randomize(v, randomness=SeededRandomness(1)).bins for v in by_every_road(values).values()]
    assert all(torch.equal(bins, found[0]) for bins in found)
    assert found[0].dtype == torch.uint8
    empty = scipy.sparse.csr_matrix((3, 12))
    assert len(mechanism.randomize(empty, randomness=SecureRandomness())) == 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dimension": 0}, "dimension"),
        ({"low": 2.0}, "range"),
        ({"bins": 1}, "bins"),
        ({"bins": 257}, "bins"),
        ({"bins": 2.5}, "bins"),
        ({"shares": (1.0, 1.0)}, "shares"),
        ({"shares": [1.0, 1.0, 1.0]}, "shares"),
        ({"shares": (1.0, -1.0, 1.0)}, "feature 1"),
        ({"shares": (1.0, 1.0, math.nan)}, "feature 2"),
        ({"shares": (1.0, math.inf, 1.0)}, "feature 1"),
        ({"shares": (True, 1.0, 1.0)}, "feature 0"),
        ({"shares": (0.0, 0.0, 0.0)}, "no feature has a share"),
        ({"shares": (1.0, 1e-12, 1.0)}, "leaves"),
        ({"epsilon": 1e-9}, "leaves"),
    ],
)
def test_bad_parameters_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        FeatureRR(**({"epsilon": 1.0, "dimension": 3} | settings))  # type: ignore[arg-type]


def test_what_is_too_large_is_refused() -> None:
    with pytest.raises(InputError, match=r"fewer bins"):
        FeatureRR(epsilon=1.0, dimension=300, bins=256, shares=tuple(float(k + 1) for k in range(300)))
    with pytest.raises(InputError, match="dense numbers"):
        wide = FeatureRR(epsilon=1.0, dimension=60_000)
        wide.randomize(scipy.sparse.csr_matrix((18_000, 60_000)), randomness=SeededRandomness(1))
