"""Communities inside communities: modularity by its definition, groups that stay apart, and numbers without gaps."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from graphveil.hierarchy.communities import louvain, nested_communities
from graphveil.hierarchy.worthwhile import ranked_tree
from tests.hierarchy.trees import below, planted


def adjacency(edges: np.ndarray, nodes: int) -> csr_matrix:
    """Both directions of every edge, once."""
    table = np.zeros((nodes, nodes))
    table[edges[0], edges[1]] = table[edges[1], edges[0]] = 1
    np.fill_diagonal(table, 0)
    return csr_matrix(table)


def modularity(a: csr_matrix, community: np.ndarray) -> float:
    """Newman's definition, pair by pair."""
    table, degree = a.toarray(), np.asarray(a.sum(axis=1)).ravel()
    whole = degree.sum()
    same = community[:, None] == community[None, :]
    return float(((table - np.outer(degree, degree) / whole) * same).sum() / whole)


def drawn(nodes: int, density: float, seed: int) -> csr_matrix:
    above = np.triu(np.random.default_rng(seed).random((nodes, nodes)) < density, 1)
    return csr_matrix((above | above.T).astype(float))


def test_groups_do_not_mix_and_each_has_its_own_modularity() -> None:
    """Two copies of one graph as two groups: each is divided as it is alone."""
    edges, label = planted(3, 12, 0.8, 0.03)
    alone = adjacency(edges, 36)
    both = adjacency(np.concatenate([edges, edges + 36], axis=1), 72)
    groups = np.repeat([0, 1], 36)
    found = louvain(both, groups, np.random.default_rng(1))
    assert not set(found[:36].tolist()) & set(found[36:].tolist())
    for part in (found[:36], found[36:]):
        assert modularity(alone, part) == pytest.approx(modularity(alone, label))


@settings(max_examples=12, deadline=None)
@given(st.integers(2, 40), st.floats(0.0, 0.4), st.integers(2, 12), st.integers(0, 100))
def test_partitions_lie_inside_each_other(nodes: int, density: float, smallest: int, seed: int) -> None:
    # No edges, one group.
    assert len(nested_communities(csr_matrix((nodes, nodes)), smallest=2, rng=np.random.default_rng(0))) == 1
    levels = nested_communities(drawn(nodes, density, seed), smallest=smallest, rng=np.random.default_rng(seed))
    assert levels[0].tolist() == [0] * nodes
    for outer, inner in pairwise(levels):
        assert inner.max() > outer.max(), "a level that divides nothing is none"
        sizes = np.bincount(outer)
        for group in range(inner.max() + 1):
            parents = set(outer[inner == group].tolist())
            assert len(parents) == 1
        small = np.flatnonzero(sizes < smallest)
        assert all(len(set(inner[outer == group].tolist())) == 1 for group in small)


@settings(max_examples=15, deadline=None)
@given(st.integers(2, 40), st.integers(1, 6), st.integers(0, 500))
def test_groups_are_subtrees_whose_leaves_stand_by_rank(nodes: int, many: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    rank = draw.permutation(nodes)
    groups = np.unique(draw.integers(0, many, size=nodes), return_inverse=True)[1]
    tree = ranked_tree(rank, groups)
    wanted = sorted(range(nodes), key=lambda node: (groups[node], rank[node]))
    assert below(tree, tree.root) == wanted
    subtrees = {tuple(below(tree, node)) for node in range(tree.nodes)}
    for group in range(groups.max() + 1):
        assert tuple(node for node in wanted if groups[node] == group) in subtrees
