"""Means over those who answered: a missing report is no evidence, and never a vector of zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor

from graphveil.aggregation import SparseMatrix, build_inputs, normalised, propagate
from graphveil.aggregation.inputs import regularised, require_dense, upgnet_features
from graphveil.aggregation.propagation import Adjacency
from graphveil.errors import InputError

N, OFFSET = 200, 0.5
#: Columns that make each form the cheaper one: few are propagated dense, many commuted.
FORMS = {"dense": 3, "commuted": 400}


def edges(seed: int = 0) -> Tensor:
    """A random graph whose last node is isolated."""
    source, target = np.random.default_rng(seed).integers(0, N - 1, (2, 600))
    return torch.from_numpy(np.stack([np.concatenate([source, target]), np.concatenate([target, source])]))


@pytest.fixture(scope="module")
def p() -> SparseMatrix:
    return normalised(edges(), N)


def who(share: float = 0.3, seed: int = 1) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).random(N) < share)


def rows(columns: int, answered: Tensor, seed: int = 2) -> sp.csr_matrix:
    """One signed number a row of who answered, as multi-bit reports give."""
    rng, reporting = np.random.default_rng(seed), np.flatnonzero(answered.numpy())
    values = rng.choice([-3.0, 3.0], len(reporting)).astype(np.float32)
    return sp.csr_matrix((values, (reporting, rng.integers(0, columns, len(reporting)))), shape=(N, columns))


@pytest.mark.parametrize("hops", [0, 4])
@pytest.mark.parametrize("form", FORMS)
def test_where_everybody_answered_every_bit_is_as_without_a_mask(p: SparseMatrix, form: str, hops: int) -> None:
    everyone = torch.ones(N, dtype=torch.bool)
    matrix, weight = rows(FORMS[form], everyone), torch.eye(FORMS[form])
    plain, masked = (
        build_inputs(matrix, p, hops, width=8, offset=OFFSET, reported=mask).linear(weight) for mask in (None, everyone)
    )
    assert torch.equal(plain, masked)
    nobody = ~everyone  # whom no report reaches is left in the middle of the range
    left = build_inputs(0 * matrix, p, hops, width=8, offset=OFFSET, reported=nobody).linear(weight)
    assert torch.allclose(left, (propagate(p, torch.ones(N, 1), hops) * OFFSET).expand(-1, FORMS[form]))


def test_people_who_are_alike_look_so_however_few_of_them_answered(p: SparseMatrix) -> None:
    answered, value = who(0.5), 0.9
    matrix = sp.csr_matrix(np.where(answered.numpy()[:, None], np.float32(value - OFFSET), 0))
    built = build_inputs(matrix, p, 2, width=8, offset=OFFSET, reported=answered).linear(torch.eye(1))
    reached = (propagate(p, answered.float()[:, None], 2) > 0).squeeze()
    assert int(reached.sum()) > N // 2
    assert torch.allclose(built[reached], (value * propagate(p, torch.ones(N, 1), 2))[reached], atol=1e-5)


def test_upgnet_averages_those_who_answered() -> None:
    a, answered = Adjacency.of(edges(), N), who(0.5)
    value = np.where(answered.numpy()[:, None], np.float32(1.5), np.float32(0))
    mean = a.to_scipy("mean")
    heard = np.asarray(mean @ answered.numpy().astype(np.float32)) > 0
    averaged: Any = upgnet_features(sp.csr_matrix(value), a, 0, answered).numpy()
    assert np.allclose(averaged[heard], 1.0, atol=1e-5)  # 1.5 + 0.5, less the threshold of 1
    assert not np.allclose(upgnet_features(sp.csr_matrix(value), a, 0).numpy()[heard], 1.0, atol=0.05)


#: 0 - 1 - 2, and 3 alone.
PATH = Adjacency.of(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), 4)
CENTRED = np.array([[9.5, -4.5], [0.2, -0.2], [1.5, 0.5], [50.0, 50.0]], np.float32)


def test_small_averages_become_zero_and_others_lose_the_threshold() -> None:
    """Node 1 has the averages (5.5 + 0.5, -2 + 0.5), its neighbours (0.7, 0.3), which are within 1."""
    expected = np.array([[0, 0], [5.0, -0.5], [0, 0], [0, 0]])
    assert regularised(CENTRED, PATH) == pytest.approx(expected, abs=1e-6)
    assert regularised(sp.csr_matrix(CENTRED), PATH) == pytest.approx(expected, abs=1e-6)


def test_hops_are_averaged_and_not_only_the_last_is_kept() -> None:
    """P between neighbours on the path is 1 / sqrt 2: one hop takes node 1 to both ends, the next back."""
    z, half = np.array([5.0, -0.5]), 1 / np.sqrt(2)
    averaged = upgnet_features(CENTRED, PATH, 2)
    expected = np.array([half * z / 2, z / 2, half * z / 2, 0 * z])
    assert averaged.numpy() == pytest.approx(expected, abs=1e-6)
    assert upgnet_features(CENTRED, PATH, 0).numpy() == pytest.approx(regularised(CENTRED, PATH))


def test_features_that_would_take_too_much_memory_are_refused() -> None:
    require_dense(536_870, 1_000)
    with pytest.raises(InputError, match="536,871 nodes with 1,000 features"):
        require_dense(536_871, 1_000)
