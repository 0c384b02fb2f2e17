"""Products with learned weights against dense arrays: values, and slopes by numerical differences and by autograd."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from graphveil.aggregation import Support, WeightedMatrix, normalised_weights
from graphveil.errors import InputError
from tests.aggregation.formulas import dense_normalised

N, COLUMNS = 14, 3
NONE = torch.zeros(2, 0, dtype=torch.int64)
LAWS = [("gcn", False), ("gcn", True), ("mean", False), ("mean", True)]


def edges(kind: str) -> Tensor:
    """Edges among the first 12 nodes; 12 and 13 are isolated."""
    one_way = torch.randint(0, 12, (2, 30), generator=torch.Generator().manual_seed(0))
    return torch.cat([one_way, one_way.flip(0)], dim=1) if kind == "undirected" else one_way


def drawn(*shape: int, seed: int = 1) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def dense_of(support: Support, values: Tensor) -> Tensor:
    """The matrix [receiver, sender]."""
    empty = torch.zeros(support.num_nodes, support.num_nodes, dtype=values.dtype)
    return empty.index_put((support.target.long(), support.source.long()), values)


@pytest.mark.parametrize("kind", ["directed", "undirected"])
def test_a_support_lists_each_edge_once_in_both_orientations(kind: str) -> None:
    support = Support.of(torch.cat([edges(kind), edges(kind)[:, :4]], dim=1), N)
    pairs = {(s, t) for s, t in edges(kind).T.tolist() if s != t}
    entries = support.edge_index.T.tolist()
    assert [tuple(pair) for pair in entries] == sorted(pairs, key=lambda pair: (pair[1], pair[0]))
    assert support.symmetric == (kind == "undirected")
    turned = support.edge_index[:, support.turned.long()]
    assert turned.T.tolist() == sorted(entries)
    assert torch.equal(turned[1].int(), support.back_target)
    assert torch.diff(support.back_starts).tolist() == torch.bincount(turned[0], minlength=N).tolist()
    if support.symmetric:
        assert torch.equal(turned, support.edge_index.flip(0))


def test_a_support_with_self_loops_has_one_at_every_node() -> None:
    support = Support.of(edges("undirected"), N, self_loops=True)
    assert support.source[support.source == support.target].tolist() == list(range(N))
    assert support.entries == Support.of(edges("undirected"), N).entries + N
    assert support.symmetric


@pytest.mark.parametrize("columns", [1, 7, 8, 13])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dots_of_any_width_equal_the_written_out_ones(columns: int, dtype: torch.dtype) -> None:
    support = Support.of(edges("directed"), N)
    left, right = drawn(N, columns).to(dtype), drawn(N, columns, seed=2).to(dtype)
    expected = (left[support.target.long()] * right[support.source.long()]).sum(1)
    assert torch.allclose(support.dots(left, right), expected)


def test_dots_are_the_same_where_rows_are_gathered_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphveil.aggregation.support._GATHERED", 5 * COLUMNS)
    support, left, right = Support.of(edges("directed"), N), drawn(N, COLUMNS), drawn(N, COLUMNS, seed=2)
    assert support.entries % 5 != 0
    assert torch.allclose(replace(support, pattern=None).dots(left, right), support.dots(left, right))


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("kind", ["directed", "undirected"])
def test_products_and_their_slopes(kind: str, diagonal: bool) -> None:
    support = Support.of(edges(kind), N)
    values, x, added = drawn(support.entries), drawn(N, COLUMNS), drawn(N) if diagonal else None
    expected = dense_of(support, values) @ x + (0 if added is None else added[:, None] * x)
    assert torch.allclose(WeightedMatrix(support, values, added) @ x, expected)
    leaves = [leaf.requires_grad_() for leaf in (values, x, added) if leaf is not None]
    assert gradcheck(lambda v, x, *d: WeightedMatrix(support, v, *d) @ x, leaves)


@pytest.mark.parametrize(("law", "self_loops"), LAWS)
@pytest.mark.parametrize("kind", ["directed", "undirected"])
def test_slopes_equal_dense_autograd_with_weights_and_rows_of_0(kind: str, law: str, self_loops: bool) -> None:
    """At 0 no difference quotient from both sides exists; dense autograd gives the right-hand slope."""
    support = Support.of(edges(kind), N)
    start, g = drawn(support.entries), drawn(N, COLUMNS, seed=3)
    start[::4] = 0
    start[(support.target == 5) | (support.source == 5)] = 0
    ours, theirs = start.clone().requires_grad_(), start.clone().requires_grad_()
    x = drawn(N, COLUMNS)
    product = normalised_weights(support, ours, law, self_loops=self_loops) @ x
    expected = dense_normalised(dense_of(support, theirs), law, self_loops) @ x
    assert torch.allclose(product, expected)
    (product * g).sum().backward()
    (expected * g).sum().backward()
    # Where only one end has weight the entry's slope is 0 both ways, where none has, by agreement.
    assert torch.allclose(ours.grad, theirs.grad)
    assert bool(ours.grad.isfinite().all())


@pytest.mark.parametrize(("law", "self_loops"), LAWS)
def test_a_graph_without_edges(law: str, self_loops: bool) -> None:
    support = Support.of(NONE, 3)
    weights, x = torch.zeros(0, requires_grad=True), torch.ones(3, 2, requires_grad=True)
    y = normalised_weights(support, weights, law, self_loops=self_loops) @ x
    y.sum().backward()
    assert torch.equal(y, torch.full((3, 2), float(self_loops)))
    assert weights.grad.shape == (0,)
    assert torch.equal(x.grad, torch.full((3, 2), float(self_loops)))


def test_shapes_that_do_not_fit_are_refused() -> None:
    support = Support.of(edges("directed"), N)
    with pytest.raises(InputError, match=r"cannot multiply a \(14, 14\) matrix with a tensor \(13, 2\)"):
        WeightedMatrix(support, torch.ones(support.entries)) @ torch.ones(13, 2)
    with pytest.raises(InputError, match=r"a node that does not exist; allowed: node numbers 0\.\.13"):
        Support.of(torch.tensor([[0], [14]]), N)
