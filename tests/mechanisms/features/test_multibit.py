"""The multi-bit mechanism."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping

import numpy as np
import pytest
import scipy.sparse
import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.mechanisms import MultiBit, MultiBitReports
from graphveil.privacy import SeededRandomness
from tests.mechanisms import conformance
from tests.mechanisms.made import RANGE, bad_vectors, by_every_road, vectors


def case(dimension: int, sampled: int, epsilon: float) -> conformance.Case:
    def build(epsilon: float) -> MultiBit:
        return MultiBit(epsilon=epsilon, dimension=dimension, low=RANGE[0], high=RANGE[1], sampled=sampled)

    def outputs(mechanism: conformance.Mechanism) -> Mapping[str, Tensor]:
        pairs = [
            (subset, bits)
            for subset in itertools.combinations(range(dimension), sampled)
            for bits in itertools.product((0, 1), repeat=sampled)
        ]
        return {
            "indices": torch.tensor([subset for subset, _ in pairs], dtype=torch.int32),
            "bits": torch.tensor([bits for _, bits in pairs], dtype=torch.uint8),
        }

    inputs = vectors(dimension)
    forged = MultiBitReports(
        torch.full((1, sampled), dimension, dtype=torch.int32), torch.zeros(1, sampled, dtype=torch.uint8)
    )
    return conformance.Case(
        build, epsilon, inputs, outputs, MultiBitReports, inputs, 5 * sampled, bad_vectors(dimension), forged
    )


CASES = {"one of three": case(3, 1, 1.0), "two of four": case(4, 2, 5.0), "all of two": case(2, 2, 0.3)}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("check", conformance.PURE_CHECKS)
def test_conformance(check: Callable[[conformance.Case], None], name: str) -> None:
    check(CASES[name])


def test_guarantee() -> None:
    conformance.check_guarantee(CASES["one of three"], "one user's whole feature vector")


def test_random_search_finds_nothing_beyond_epsilon() -> None:
    """20,000 random reports and pairs of inputs in 40 dimensions stay within epsilon, at the extremes too."""
    mechanism = MultiBit(epsilon=7.0, dimension=40)
    source = np.random.default_rng(1)
    first, second = (np.round(source.random((20_000, 40)) * 1.4 - 0.2, 2).clip(0, 1) for _ in range(2))
    reports = mechanism.randomize(first, randomness=SeededRandomness(1))
    gap = mechanism.log_likelihood(reports, first) - mechanism.log_likelihood(reports, second)
    assert float(gap.abs().max()) <= 7.0 * (1 + 1e-9)


@pytest.mark.parametrize(
    ("epsilon", "dimension", "expected"),
    [(0.01, 100, 1), (1.0, 1433, 1), (4.35, 9, 1), (4.36, 9, 2), (21.8, 9, 9), (1e300, 5, 5), (6.54, 2, 2)],
)
def test_number_of_sampled_coordinates_is_the_papers(epsilon: float, dimension: int, expected: int) -> None:
    assert MultiBit(epsilon=epsilon, dimension=dimension).coordinates == expected


def test_scale_and_variance_are_the_papers() -> None:
    """Equation 5 and the variance of Sajadmanesh and Gatica-Perez for d = 1433, epsilon = 1."""
    mechanism = MultiBit(epsilon=1.0, dimension=1433)
    scale = 1433 / 2 * (math.e + 1) / (math.e - 1)
    assert mechanism.scale == pytest.approx(scale, rel=1e-12)
    values = np.full((1, 1433), 0.25)
    expected = 1433 * (0.5 * (math.e + 1) / (math.e - 1)) ** 2 - 0.25**2
    assert mechanism.variance(values)[0, 0].item() == pytest.approx(expected, rel=1e-9)
    assert MultiBit(epsilon=0.01, dimension=1432).scale == pytest.approx(143_201, abs=1)


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
@pytest.mark.parametrize("sampled", [1, 3, 9, 12])
def test_same_reports_and_likelihoods_by_every_road(sampled: int) -> None:
    values = (torch.rand(300, 12, generator=torch.Generator().manual_seed(1)) - 0.7).clamp(min=0).double()
    mechanism = MultiBit(epsilon=2.0, dimension=12, sampled=sampled)
    expected = mechanism.randomize(values, randomness=SeededRandomness(4))
    for form in by_every_road(values).values():
        reports = mechanism.randomize(form, randomness=SeededRandomness(4))
        assert torch.equal(reports.indices, expected.indices)
        assert torch.equal(reports.bits, expected.bits)
        assert torch.equal(mechanism.log_likelihood(reports, form), mechanism.log_likelihood(expected, values))


@pytest.mark.parametrize("sampled", [1, 2, 5, 17, 20])
def test_coordinates_are_drawn_uniformly_without_replacement(sampled: int) -> None:
    """Every coordinate equally often: chi-square with false-alarm rate 1e-6."""
    reports = MultiBit(epsilon=1.0, dimension=20, sampled=sampled).randomize(
        np.zeros((20_000, 20)), randomness=SeededRandomness(5)
    )
    assert bool((reports.indices[:, 1:] > reports.indices[:, :-1]).all())
    counts = np.bincount(reports.indices.numpy().ravel(), minlength=20)
    expected = 20_000 * sampled / 20
    variance = max(expected * (1 - sampled / 20), 1e-9)
    assert np.abs(counts - expected).max() <= 6 * math.sqrt(variance)


def test_centred_is_sparse_and_agrees_with_the_estimate() -> None:
    mechanism = MultiBit(epsilon=5.0, dimension=30, low=-1.0, high=2.0)
    reports = mechanism.randomize(np.zeros((50, 30)), randomness=SeededRandomness(6))
    centred = mechanism.centred(reports)
    assert scipy.sparse.issparse(centred)
    assert centred.nnz == 50 * mechanism.coordinates
    assert torch.allclose(torch.from_numpy(centred.toarray()) + mechanism.midpoint, mechanism.estimate(reports))


def test_estimate_of_a_large_collection_is_refused_and_centred_is_not() -> None:
    mechanism = MultiBit(epsilon=1.0, dimension=1_100_000)
    values = scipy.sparse.csr_matrix((1000, 1_100_000), dtype=np.float32)
    reports = mechanism.randomize(values, randomness=SeededRandomness(1))
    with pytest.raises(InputError, match=r"1,100,000,000 dense numbers.*sparse"):
        mechanism.estimate(reports)
    assert mechanism.centred(reports).shape == (1000, 1_100_000)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dimension": 0}, "dimension is 0"),
        ({"dimension": 2.0}, "dimension is 2.0"),
        ({"low": 1.0, "high": 1.0}, "range"),
        ({"low": math.nan}, "range"),
        ({"high": math.inf}, "range"),
        ({"low": -1e308, "high": 1e308}, "range"),
        ({"sampled": 4}, "sampled is 4"),
        ({"sampled": 0}, "sampled is 0"),
    ],
)
def test_bad_parameters_are_refused(settings: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        MultiBit(**({"epsilon": 1.0, "dimension": 3} | settings))  # type: ignore[arg-type]


def test_reports_no_device_sends_are_refused() -> None:
    mechanism = MultiBit(epsilon=5.0, dimension=4)

    def reports(indices: list[int], bits: list[int]) -> MultiBitReports:
        return MultiBitReports(torch.tensor([indices], dtype=torch.int32), torch.tensor([bits], dtype=torch.uint8))

    assert mechanism.estimate(reports([0, 3], [0, 1])).shape == (1, 4)
    for bad in (reports([0, 4], [0, 1]), reports([-1, 2], [0, 1]), reports([0, 1], [0, 2])):
        with pytest.raises(InputError, match="no device can send"):
            mechanism.estimate(bad)
    for bad in (reports([1, 1], [0, 1]), reports([2, 1], [0, 1]), reports([1], [1])):
        with pytest.raises(InputError):
            mechanism.centred(bad)
    with pytest.raises(InputError):
        MultiBitReports(torch.zeros(2, 1, dtype=torch.int32), torch.zeros(3, 1, dtype=torch.uint8))
