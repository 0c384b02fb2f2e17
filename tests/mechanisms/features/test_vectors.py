"""What all mechanisms on feature vectors have in common, beyond the checks of every mechanism."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch

from graphveil.errors import InputError
from graphveil.mechanisms import catalogue
from graphveil.privacy import SeededRandomness
from tests.mechanisms.made import by_every_road

INFOS = {info.name: info for info in catalogue() if info.kind == "features"}
SPARSE = [name for name, info in INFOS.items() if "sparse" in info.tags]
SAMPLED = [name for name, info in INFOS.items() if info.takes("sampled")]
EVERY = pytest.mark.parametrize("name", INFOS)


def build(name: str, **settings: Any) -> Any:
    """A mechanism on three coordinates at epsilon 1, unless said otherwise."""
    delta = {"delta": 1e-6} if INFOS[name].takes("delta") else {}
    return INFOS[name].mechanism(**{"epsilon": 1.0, "dimension": 3, **delta, **settings})


@pytest.mark.parametrize("name", SAMPLED)
def test_coordinates_that_cannot_be_sampled_and_reports_that_no_device_sends_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="epsilon"):
        build(name, epsilon=2e-12, sampled=3)
    with pytest.raises(InputError, match=r"sampled is 9.*in 1..8" if name == "duchi" else "sampled is 21"):
        build(name, dimension=20, sampled=9 if name == "duchi" else 21)
    mechanism, kind = build(name, epsilon=5.0, dimension=4, sampled=2), INFOS[name].report_type
    top = 1 if name == "multi-bit" else mechanism.law.levels - 1
    sent = mechanism.randomize(np.zeros((1, 4)), randomness=SeededRandomness(1)).to_tensors().values()

    def reports(*rows: list[int]) -> Any:
        return kind(*(torch.tensor([row], dtype=part.dtype) for row, part in zip(rows, sent, strict=True)))

    assert mechanism.estimate(reports([0, 3], [0, top])).shape == (1, 4)
    for bad in (([0, 4], [0, 1]), ([-1, 2], [0, 1]), ([0, 1], [0, top + 1])):
        with pytest.raises(InputError, match="no device can send"):
            mechanism.estimate(reports(*bad))
    for bad in (([1, 1], [0, 1]), ([2, 1], [0, 1]), ([1], [1]), ([0, 1], [1])):
        with pytest.raises(InputError):
            mechanism.centred(reports(*bad))


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
@EVERY
def test_reports_and_likelihoods_are_the_same_by_every_road(name: str) -> None:
    values = (torch.rand(300, 12, generator=torch.Generator().manual_seed(1)) - 0.7).clamp(min=0).double()
    for sampled in (1, 3, 8) if name in SAMPLED else (None,):
        mechanism = build(name, dimension=12, epsilon=2.0, **({"sampled": sampled} if sampled else {}))
        expected = mechanism.randomize(values, randomness=SeededRandomness(4))
        for form in by_every_road(values).values():
            reports = mechanism.randomize(form, randomness=SeededRandomness(4)).to_tensors()
            assert all(torch.equal(part, reports[part_name]) for part_name, part in expected.to_tensors().items())
            assert torch.equal(mechanism.log_likelihood(expected, form), mechanism.log_likelihood(expected, values))


@EVERY
def test_centred_estimates_leave_out_the_middle_of_the_range(name: str) -> None:
    mechanism = build(name, epsilon=5.0, dimension=30, low=-1.0, high=2.0)
    reports = mechanism.randomize(np.zeros((50, 30)), randomness=SeededRandomness(6))
    centred = mechanism.centred(reports)
    assert scipy.sparse.issparse(centred) == (name in SPARSE)
    if name in SPARSE:
        assert centred.nnz == 50 * mechanism.coordinates
        centred = centred.toarray()
    assert torch.allclose(torch.as_tensor(centred) + 0.5, mechanism.estimate(reports), atol=1e-3)


@pytest.mark.parametrize("name", SPARSE)
def test_wide_sparse_collections_stay_sparse(name: str) -> None:
    mechanism = build(name, dimension=1_100_000)
    values = scipy.sparse.csr_matrix((1000, 1_100_000), dtype=np.float32)
    reports = mechanism.randomize(values, randomness=SeededRandomness(1))
    with pytest.raises(InputError, match=r"1,100,000,000 dense numbers.*sparse"):
        mechanism.estimate(reports)
    assert mechanism.centred(reports).shape == (1000, 1_100_000)


@pytest.mark.parametrize("name", [name for name in INFOS if name not in ("gaussian", "privunit")])
def test_random_search_finds_nothing_beyond_epsilon(name: str) -> None:
    """5,000 random reports and pairs of inputs in 40 dimensions stay within epsilon, at the extremes too."""
    mechanism = build(name, epsilon=7.0, dimension=40)
    source = np.random.default_rng(1)
    first, second = (np.round(source.random((5000, 40)) * 1.4 - 0.2, 2).clip(0, 1) for _ in range(2))
    reports = mechanism.randomize(first, randomness=SeededRandomness(1))
    gap = mechanism.log_likelihood(reports, first) - mechanism.log_likelihood(reports, second)
    assert float(gap.abs().max()) <= 7.0 * (1 + 1e-9)


@pytest.mark.parametrize("name", [name for name in INFOS if name not in ("privunit", "feature-rr")])
@pytest.mark.parametrize(("epsilon", "dimension"), [(0.4, 1), (3.0, 2), (2.0, 30)])
def test_no_input_of_a_fine_grid_has_a_larger_variance(name: str, epsilon: float, dimension: int) -> None:
    """Between the grid points of reports too, and one comes close."""
    mechanism = build(name, epsilon=epsilon, dimension=dimension, low=-2.0, high=5.0)
    values = np.linspace(-2.0, 5.0, 7001)[:, None].repeat(dimension, 1)
    largest = float(mechanism.variance(values).max())
    assert mechanism.worst_variance * (1 - 1e-3) <= largest <= mechanism.worst_variance * (1 + 1e-12)


@pytest.mark.parametrize(
    ("name", "epsilon", "dimension", "expected"),
    [
        ("multi-bit", 1.0, 1433, 11 + 1),
        ("multi-bit", 5.0, 2, 2),  # all are sent: no index
        ("duchi", 3.0, 1433, 2 * (11 + 1)),
        ("piecewise", 1.0, 1433, 11 + 8),
        ("hybrid", 0.61, 1433, 11 + 1),  # small budgets send signs alone
        ("hybrid", 0.62, 1433, 11 + 8),
        ("three-outputs", 1.0, 1433, 11 + 2),
        ("one-bit", 1.0, 1433, 1433),
        ("laplace", 1.0, 1433, 32 * 1433),
        ("gaussian", 1.0, 1433, 32 * 1433),
    ],
)
def test_a_report_takes_so_many_bits(name: str, epsilon: float, dimension: int, expected: int) -> None:
    assert build(name, epsilon=epsilon, dimension=dimension).report_bytes == expected / 8
