"""A tree of public edges: communities inside communities, places for nodes without edges, and any graph has one."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from graphveil.errors import InputError
from graphveil.hierarchy import Dendrogram, public_tree
from graphveil.hierarchy.community_tree import (
    louvain,
    nearest_groups,
    nested_communities,
    random_projection,
    ranked_tree,
    similar_order,
)
from tests.hierarchy.trees import all_pairs, below, depth_of_first, planted


def subtrees(tree: Dendrogram) -> set[frozenset[int]]:
    return {frozenset(below(tree, node)) for node in range(tree.nodes)}


@pytest.mark.parametrize(("groups", "size", "inside", "seed"), [(6, 30, 0.5, 0), (4, 60, 0.4, 6)])
def test_planted_communities_are_subtrees(groups: int, size: int, inside: float, seed: int) -> None:
    """Beside uneven degrees too."""
    edges, label = planted(groups, size, inside, 0.02, seed=seed)
    members = subtrees(public_tree(groups * size, edges))
    assert all(frozenset(np.flatnonzero(label == group).tolist()) in members for group in range(groups))


def test_communities_inside_communities_are_found() -> None:
    edges, label = planted(4, 40, 0.7, 0.15)
    both = np.concatenate([edges, edges + 160, [[0], [160]]], axis=1)
    members = subtrees(public_tree(320, both))
    assert frozenset(range(160)) in members and frozenset(range(160, 320)) in members
    assert all(frozenset(np.flatnonzero(label == group).tolist()) in members for group in range(4))


def test_the_same_seed_gives_the_same_tree_and_no_public_edges_a_flat_one() -> None:
    edges, _ = planted(5, 20, 0.3, 0.1)
    tree, again = public_tree(100, edges), public_tree(100, edges[:, ::-1][::-1])
    other = public_tree(100, edges, seed=1)
    assert (tree.left == again.left).all() and (tree.right == again.right).all()
    assert (tree.left != other.left).any()
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


def test_groups_do_not_mix_and_each_has_its_own_modularity() -> None:
    """Two copies of one graph as two groups: each is divided as it is alone."""
    edges, label = planted(3, 12, 0.8, 0.03)
    alone = adjacency(edges, 36)
    both = adjacency(np.concatenate([edges, edges + 36], axis=1), 72)
    groups = np.repeat([0, 1], 36)
    communities = louvain(both, groups, np.random.default_rng(1))
    assert not set(communities[:36].tolist()) & set(communities[36:].tolist())
    for part in (communities[:36], communities[36:]):
        assert modularity(alone, part) == pytest.approx(modularity(alone, label))


@settings(max_examples=12, deadline=None)
@given(st.integers(2, 40), st.floats(0.0, 0.4), st.integers(2, 12), st.integers(0, 100))
def test_partitions_lie_inside_each_other(nodes: int, density: float, smallest: int, seed: int) -> None:
    # No edges, one group.
    assert len(nested_communities(csr_matrix((nodes, nodes)), smallest=2, rng=np.random.default_rng(0))) == 1
    above = np.triu(np.random.default_rng(seed).random((nodes, nodes)) < density, 1)
    drawn = csr_matrix((above | above.T).astype(float))
    levels = nested_communities(drawn, smallest=smallest, rng=np.random.default_rng(seed))
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


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_rows_come_out_with_length_1_sparse_and_dense_alike() -> None:
    features = np.abs(rng(1).normal(size=(300, 40)))
    features[7] = 0
    rows = random_projection(features, 300, rng())
    lengths = np.linalg.norm(rows, axis=1)
    assert rows.shape == (300, 16)
    assert lengths[7] == 0 and np.allclose(np.delete(lengths, 7), 1)
    # Across the boundary of the blocks in which rows are taken.
    features = np.zeros((66_000, 5))
    features[np.arange(66_000), np.arange(66_000) % 5] = 1 + np.arange(66_000) % 3
    dense, other = (random_projection(each, 66_000, rng(3)) for each in (features, csr_matrix(features)))
    assert np.allclose(dense, other)
    assert np.allclose(dense[65_530:65_545], dense[:15])  # row i is like row i + 15 wherever the block ends


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_a_node_goes_to_the_group_whose_mean_is_likest(seed: int) -> None:
    """Against one product at a time; a group of nobody but isolated nodes takes none."""
    draw = rng(seed)
    rows = draw.normal(size=(30, 4))
    groups = draw.integers(0, 5, size=30)
    groups[:5] = np.arange(5)
    isolated = np.flatnonzero((draw.random(30) < 0.4) | (groups == 3))
    connected = np.setdiff1d(np.arange(30), isolated)
    if not len(connected):
        return
    homes = nearest_groups(rows, groups, isolated)
    means = {group: rows[connected[groups[connected] == group]].mean(axis=0) for group in np.unique(groups[connected])}
    for node, group in zip(isolated, homes, strict=True):
        assert group == max(means, key=lambda group: rows[node] @ means[group])
        assert group != 3


def test_a_line_of_nodes_is_cut_where_it_should_be() -> None:
    """Points on a line, shuffled: every block of 16 ranks holds 16 neighbours on it, from one end or the other."""
    place = rng(2).permutation(128)
    rows = np.stack([place / 10, np.zeros(128)], axis=1)
    ranks = similar_order(rows, np.arange(128))
    some = similar_order(rows, place[:50])
    assert sorted(ranks.tolist()) == list(range(128)) and sorted(some.tolist()) == list(range(50))
    blocks = [sorted(place[ranks // 16 == block].tolist()) for block in range(8)]
    assert sorted(blocks) == [list(range(16 * block, 16 * block + 16)) for block in range(8)]
