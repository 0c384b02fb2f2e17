"""The multi-bit mechanism, and the 1-bit mechanism, which is multi-bit with every coordinate."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import torch

from graphveil.errors import InputError
from graphveil.mechanisms import MultiBit, OneBit, OneBitReports
from graphveil.privacy import SeededRandomness


@pytest.mark.parametrize(
    ("epsilon", "dimension", "expected"),
    [(0.01, 100, 1), (1.0, 1433, 1), (4.35, 9, 1), (4.36, 9, 2), (21.8, 9, 9), (1e300, 5, 5), (6.54, 2, 2)],
)
def test_number_of_sampled_coordinates_is_the_papers(epsilon: float, dimension: int, expected: int) -> None:
    assert MultiBit(epsilon=epsilon, dimension=dimension).coordinates == expected


def test_one_bit_is_multi_bit_with_every_coordinate() -> None:
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


def test_reports_of_a_large_collection_are_bits_and_its_estimate_is_refused() -> None:
    mechanism = OneBit(epsilon=1.0, dimension=60_000)
    values = scipy.sparse.csr_matrix((10, 60_000), dtype=np.float32)
    reports = mechanism.randomize(values, randomness=SeededRandomness(1))
    assert reports.packed.shape == (10, 7500)
    reports = OneBitReports(reports.packed[:1].expand(18_000, 7500))
    for use in (mechanism.estimate, mechanism.centred):
        with pytest.raises(InputError, match=r"1,080,000,000 dense numbers.*MultiBit"):
            use(reports)
