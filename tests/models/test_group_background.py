"""A weight on every pair, as a few single ones and groups: the same numbers as the dense matrix it stands for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphveil.errors import InputError
from graphveil.models.group_background import SoftLinks, soft_links

GROUPS = 3


@dataclass(frozen=True)
class Made:
    """Drawn links of a few people, and the dense matrix A[target, source] that they stand for."""

    links: SoftLinks
    dense: np.ndarray

    @property
    def n(self) -> int:
        return len(self.dense)


def made(n: int, *, directed: bool, seed: int) -> Made:
    rng = np.random.default_rng(seed)
    background = rng.random((GROUPS, GROUPS))
    if not directed:
        background = (background + background.T) / 2
    group = rng.integers(0, GROUPS, n)
    dense = background.T[group][:, group]
    np.fill_diagonal(dense, 0)
    source, target = np.triu_indices(n, 1) if not directed else np.nonzero(~np.eye(n, dtype=bool))
    named = rng.permutation(len(source))[: n // 2 + 1]
    source, target, weights = source[named], target[named], rng.random(len(named[: len(source)]))
    dense[target, source] = weights
    if not directed:
        dense[source, target] = weights
    sizes = torch.from_numpy(np.bincount(group, minlength=GROUPS))
    parts = (torch.from_numpy(part) for part in (source, target, weights, background, group))
    return Made(soft_links(*parts, sizes, directed=directed), dense)


drawn = st.builds(
    lambda n, directed, seed: made(n, directed=directed, seed=seed),
    st.integers(2, 12),
    st.booleans(),
    st.integers(0, 999),
)


def times(matrix: object, n: int) -> np.ndarray:
    """All entries of an operator, by its product with the identity."""
    found: np.ndarray = (matrix @ torch.eye(n)).numpy()  # type: ignore[operator]
    return found


@settings(max_examples=60, deadline=None)
@given(drawn)
def test_degrees_are_those_of_the_dense_matrix(one: Made) -> None:
    received, sent = one.links.degrees()
    assert received.numpy() == pytest.approx(one.dense.sum(axis=1))
    assert sent.numpy() == pytest.approx(one.dense.sum(axis=0))


@settings(max_examples=60, deadline=None)
@given(drawn, st.booleans(), st.sampled_from(["gcn", "mean"]))
def test_the_normalised_matrix_is_the_dense_one(one: Made, loops: bool, how: str) -> None:
    a = one.dense + loops * np.eye(one.n)
    received, sent = a.sum(axis=1), a.sum(axis=0)
    wanted = a / received[:, None] if how == "mean" else a / np.sqrt(received)[:, None] / np.sqrt(sent)
    matrix = one.links.normalised(how, self_loops=loops)
    assert matrix.shape == (one.n, one.n)
    assert times(matrix, one.n) == pytest.approx(wanted, abs=1e-5)


def test_slopes_go_through_the_product() -> None:
    one = made(6, directed=True, seed=4)
    matrix = one.links.normalised("mean")
    x = torch.randn(6, 2, generator=torch.Generator().manual_seed(1), requires_grad=True)
    seed = torch.arange(12.0).view(6, 2)
    (matrix @ x).backward(seed)
    wanted = torch.from_numpy(one.dense / one.dense.sum(axis=1, keepdims=True)).float().T @ seed
    assert torch.allclose(x.grad, wanted, atol=1e-4)


def test_backbones_read_what_they_read_of_edges_and_who_receives_nothing_gets_zeros() -> None:
    empty, zero = torch.zeros(0, dtype=torch.int64), torch.zeros(1, 1, dtype=torch.float64)
    group, sizes = torch.zeros(4, dtype=torch.int64), torch.tensor([4])
    nothing = soft_links(empty, empty, empty.double(), zero, group, sizes, directed=False)
    assert not times(nothing.normalised("gcn"), 4).any()
    assert times(nothing.normalised("gcn", self_loops=True), 4).tolist() == np.eye(4).tolist()
    links = made(4, directed=False, seed=0).links
    assert links.structure("mlp") is None
    with pytest.raises(InputError, match="model gat cannot read a weight on every pair; allowed: sage, gcn, mlp"):
        links.structure("gat")
    with pytest.raises(InputError):
        links.normalised() @ torch.ones(3, 2)
    for model, matrix in (("sage", links.normalised("mean")), ("gcn", links.normalised("gcn", self_loops=True))):
        assert np.array_equal(times(links.structure(model), 4), times(matrix, 4))
