"""Features as an operator: both forms give one product, the cheap one never builds n x d numbers; missing reports."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor

from graphveil.aggregation import (
    Inputs,
    SparseMatrix,
    build_inputs,
    dense_is_cheaper,
    from_scipy,
    normalised,
    propagate,
    standardise,
)
from graphveil.aggregation import inputs as inputs_module
from graphveil.aggregation.inputs import regularise, require_dense, upgnet_features
from graphveil.aggregation.propagation import Adjacency
from graphveil.errors import InputError
from tests.sizes import LargestTensor

N, D, H = 60, 30, 8


def edges(nodes: int, count: int) -> Tensor:
    """A random graph whose last node is isolated."""
    source, target = np.random.default_rng(0).integers(0, nodes - 1, (2, count))
    return torch.from_numpy(np.stack([np.concatenate([source, target]), np.concatenate([target, source])]))


def topology(nodes: int = N, count: int = 150) -> SparseMatrix:
    return normalised(edges(nodes, count), nodes)


def directed_topology() -> SparseMatrix:
    return normalised(torch.from_numpy(np.random.default_rng(3).integers(0, N - 1, (2, 150))), N)


def reports(answered: Tensor | None = None, nodes: int = N, columns: int = D) -> sp.csr_matrix:
    """One signed number a row of everybody or of who answered, as multi-bit reports give."""
    rng = np.random.default_rng(1)
    values = rng.choice([-3.0, 3.0], nodes).astype(np.float32)
    rows = np.arange(nodes) if answered is None else np.flatnonzero(answered.numpy())
    return sp.csr_matrix((values[rows], (rows, rng.integers(0, columns, nodes)[rows])), shape=(nodes, columns))


def literal(p: SparseMatrix, hops: int, rows: Any, offset: float, answered: Tensor | None) -> Tensor:
    """X' = P^K (C + offset), built at full width; what is missing is the mean of those who answered."""
    row_sums = propagate(p, torch.ones(N, 1), hops)
    heard = row_sums if answered is None else propagate(p, answered.float()[:, None], hops)
    share = torch.where(heard > 0, row_sums / heard, 0.0)
    return share * propagate(p, torch.from_numpy(rows.toarray()), hops) + row_sums * offset


def value_and_gradient(linear: Any) -> tuple[Tensor, Tensor]:
    weight = torch.randn(D, H, generator=torch.Generator().manual_seed(2)).requires_grad_()
    out = linear(weight)
    (out * torch.randn(N, H, generator=torch.Generator().manual_seed(3))).sum().backward()
    return out.detach(), weight.grad


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    ("graph", "dense", "form", "hops", "offset"),
    [
        (topology, False, "sparse", 4, 0.5),
        (topology, True, "sparse", 0, 0.0),
        (topology, True, "tensor", 4, -7.0),
        (directed_topology, False, "numpy", 1, -7.0),
        (directed_topology, False, "tensor", 4, 0.0),
        (directed_topology, True, "numpy", 4, 8.0),
    ],
)
def test_commuted_equals_uncommuted_standardised_or_not(
    graph: Any, dense: bool, form: str, hops: int, offset: float, masked: bool, monkeypatch: Any
) -> None:
    """In either form, whatever is cheaper, and with a mask of who answered."""
    monkeypatch.setattr(inputs_module, "dense_is_cheaper", lambda *_: dense)
    p, answered = graph(), torch.from_numpy(np.random.default_rng(4).random(N) < 0.5) if masked else None
    rows = reports(answered)
    shaped = {"sparse": rows, "numpy": rows.toarray(), "tensor": torch.from_numpy(rows.toarray())}[form]
    built = build_inputs(shaped, p, hops, width=H, offset=offset, reported=answered)
    assert (built.p is None) == (dense or hops == 0) and (built.num_nodes, built.dimension) == (N, D)
    standard = standardise(built, generator=torch.Generator().manual_seed(0))
    full = literal(p, hops, rows, offset, answered)
    for operator, matrix in ((built, full), (standard, (full - full.mean(dim=0)) * standard.scale)):
        commuted, expected = value_and_gradient(operator.linear), value_and_gradient(lambda weight: matrix @ weight)  # noqa: B023
        for mine, theirs in zip(commuted, expected, strict=True):
            assert torch.allclose(mine, theirs, rtol=1e-5, atol=1e-5 * float(theirs.abs().max()))
    assert float(materialised(standard).mean(dim=0).abs().max()) < 1e-5


def test_the_form_is_chosen_by_counting_operations() -> None:
    """Dense costs n d h a step; commuted costs the stored numbers and K |E|, each times h."""
    p = topology(count=600)
    rows = from_scipy(reports())
    wide = from_scipy(sp.csr_matrix((N, 20_000), dtype=np.float32))
    assert dense_is_cheaper(rows, p, hops=16, width=H)
    assert not dense_is_cheaper(rows, topology(count=20), hops=1, width=H)
    assert not dense_is_cheaper(wide, p, hops=16, width=H)
    small = torch.zeros(N, 4)
    assert dense_is_cheaper(small, p, hops=1, width=H)
    huge = from_scipy(sp.csr_matrix((N, 2_000_000), dtype=np.float32))  # it would fill the memory
    assert not dense_is_cheaper(huge, p, hops=10**9, width=H)


def test_nothing_of_size_n_times_d_is_built_when_dense_is_not_chosen() -> None:
    n, d = 2_000, 3_000
    rng = np.random.default_rng(0)
    rows = sp.csr_matrix((np.ones(n, np.float32), (np.arange(n), rng.integers(0, d, n))), shape=(n, d))
    p = topology(n, 4_000)
    with LargestTensor() as watch:
        built = build_inputs(rows, p, 4, width=H, offset=0.5)
        built = standardise(built, generator=torch.Generator().manual_seed(0))
        weight = torch.zeros(d, H, requires_grad=True)
        built.linear(weight).sum().backward()
    assert built.p is not None
    assert watch.numbers <= max(n, d) * 64
    assert watch.numbers < n * d / 20
    with LargestTensor() as watch:  # which is not blind
        built = build_inputs(sp.identity(300, dtype=np.float32, format="csr"), topology(300, 9_000), 16, width=64)
    assert built.p is None and watch.numbers >= 300 * 300


def materialised(inputs: Inputs) -> Tensor:
    return inputs.linear(torch.eye(inputs.dimension)).double()


@pytest.mark.parametrize(("seed", "offset"), [(0, 0.0), (1, 8.0)])
def test_standardised_entries_have_unit_size_within_the_probe_error(seed: int, offset: float) -> None:
    """E |M g|^2 = |M|_F^2 with variance 2 |M^T M|_F^2 / probes: 5.2 deviations are a false alarm of 2e-7.

    A scale that is half or twice as large is rejected.
    """
    probes = 256
    built = build_inputs(reports(), topology(), 2, width=H, offset=offset)
    standard = standardise(built, generator=torch.Generator().manual_seed(seed), probes=probes)
    centred = materialised(replace(standard, scale=1.0))
    frobenius = float(centred.square().sum())
    error = (2 / probes) ** 0.5 * float((centred.T @ centred).norm()) / frobenius
    square = float(materialised(standard).square().mean())

    def fits(mean_square: float) -> bool:
        return abs(1 / mean_square - 1) < 5.2 * error

    assert fits(square)
    assert not fits(square * 4)
    assert not fits(square / 4)


def test_rescaled_reports_standardise_to_the_same_numbers_and_zeros_to_zeros() -> None:
    """The scale of a mechanism's estimates, which grows as epsilon falls, cannot reach the network."""
    built = [build_inputs(reports() * np.float32(scale), topology(), 4, width=H) for scale in (1000, 1, 0)]
    loud, quiet, none = (materialised(standardise(b, generator=torch.Generator().manual_seed(0))) for b in built)
    assert torch.allclose(loud, quiet, atol=1e-4) and not none.any()


# ---- means over those who answered: a missing report is no evidence, and never a vector of zeros ----


PEOPLE, OFFSET = 200, 0.5
#: Columns that make each form the cheaper one: few are propagated dense, many commuted.
FORMS = {"dense": 3, "commuted": 400}
HALF = torch.from_numpy(np.random.default_rng(1).random(PEOPLE) < 0.5)


@pytest.mark.parametrize("hops", [0, 4])
@pytest.mark.parametrize("columns", FORMS.values(), ids=FORMS)
def test_where_everybody_answered_every_bit_is_as_without_a_mask(columns: int, hops: int) -> None:
    p, everyone = topology(PEOPLE, 600), torch.ones(PEOPLE, dtype=torch.bool)
    matrix, weight = reports(everyone, PEOPLE, columns), torch.eye(columns)
    plain, masked = (
        build_inputs(matrix, p, hops, width=8, offset=OFFSET, reported=mask).linear(weight) for mask in (None, everyone)
    )
    assert torch.equal(plain, masked)
    nobody = ~everyone  # whom no report reaches is left in the middle of the range
    left = build_inputs(0 * matrix, p, hops, width=8, offset=OFFSET, reported=nobody).linear(weight)
    assert torch.allclose(left, (propagate(p, torch.ones(PEOPLE, 1), hops) * OFFSET).expand(-1, columns))


def test_people_who_are_alike_look_so_however_few_of_them_answered() -> None:
    p, value = topology(PEOPLE, 600), 0.9
    matrix = sp.csr_matrix(np.where(HALF.numpy()[:, None], np.float32(value - OFFSET), 0))
    built = build_inputs(matrix, p, 2, width=8, offset=OFFSET, reported=HALF).linear(torch.eye(1))
    reached = (propagate(p, HALF.float()[:, None], 2) > 0).squeeze()
    assert int(reached.sum()) > PEOPLE // 2
    assert torch.allclose(built[reached], (value * propagate(p, torch.ones(PEOPLE, 1), 2))[reached], atol=1e-5)


def test_upgnet_averages_those_who_answered() -> None:
    a = Adjacency.of(edges(PEOPLE, 600), PEOPLE)
    value = np.where(HALF.numpy()[:, None], np.float32(1.5), np.float32(0))
    heard = np.asarray(a.to_scipy("mean") @ HALF.numpy().astype(np.float32)) > 0
    averaged = upgnet_features(sp.csr_matrix(value), a, 0, HALF).numpy()
    assert np.allclose(averaged[heard], 1.0, atol=1e-5)  # 1.5 + 0.5, less the threshold of 1
    assert not np.allclose(upgnet_features(sp.csr_matrix(value), a, 0).numpy()[heard], 1.0, atol=0.05)


#: 0 - 1 - 2, and 3 alone.
PATH = Adjacency.of(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), 4)
CENTRED = np.array([[9.5, -4.5], [0.2, -0.2], [1.5, 0.5], [50.0, 50.0]], np.float32)


def test_small_averages_become_zero_and_others_lose_the_threshold() -> None:
    """Node 1 has the averages (5.5 + 0.5, -2 + 0.5), its neighbours (0.7, 0.3), which are within 1."""
    expected = np.array([[0, 0], [5.0, -0.5], [0, 0], [0, 0]])
    assert regularise(CENTRED, PATH) == pytest.approx(expected, abs=1e-6)
    assert regularise(sp.csr_matrix(CENTRED), PATH) == pytest.approx(expected, abs=1e-6)


def test_hops_are_averaged_and_not_only_the_last_is_kept() -> None:
    """P between neighbours on the path is 1 / sqrt 2: one hop takes node 1 to both ends, the next back."""
    z, half = np.array([5.0, -0.5]), 1 / np.sqrt(2)
    averaged = upgnet_features(CENTRED, PATH, 2)
    expected = np.array([half * z / 2, z / 2, half * z / 2, 0 * z])
    assert averaged.numpy() == pytest.approx(expected, abs=1e-6)
    assert upgnet_features(CENTRED, PATH, 0).numpy() == pytest.approx(regularise(CENTRED, PATH))


def test_features_that_would_take_too_much_memory_are_refused() -> None:
    require_dense(536_870, 1_000)
    with pytest.raises(InputError, match="536,871 nodes with 1,000 features"):
        require_dense(536_871, 1_000)
