"""The Laplace mechanism on the integer grid."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import pytest
import scipy.sparse
import torch
from scipy import stats
from torch import Tensor

from graphveil.errors import InputError
from graphveil.mechanisms import Laplace, LatticeReports
from graphveil.mechanisms.samplers.geometric import TwoSidedGeometric, _thresholds, bernoulli
from graphveil.privacy import SeededRandomness
from tests.mechanisms import conformance
from tests.mechanisms.made import RANGE, bad_vectors, vectors


def build(epsilon: float) -> Laplace:
    return Laplace(epsilon=epsilon, dimension=1, low=RANGE[0], high=RANGE[1])


def outputs(mechanism: conformance.Mechanism) -> Mapping[str, Tensor]:
    assert isinstance(mechanism, Laplace)
    lattice = mechanism.lattice
    return {"levels": torch.arange(-lattice.reach, lattice.steps + lattice.reach + 1, dtype=torch.int32)[:, None]}


INPUTS = vectors(1)
FORGED = LatticeReports(torch.full((1, 1), 2**30, dtype=torch.int32))
CASE = conformance.Case(build, 1.0, INPUTS, outputs, LatticeReports, INPUTS, 4, bad_vectors(1), FORGED)


@pytest.mark.parametrize("check", conformance.PURE_CHECKS)
def test_conformance(check: Callable[[conformance.Case], None]) -> None:
    check(CASE)


def test_guarantee() -> None:
    conformance.check_guarantee(CASE, "one user's whole feature vector")


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 5.0, 31.0, 1000.0])
def test_worst_ratio_at_other_epsilons(epsilon: float) -> None:
    assert conformance.worst_ratio(conformance.log_likelihoods(CASE, build(epsilon))) <= epsilon * (1 + 1e-9)


def test_random_search_finds_nothing_beyond_epsilon() -> None:
    """Far reports and corner inputs in 6 dimensions: the ratio reaches epsilon and never exceeds it."""
    mechanism = Laplace(epsilon=2.0, dimension=6)
    zeros, ones = np.zeros((2000, 6)), np.ones((2000, 6))
    inside = np.random.default_rng(1).random((2000, 6))
    reports = mechanism.randomize(zeros, randomness=SeededRandomness(2))
    lattice = mechanism.lattice
    ends = torch.tensor([[-lattice.reach] * 6, [lattice.steps + lattice.reach] * 6], dtype=torch.int32)
    reports = LatticeReports(torch.cat([reports.levels[2:], ends]))
    scores = [mechanism.log_likelihood(reports, values) for values in (zeros, ones, inside)]
    ratio = conformance.worst_ratio(torch.stack(scores))
    assert 1.99 <= ratio <= 2.0 * (1 + 1e-9)


def test_support_is_the_same_for_all_inputs() -> None:
    """Checklist item 18: every report that is possible for one input is possible for all; all are whole steps."""
    assert bool(torch.isfinite(conformance.log_likelihoods(CASE, build(1.0))).all())
    mechanism = build(1.0)
    reports = mechanism.randomize(INPUTS, randomness=SeededRandomness(1))
    steps = (mechanism.estimate(reports).double() - RANGE[0]) / mechanism.step
    assert torch.equal(steps, steps.round())


@pytest.mark.parametrize("rate", [1.0, 0.05, 7e-4])
def test_noise_follows_the_geometric_law(rate: float) -> None:
    """Checklist item 18: 4 million draws pass a chi-square test at 1e-6; 2/3 and 1.5 times the scale fail."""
    bits = math.ceil(math.log2(100 / rate))
    draws = TwoSidedGeometric(rate, bits).draw(4_000_000, SeededRandomness(3))
    edges = np.unique(np.round(np.linspace(-8, 8, 60) / rate)).astype(int)

    def p_value(claimed: float) -> float:
        cells = np.diff(stats.dlaplace.cdf(np.array([-(10**9), *edges, 10**9]), claimed))
        counts = np.bincount(np.searchsorted(edges, draws), minlength=len(cells))
        return float(stats.chisquare(counts, cells * len(draws)).pvalue)

    assert p_value(rate) > conformance.FALSE_ALARM
    assert p_value(rate / 1.5) < conformance.FALSE_ALARM
    assert p_value(rate * 1.5) < conformance.FALSE_ALARM


def test_likelihood_is_the_product_of_the_digit_thresholds() -> None:
    """The closed form equals the law that the 256-bit thresholds define, summed out by brute force."""
    rate, bits = 0.35, 9
    digits = [(first * 2**192 + rest) / 2**256 for first, rest in _thresholds(rate, bits)]
    values = np.arange(2**bits)
    geometric = np.ones(2**bits)
    for digit, chance in enumerate(digits):
        geometric *= np.where(values >> digit & 1, chance, 1 - chance)
    exact = np.correlate(geometric, geometric, "full")
    noise = np.arange(-(2**bits) + 1, 2**bits)
    near = np.abs(noise) <= 2 ** (bits - 1)
    law = TwoSidedGeometric(rate, bits)
    assert np.allclose(law.log_pmf(noise[near]), np.log(exact[near]), atol=1e-9)
    tail = [exact[noise >= start].sum() for start in (1, 5, 60)]
    assert np.allclose(law.log_tail(np.array([1, 5, 60])), np.log(tail), atol=1e-9)


def test_bits_past_the_64th_decide_where_the_first_tie() -> None:
    class Tied:
        void = None

        def __init__(self, rest: int) -> None:
            self.rest = rest

        def uint64(self, count: int) -> np.ndarray:
            return np.full(count, 7, dtype=np.uint64)

        def bytes(self, count: int) -> bytes:
            return self.rest.to_bytes(count, "little")

    assert bernoulli(7, 1000, 3, Tied(999)).all()
    assert not bernoulli(7, 1000, 3, Tied(1000)).any()
    assert bernoulli(8, 0, 3, Tied(5)).all()


def test_what_is_too_large_is_refused() -> None:
    wide = Laplace(epsilon=1.0, dimension=60_000)
    with pytest.raises(InputError, match=r"1,080,000,000 dense numbers.*MultiBit"):
        wide.randomize(scipy.sparse.csr_matrix((18_000, 60_000)), randomness=SeededRandomness(1))
    with pytest.raises(InputError, match=r"1e\+08 ranges.*MultiBit"):
        Laplace(epsilon=1e-3, dimension=100_000)
    assert Laplace(epsilon=1e-3, dimension=10_000).lattice.reach < 2**30


@pytest.mark.parametrize("settings", [{"dimension": 0}, {"low": 2.0}, {"high": math.nan}])
def test_bad_parameters_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(InputError):
        Laplace(**({"epsilon": 1.0, "dimension": 3} | settings))  # type: ignore[arg-type]
