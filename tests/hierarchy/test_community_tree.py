"""A tree of public edges: it finds planted communities, is the same for the same seed, and takes any graph."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from graphveil.errors import InputError
from graphveil.hierarchy import Dendrogram, public_tree
from tests.hierarchy.trees import all_pairs, below, depth_of_first, planted


def subtrees(tree: Dendrogram) -> set[frozenset[int]]:
    return {frozenset(below(tree, node)) for node in range(tree.nodes)}


@pytest.mark.parametrize(("groups", "size", "inside", "seed"), [(6, 30, 0.5, 0), (4, 60, 0.4, 6)])
def test_planted_communities_are_subtrees(groups: int, size: int, inside: float, seed: int) -> None:
    """Beside uneven degrees too."""
    edges, label = planted(groups, size, inside, 0.02, seed=seed)
    found = subtrees(public_tree(groups * size, edges))
    assert all(frozenset(np.flatnonzero(label == group).tolist()) in found for group in range(groups))


def test_communities_inside_communities_are_found() -> None:
    edges, label = planted(4, 40, 0.7, 0.15)
    both = np.concatenate([edges, edges + 160, [[0], [160]]], axis=1)
    found = subtrees(public_tree(320, both))
    assert frozenset(range(160)) in found and frozenset(range(160, 320)) in found
    assert all(frozenset(np.flatnonzero(label == group).tolist()) in found for group in range(4))


def test_the_same_seed_gives_the_same_tree_and_no_public_edges_a_flat_one() -> None:
    edges, _ = planted(5, 20, 0.3, 0.1)
    one, again, other = public_tree(100, edges), public_tree(100, edges[:, ::-1][::-1]), public_tree(100, edges, seed=1)
    assert (one.left == again.left).all() and (one.right == again.right).all()
    assert (one.left != other.left).any()
    assert depth_of_first(public_tree(1_000, np.zeros((2, 0), np.int64))) <= 11


@settings(derandomize=True, deadline=None, max_examples=20)
@given(st.integers(1, 40), st.floats(0, 1), st.integers(0, 100))
def test_any_graph_has_a_tree(nodes: int, density: float, seed: int) -> None:
    pairs = all_pairs(np.arange(nodes))
    tree = public_tree(nodes, pairs[:, np.random.default_rng(seed).random(pairs.shape[1]) < density**3])
    assert tree.leaves == nodes and sorted(below(tree, tree.root)) == list(range(nodes))


def test_communities_that_an_order_by_degree_does_better_are_dropped() -> None:
    rng = np.random.default_rng(5)
    pairs = all_pairs(np.arange(300))
    weight = rng.pareto(2.0, 300) + 0.5
    edges = pairs[:, rng.random(pairs.shape[1]) < np.minimum(0.03 * weight[pairs[0]] * weight[pairs[1]], 1)]
    degree = np.bincount(edges.ravel(), minlength=300)
    order = degree[public_tree(300, edges).layout.order]
    assert (order == np.sort(degree)[::-1]).all()


def featured(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Public edges of a planted graph of which 40 nodes have none, labels, 0/1 features, and who those are."""
    edges, label = planted(4, 50, 0.4, 0.02, seed=seed)
    rng = np.random.default_rng(seed)
    isolated = rng.permutation(200)[:40]
    edges = edges[:, ~np.isin(edges, isolated).any(0)]
    features = (rng.random((200, 80)) < np.where(np.arange(80) // 20 == label[:, None], 0.5, 0.05)).astype(np.float32)
    return edges, label, features, isolated


@pytest.mark.parametrize("sparse", [False, True])
def test_nodes_without_public_edges_go_where_their_like_are(sparse: bool) -> None:
    edges, label, features, isolated = featured()
    tree = public_tree(200, edges, features=csr_matrix(features) if sparse else features)
    top = tree.layout.place * 4 // 200
    shares = [np.bincount(top[label == group], minlength=4).max() for group in range(4)]
    assert sum(shares) > 170
    assert len({int(top[node]) for node in isolated}) == 4


def test_without_features_they_stand_together_and_zeros_do_no_harm() -> None:
    edges, _, features, isolated = featured()
    assert frozenset(isolated.tolist()) in subtrees(public_tree(200, edges))
    tree = public_tree(200, edges, features=0 * features)
    assert sorted(below(tree, tree.root)) == list(range(200))


@pytest.mark.parametrize("features", [np.zeros((3, 2)), np.full((4, 2), np.nan), np.zeros(4)])
def test_features_are_a_finite_row_for_each_node_and_edges_join_two(features: np.ndarray) -> None:
    with pytest.raises(InputError, match="features"):
        public_tree(4, np.array([[0], [1]]), features=features)
    with pytest.raises(InputError, match="the public edges, column 0"):
        public_tree(4, np.array([[2], [2]]))
