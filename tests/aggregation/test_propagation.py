"""Propagation against the dense formula: on graphs small enough to print, and on a larger one.

0 - 1 - 2       4 is isolated
 \\ | /
   3
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from graphveil.aggregation import ReceiverRows, adjacency, normalised, propagate
from graphveil.aggregation.propagation import Adjacency, Normalisation
from graphveil.errors import InputError
from tests.aggregation.formulas import dense_normalised

UNDIRECTED = torch.tensor([[0, 1, 1, 2, 0, 3, 1, 3, 2, 3], [1, 0, 2, 1, 3, 0, 3, 1, 3, 2]])
DRAWN = torch.unique(torch.randint(0, 300, (2, 9_000), generator=torch.Generator().manual_seed(0)), dim=1)
GRAPHS = {
    "undirected": (UNDIRECTED, 5),
    "directed": (torch.tensor([[0, 1, 3, 3, 2], [1, 2, 0, 2, 1]]), 5),
    "large": (DRAWN[:, DRAWN[0] != DRAWN[1]], 301),
}


def dense(edges: Tensor, nodes: int, weights: Tensor | None = None) -> Tensor:
    """Row = receiver, column = sender."""
    return torch.zeros(nodes, nodes).index_put((edges[1], edges[0]), torch.tensor(1.0) if weights is None else weights)


@pytest.mark.parametrize("weighting", ["none", "symmetric", "of each direction"])
@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize("law", ["gcn", "mean"])
@pytest.mark.parametrize("graph", GRAPHS)
def test_normalised_equals_the_dense_formula(graph: str, law: Normalisation, self_loops: bool, weighting: str) -> None:
    """One hop and its transpose, and k hops by the k-th power."""
    edges, nodes = GRAPHS[graph]
    table = torch.rand(nodes, nodes, generator=torch.Generator().manual_seed(3))
    table = torch.minimum(table, table.T) if weighting == "symmetric" else table
    weights = None if weighting == "none" else table[edges[1], edges[0]]
    p = normalised(edges, nodes, law, self_loops=self_loops, weights=weights)
    expected = dense_normalised(dense(edges, nodes, weights), law, self_loops)
    assert torch.allclose(p @ torch.eye(nodes), expected, atol=1e-6)
    assert torch.allclose(p.backward.times(torch.eye(nodes)), expected.T, atol=1e-6)
    h = torch.randn(nodes, 3, generator=torch.Generator().manual_seed(0))
    for hops in (0, 2, 5):
        assert torch.allclose(propagate(p, h, hops), torch.linalg.matrix_power(expected, hops) @ h, atol=1e-5)
    held = Adjacency.of(edges, nodes)
    if weights is None:
        for form in (adjacency(edges, nodes), ReceiverRows.of(edges, nodes).to_scipy()):
            assert np.array_equal(form.toarray(), dense(edges, nodes))
        if not self_loops:
            assert np.array_equal(held.to_scipy(law).data, p.forward.values)


def test_a_nodes_own_value_does_not_reach_itself_in_one_hop() -> None:
    """No self-loops unless asked for, not even when the edge list has them; duplicates count once."""
    looped = torch.cat([UNDIRECTED, torch.tensor([[0, 4], [0, 4]]), UNDIRECTED[:, :3]], dim=1)
    found, plain = (normalised(edges, 5) @ torch.eye(5) for edges in (looped, UNDIRECTED))
    assert torch.equal(found, plain) and not plain.diagonal().any()
    none = torch.zeros(2, 0, dtype=torch.int64)
    for hops in (0, 2):
        assert torch.equal(propagate(normalised(none, 3), torch.ones(3, 2), hops), torch.full((3, 2), float(hops == 0)))


@pytest.mark.parametrize("edge", [(0, 5), (5, 0), (-1, 0), (0, -1)])
def test_edges_to_nodes_that_do_not_exist_are_refused(edge: tuple[int, int]) -> None:
    with pytest.raises(InputError, match=r"a node that does not exist; allowed: node numbers 0\.\.4"):
        normalised(torch.tensor([[edge[0]], [edge[1]]]), 5)


@pytest.mark.parametrize("bad", [-0.1, torch.nan, torch.inf, None])
def test_bad_weights_are_refused(bad: float | None) -> None:
    with pytest.raises(InputError, match="one for each of 10 edges" if bad is None else "negative or not finite"):
        normalised(UNDIRECTED, 5, weights=torch.ones(9) if bad is None else torch.full((10,), bad))
