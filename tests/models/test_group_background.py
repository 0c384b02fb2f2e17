"""A weight on every pair, as a few single ones and groups: the same numbers as the dense matrix it stands for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

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


def test_who_receives_nothing_gets_a_row_of_zeros() -> None:
    empty = torch.zeros(0, dtype=torch.int64)
    nothing = soft_links(
        empty,
        empty,
        torch.zeros(0, dtype=torch.float64),
        torch.zeros(1, 1, dtype=torch.float64),
        torch.zeros(4, dtype=torch.int64),
        torch.tensor([4]),
        directed=False,
    )
    assert not times(nothing.normalised("gcn"), 4).any()
    assert times(nothing.normalised("gcn", self_loops=True), 4).tolist() == np.eye(4).tolist()


@pytest.mark.parametrize(("model", "how", "loops"), [("sage", "mean", False), ("gcn", "gcn", True)])
def test_backbones_read_what_they_read_of_edges(model: str, how: str, loops: bool) -> None:
    one = made(7, directed=False, seed=2)
    assert np.array_equal(
        times(one.links.structure(model), 7),
        times(one.links.normalised(how, self_loops=loops), 7),
    )


def test_a_backbone_that_looks_at_single_edges_is_refused() -> None:
    links = made(4, directed=False, seed=0).links
    assert links.structure("mlp") is None
    with pytest.raises(InputError, match="model gat cannot read a weight on every pair; allowed: sage, gcn, mlp"):
        links.structure("gat")


def test_another_device_gives_the_same_matrix() -> None:
    one = made(5, directed=False, seed=9)
    matrix = one.links.normalised()
    assert np.array_equal(times(matrix.to("cpu"), 5), times(matrix, 5))


def test_memory_is_that_of_the_named_pairs() -> None:
    """20,000 people: 4 * 10^8 pairs stand behind fewer than 100,000 stored numbers."""
    n = 20_000
    generator = torch.Generator().manual_seed(0)
    source = torch.arange(n - 1)
    group = torch.randint(0, 5, (n,), generator=generator)
    background = torch.full((5, 5), 0.001, dtype=torch.float64)
    weights = torch.ones(n - 1, dtype=torch.float64)
    links = soft_links(source, source + 1, weights, background, group, torch.bincount(group), directed=False)
    product = links.normalised() @ torch.ones(n, 1)
    assert links.single.nnz < 100_000

    def degree(node: int) -> float:
        ends = 1 if node in (0, n - 1) else 2
        return ends + (n - 1 - ends) * 0.001

    middle = 5000
    near = sum(1 / degree(node) ** 0.5 for node in (middle - 1, middle + 1))
    far = sum(0.001 / degree(node) ** 0.5 for node in range(n) if abs(node - middle) > 1)
    assert float(product[middle]) == pytest.approx((near + far) / degree(middle) ** 0.5, rel=1e-4)


@pytest.fixture
def rows() -> Tensor:
    return torch.ones(3, 2)


def test_a_product_with_another_number_of_rows_is_refused(rows: Tensor) -> None:
    with pytest.raises(InputError):
        made(5, directed=True, seed=1).links.normalised() @ rows
