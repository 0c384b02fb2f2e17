"""Propagation against the dense formula, on graphs small enough to print and a larger one, and its sorted entries.

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
from graphveil.aggregation.propagation import Adjacency, Entries, Normalisation
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
    links = Adjacency.of(edges, nodes)
    if weights is None:
        for form in (adjacency(edges, nodes), ReceiverRows.of(edges, nodes).to_scipy()):
            assert np.array_equal(form.toarray(), dense(edges, nodes))
        if not self_loops:
            assert np.array_equal(links.to_scipy(law).data, p.forward.values)


def test_a_nodes_own_value_does_not_reach_itself_in_one_hop() -> None:
    """No self-loops unless asked for, not even when the edge list has them; duplicates count once."""
    looped = torch.cat([UNDIRECTED, torch.tensor([[0, 4], [0, 4]]), UNDIRECTED[:, :3]], dim=1)
    with_loops, plain = (normalised(edges, 5) @ torch.eye(5) for edges in (looped, UNDIRECTED))
    assert torch.equal(with_loops, plain) and not plain.diagonal().any()
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


def test_pairs_out_of_order_between_two_parts_are_sorted() -> None:
    """The check reads 65,536 pairs at once: what is wrong at the seam of two parts has to be seen."""
    rows = np.arange(1 << 17)
    rows[[(1 << 16) - 1, 1 << 16]] = rows[[1 << 16, (1 << 16) - 1]]
    assert np.array_equal(Entries.of(rows, rows, 1 << 17).columns, np.arange(1 << 17))
    twin = np.arange(1 << 17)
    twin[1 << 16] = twin[(1 << 16) - 1]
    assert len(Entries.of(twin, twin, 1 << 17).columns) == (1 << 17) - 1


def test_weights_move_with_their_pairs_and_zeros_leave() -> None:
    weights = np.array([0.5, 0.25, 0.0, 0.125], np.float32)
    entries = Entries.of(np.array([2, 0, 1, 2]), np.array([1, 2, 0, 0]), 3, weights)
    assert entries.starts.tolist() == [0, 1, 1, 3]
    assert entries.columns.tolist() == [2, 0, 1]
    assert entries.weights is not None and entries.weights.tolist() == [0.25, 0.125, 0.5]
    twice, none = np.array([1, 1]), np.zeros(0, np.int64)
    with pytest.raises(InputError, match="a weighted edge is listed twice"):
        Entries.of(twice, twice, 2, np.array([0.5, 0.0], np.float32))
    with pytest.raises(InputError, match=r"2147483648 rows; allowed: below 2\^31"):
        Entries.of(none, none, 2**31)
    pair = torch.tensor([[0, 1], [1, 0]])
    assert Adjacency.of(pair, 2, weights=torch.tensor([0.5, 0.5])).symmetric
    assert not Adjacency.of(pair, 2, weights=torch.tensor([0.5, 0.25])).symmetric


@pytest.mark.parametrize("nodes", [1, 2, 17, 300])
def test_entries_are_the_set_of_their_pairs(nodes: int) -> None:
    """Whatever the order of the list: as given, from its end, sorted."""
    rows, columns = np.random.default_rng(nodes).integers(0, nodes, (2, 4 * nodes))
    expected = sorted(set(zip(rows.tolist(), columns.tolist(), strict=True)))
    by_columns, by_rows = np.lexsort((rows, columns)), np.lexsort((columns, rows))
    for order in (slice(None), slice(None, None, -1), by_columns, by_rows):
        entries = Entries.of(rows[order], columns[order], nodes)
        listed = np.repeat(np.arange(nodes), entries.counts)
        assert list(zip(listed.tolist(), entries.columns.tolist(), strict=True)) == expected


def test_the_largest_node_number_keeps_its_place() -> None:
    """A key has its row above 32 bits of column: the largest column may not reach into the row."""
    last = 2**20
    entries = Entries.of(np.array([last, 0, last]), np.array([last, last, 0]), last + 1)
    assert entries.columns.tolist() == [last, 0, last]
    assert np.flatnonzero(entries.counts).tolist() == [0, last]


def some(nodes: int = 20_000) -> Entries:
    """Rows of several parts, some of them empty and one of them long."""
    rows, columns = np.random.default_rng(1).integers(0, nodes, (2, 5 * nodes))
    rows[::9] = 77
    rows[rows % 5 == 1] = 3
    return Entries.of(rows, columns, nodes)


def test_rows_are_read_from_their_ends_and_tables_at_rows_and_at_columns() -> None:
    entries = some()
    backwards = entries.backwards(entries.columns)
    for row in (0, 1, 3, 77, 8_191, 8_192, 19_999):
        part = slice(entries.starts[row], entries.starts[row + 1])
        assert backwards[part].tolist() == entries.columns[part].tolist()[::-1]
    table = np.random.default_rng(2).random(len(entries.counts)).astype(np.float32)
    assert np.array_equal(entries.at_columns(table), table[entries.columns])
    assert np.array_equal(entries.at_rows(table), table[np.repeat(np.arange(len(table)), entries.counts)])
