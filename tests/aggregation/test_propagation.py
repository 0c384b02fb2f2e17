"""Propagation against the dense formula on graphs small enough to print.

0 - 1 - 2       4 is isolated
 \\ | /
   3
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from graphveil.aggregation import adjacency, normalised, propagate
from graphveil.errors import InputError

UNDIRECTED = torch.tensor([[0, 1, 1, 2, 0, 3, 1, 3, 2, 3], [1, 0, 2, 1, 3, 0, 3, 1, 3, 2]])
DIRECTED = torch.tensor([[0, 1, 3, 3, 2], [1, 2, 0, 2, 1]])
GRAPHS = {"undirected": UNDIRECTED, "directed": DIRECTED}


def adjacent(edges: Tensor, weights: Tensor | float = 1.0) -> Tensor:
    """Row = receiver, column = sender."""
    return torch.zeros(5, 5).index_put((edges[1], edges[0]), torch.as_tensor(weights))


def dense(a: Tensor, normalisation: str, self_loops: bool) -> Tensor:
    """The formula written out: D_in^-1/2 A D_out^-1/2 or D_in^-1 A, 0 where a degree is 0."""
    if self_loops:
        a = a + torch.eye(len(a))
    received, sent = a.sum(1), a.sum(0)
    if normalisation == "mean":
        return torch.nan_to_num(a / received[:, None], nan=0.0)
    return torch.nan_to_num(a / received.sqrt()[:, None] / sent.sqrt()[None, :], nan=0.0)


def matrix(edges: Tensor, nodes: int, normalisation: str, self_loops: bool = False) -> Tensor:
    return normalised(edges, nodes, normalisation, self_loops=self_loops) @ torch.eye(nodes)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("normalisation", ["gcn", "mean"])
@pytest.mark.parametrize("hops", [0, 1, 2, 5])
def test_propagating_k_times_is_the_kth_matrix_power(graph: str, normalisation: str, hops: int) -> None:
    edges = GRAPHS[graph]
    h = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    expected = torch.linalg.matrix_power(dense(adjacent(edges), normalisation, False), hops) @ h
    assert torch.allclose(propagate(normalised(edges, 5, normalisation), h, hops), expected, atol=1e-6)


def test_a_nodes_own_value_does_not_reach_itself_in_one_hop() -> None:
    """No self-loops unless asked for, not even when the edge list has them; duplicates count once."""
    looped = torch.cat([UNDIRECTED, torch.tensor([[0, 4], [0, 4]]), UNDIRECTED[:, :3]], dim=1)
    assert torch.equal(matrix(looped, 5, "gcn"), matrix(UNDIRECTED, 5, "gcn"))
    assert torch.equal(matrix(UNDIRECTED, 5, "gcn").diagonal(), torch.zeros(5))
    none = torch.zeros(2, 0, dtype=torch.int64)
    for hops in (0, 2):
        assert torch.equal(propagate(normalised(none, 3), torch.ones(3, 2), hops), torch.full((3, 2), float(hops == 0)))


@pytest.mark.parametrize("edge", [(0, 5), (5, 0), (-1, 0), (0, -1)])
def test_edges_to_nodes_that_do_not_exist_are_refused(edge: tuple[int, int]) -> None:
    with pytest.raises(InputError, match=r"a node that does not exist; allowed: node numbers 0\.\.4"):
        normalised(torch.tensor([[edge[0]], [edge[1]]]), 5)


def weights_of(edges: Tensor, *, symmetric: bool) -> Tensor:
    """One weight in (0, 1) per edge; the two directions of a pair share theirs if `symmetric`."""
    table = torch.rand(5, 5, generator=torch.Generator().manual_seed(3))
    if symmetric:
        table = torch.minimum(table, table.T)
    return table[edges[1], edges[0]]


@pytest.mark.parametrize("weighting", ["none", "symmetric", "of each direction"])
@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize("normalisation", ["gcn", "mean"])
@pytest.mark.parametrize("graph", GRAPHS)
def test_normalised_equals_the_dense_formula(graph: str, normalisation: str, self_loops: bool, weighting: str) -> None:
    edges = GRAPHS[graph]
    assert torch.equal(torch.from_numpy(adjacency(edges, 5).toarray()), adjacent(edges))
    weights = None if weighting == "none" else weights_of(edges, symmetric=weighting == "symmetric")
    a = adjacent(edges, 1.0 if weights is None else weights)
    p = normalised(edges, 5, normalisation, self_loops=self_loops, weights=weights)
    assert torch.allclose(p @ torch.eye(5), dense(a, normalisation, self_loops), atol=1e-6)
    assert torch.allclose(p.backward.times(torch.eye(5)), dense(a, normalisation, self_loops).T, atol=1e-6)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (torch.full((10,), -0.1), "negative or not finite"),
        (torch.full((10,), torch.nan), "negative or not finite"),
        (torch.full((10,), torch.inf), "negative or not finite"),
        (torch.ones(9), "one for each of 10 edges"),
    ],
)
def test_bad_weights_are_refused(weights: Tensor, message: str) -> None:
    with pytest.raises(InputError, match=message):
        normalised(UNDIRECTED, 5, weights=weights)
