"""The 1-bit mechanism."""

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
from graphveil.mechanisms import MultiBit, OneBit, OneBitReports
from graphveil.privacy import SeededRandomness
from tests.mechanisms import conformance
from tests.mechanisms.made import RANGE, bad_vectors, by_every_road, vectors


def build(epsilon: float) -> OneBit:
    return OneBit(epsilon=epsilon, dimension=3, low=RANGE[0], high=RANGE[1])


def outputs(mechanism: conformance.Mechanism) -> Mapping[str, Tensor]:
    bits = np.array(list(itertools.product((0, 1), repeat=3)), dtype=np.uint8)
    return {"packed": torch.from_numpy(np.packbits(bits, axis=1))}


INPUTS = vectors(3)
FORGED = OneBitReports(torch.zeros(1, 2, dtype=torch.uint8))
CASE = conformance.Case(build, 2.0, INPUTS, outputs, OneBitReports, INPUTS, 1, bad_vectors(3), FORGED)


@pytest.mark.parametrize("check", conformance.PURE_CHECKS)
def test_conformance(check: Callable[[conformance.Case], None]) -> None:
    check(CASE)


def test_guarantee() -> None:
    conformance.check_guarantee(CASE, "one user's whole feature vector")


def test_it_is_multi_bit_with_every_coordinate() -> None:
    """Same law: every report is as likely as the multi-bit report with the same bits."""
    one = OneBit(epsilon=3.0, dimension=10)
    multi = MultiBit(epsilon=3.0, dimension=10, sampled=10)
    values = np.random.default_rng(1).random((40, 10))
    reports = one.randomize(values, randomness=SeededRandomness(1))
    bits = torch.from_numpy(np.unpackbits(reports.packed.numpy(), axis=1, count=10))
    tensors = {"indices": torch.arange(10, dtype=torch.int32).repeat(40, 1), "bits": bits}
    same = type(multi.randomize(values, randomness=SeededRandomness(1))).from_tensors(tensors)
    assert torch.allclose(one.log_likelihood(reports, values), multi.log_likelihood(same, values))
    assert torch.allclose(one.estimate(reports), multi.estimate(same))
    assert one.scale == pytest.approx(multi.scale)
    assert torch.allclose(one.variance(values), multi.variance(values))


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
def test_same_reports_by_every_road() -> None:
    values = (torch.rand(300, 12, generator=torch.Generator().manual_seed(1)) - 0.7).clamp(min=0).double()
    mechanism = OneBit(epsilon=6.0, dimension=12)
    expected = mechanism.randomize(values, randomness=SeededRandomness(4))
    assert expected.packed.shape == (300, 2)
    for form in by_every_road(values).values():
        assert torch.equal(mechanism.randomize(form, randomness=SeededRandomness(4)).packed, expected.packed)


def test_reports_of_a_large_collection_are_bits_and_its_estimate_is_refused() -> None:
    mechanism = OneBit(epsilon=1.0, dimension=60_000)
    values = scipy.sparse.csr_matrix((10, 60_000), dtype=np.float32)
    reports = mechanism.randomize(values, randomness=SeededRandomness(1))
    assert reports.packed.shape == (10, 7500)
    reports = OneBitReports(reports.packed[:1].expand(18_000, 7500))
    for use in (mechanism.estimate, mechanism.centred):
        with pytest.raises(InputError, match=r"1,080,000,000 dense numbers.*MultiBit"):
            use(reports)


@pytest.mark.parametrize("settings", [{"dimension": 0}, {"low": 2.0}, {"high": math.nan}, {"epsilon": 1e-12}])
def test_bad_parameters_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(InputError):
        OneBit(**({"epsilon": 1.0, "dimension": 3} | settings))  # type: ignore[arg-type]
