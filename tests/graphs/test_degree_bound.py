"""Bounded degrees: what one node's list can change, measured on worst cases, and what is not promised."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from graphveil.errors import InputError
from graphveil.graphs import BoundedEdges, keep_lists, require_degree
from graphveil.privacy import assume
from graphveil.privacy.statement.unit import NODE, NODE_AND_OWN_LIST

NONE = torch.zeros(2, 0, dtype=torch.int64)


def undirected(pairs: list[tuple[int, int]]) -> Tensor:
    both = [edge for i, j in pairs for edge in ((i, j), (j, i))]
    return torch.tensor(both, dtype=torch.int64).reshape(-1, 2).T


def hub(users: int) -> Tensor:
    """The graph on which GAP's sampler fails: `users` people, all linked to node 0 and to node 1."""
    return undirected([(end, user) for user in range(2, users + 2) for end in (0, 1)])


def edge_set(bound: BoundedEdges) -> set[tuple[int, int]]:
    return {(s, t) for s, t in bound.edge_index.T.tolist()}


def without_node(index: Tensor, node: int) -> Tensor:
    return index[:, (index != node).all(dim=0)]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Tensor, int]:
    nodes = draw(st.integers(2, 12))
    pair = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1))
    index = undirected(draw(st.lists(pair, max_size=50)))
    return index, nodes


@settings(deadline=None, max_examples=150)
@given(graphs(), st.integers(1, 5), st.integers(0, 3))
def test_one_list_changes_at_most_d_entries_in_as_many_rows(graph: tuple[Tensor, int], degree: int, salt: int) -> None:
    """Checklist item 9, on graphs with self-loops, duplicates and isolated nodes, for every node."""
    index, nodes = graph
    whole = edge_set(keep_lists(index, nodes, degree, salt=salt))
    listed = {(s, t) for s, t in index.T.tolist() if s != t}
    assert whole <= listed
    for node in range(nodes):
        mine = [edge for edge in whole if edge[0] == node]
        assert len(mine) == min(degree, sum(edge[0] == node for edge in listed))
        less = edge_set(keep_lists(index[:, index[0] != node], nodes, degree, salt=salt))
        changed = whole ^ less
        assert len(changed) <= degree
        assert len({target for _, target in changed}) == len(changed)
        assert {source for source, _ in changed} <= {node}


def test_taking_a_hub_off_all_lists_is_not_promised() -> None:
    """The witness against sqrt(D) for whole nodes: everybody who kept the hub keeps node 1 instead."""
    index, degree = hub(30), 1
    bound = keep_lists(index, 32, degree)
    gained = edge_set(keep_lists(without_node(index, 0), 32, degree)) - edge_set(bound)
    assert len({edge for edge in gained if edge[1] == 1}) > 5
    assert bound.protects == NODE_AND_OWN_LIST
    with pytest.raises(InputError, match="has more than the declared 1 edge"):
        require_degree(index, 32, degree)


def test_every_node_is_cut_and_none_is_favoured() -> None:
    """The last node too (GAP's sampler skips it); over salts, each neighbour is kept equally often."""
    nodes, degree = 40, 3
    complete = undirected([(i, j) for i in range(nodes) for j in range(i)])
    counts = np.zeros((nodes, nodes))
    for salt in range(300):
        source, target = keep_lists(complete, nodes, degree, salt=salt).edge_index.numpy()
        assert np.bincount(source, minlength=nodes).tolist() == [degree] * nodes
        np.add.at(counts, (source, target), 1)
    off = counts[~np.eye(nodes, dtype=bool)]
    expected = 300 * degree / (nodes - 1)
    # 1,560 Poisson-like counts with mean 23: none beyond 6 deviations (chance 3e-6), and no excess spread.
    assert abs(off - expected).max() < 6 * np.sqrt(expected)
    assert off.var() == pytest.approx(expected * (1 - degree / (nodes - 1)), rel=0.25)


def test_the_kept_edges_are_the_same_everywhere() -> None:
    """A public hash: pinned, and blind to the order of edges and to other nodes."""
    index = undirected([(0, j) for j in range(1, 9)])
    first = edge_set(keep_lists(index, 9, 3))
    assert first == edge_set(keep_lists(index.flip(1), 9, 3)) == edge_set(keep_lists(index, 5000, 3))
    assert first != edge_set(keep_lists(index, 9, 3, salt=1))
    assert sorted(t for s, t in first if s == 0) == [1, 4, 5]
    # A shorter list is the beginning of a longer one.
    assert edge_set(keep_lists(index, 9, 2)) <= first


def test_a_kept_promise_changes_nothing() -> None:
    index = undirected([(0, 1), (1, 2), (2, 3)])
    bound = require_degree(index, 4, 2)
    assert edge_set(bound) == edge_set(keep_lists(index, 4, 9))
    assert bound.rule == "declared" and bound.protects == NODE
    assert bound.assumes == (assume("degree-promised", degree=2),)
    for node in range(4):
        changed = edge_set(bound) ^ edge_set(require_degree(without_node(index, node), 4, 2))
        assert len({edge for edge in changed if edge[1] != node}) <= 2


def test_a_broken_promise_is_refused_at_either_end_without_details() -> None:
    star = torch.tensor([[1, 2, 3], [0, 0, 0]])
    for index in (star, star.flip(0)):
        with pytest.raises(InputError) as refused:
            require_degree(index, 4, 2)
        assert "3" not in str(refused.value)


def test_bad_arguments_are_refused() -> None:
    for degree in (0, -1, 1.5, True):
        for rule in (keep_lists, require_degree):
            with pytest.raises(InputError, match="degree is"):
                rule(NONE, 3, degree)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="does not exist"):
        keep_lists(torch.tensor([[0], [3]]), 3, 1)
    assert edge_set(keep_lists(NONE, 3, 1)) == edge_set(require_degree(NONE, 0, 1)) == set()
