"""Trees are checked and laid out; counts by lowest common ancestor, against slow walks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from graphveil.errors import InputError
from graphveil.hierarchy import (
    Dendrogram,
    PairTree,
    balanced_dendrogram,
    count_edges,
    dendrogram_of,
    lowest_common_ancestors,
    pair_tree,
    sums_below,
)
from graphveil.hierarchy.kernels import GAPS
from tests.hierarchy.trees import (
    all_pairs,
    below,
    caterpillar,
    depth_of_first,
    drawn_tree,
    protected,
    slow_ancestor,
    sorted_pairs,
    trees,
)


@settings(derandomize=True, deadline=None, max_examples=20)
@given(trees())
def test_every_subtree_is_one_stretch_of_the_row(tree: Dendrogram) -> None:
    layout = tree.layout
    assert sorted(layout.order) == list(range(tree.leaves))
    np.testing.assert_array_equal(layout.order[layout.place], np.arange(tree.leaves))
    for node in range(tree.nodes):
        leaves = below(tree, node)
        assert layout.order[layout.start[node] : layout.stop[node]].tolist() == leaves
        assert tree.sizes[node] == len(leaves)
        if node >= tree.leaves:
            left = below(tree, int(tree.left[node - tree.leaves]))
            assert layout.order[layout.start[node] : layout.middle[node]].tolist() == left
            assert tree.parent[tree.left[node - tree.leaves]] == tree.parent[tree.right[node - tree.leaves]] == node
    assert tree.parent[tree.root] == -1


@pytest.mark.parametrize("leaves", [1, 2, 5, 8, 100])
def test_balanced_trees_are_flat_and_keep_the_row(leaves: int) -> None:
    order = np.random.default_rng(0).permutation(leaves)
    tree = balanced_dendrogram(order)
    np.testing.assert_array_equal(tree.layout.order, order)
    assert depth_of_first(tree) <= np.ceil(np.log2(leaves))


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        ([0, 3], [1], "2 left children and 1 right"),
        ([0, 1], [1, 2], "node 1 has 2 parents"),
        ([0, 3], [0, 2], "node 0 has 2 parents"),
        ([0, 4], [1, 2], "inner node 4 has child 4; allowed: 0 to 3"),
        ([3, 0], [1, 2], "inner node 3 has child 3; allowed: 0 to 2"),
        ([-1, 3], [1, 2], "inner node 3 has child -1"),
        ([0.0, 3.0], [1.0, 2.0], "type float64"),
        ([[0, 3]], [[1, 2]], r"shape \[1, 2\]"),
    ],
)
def test_what_is_no_tree_is_refused(left: list[int], right: list[int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Dendrogram(np.array(left), np.array(right))


def test_children_and_rows_that_make_no_tree_are_refused() -> None:
    for left, right in (([3, 0], [1, 2]), ([0, 0], [1, 2]), ([4, 3], [0, 1]), ([0, 9], [1, 2]), ([0], [1, 2])):
        with pytest.raises(InputError, match="dendrogram"):
            dendrogram_of(np.array(left), np.array(right))
    with pytest.raises(InputError, match="make no tree"):
        dendrogram_of(np.array([0, 6, 5, 2]), np.array([1, 8, 3, 4]))  # a loop beside the tree
    for row in ([0, 0], [1, 2], []):
        with pytest.raises(InputError, match="dendrogram"):
            balanced_dendrogram(row)


@settings(derandomize=True, deadline=None, max_examples=15)
@given(trees(smallest=2))
def test_ancestors_are_those_of_two_walks_up(tree: Dendrogram) -> None:
    pairs = all_pairs(np.arange(tree.leaves))
    expected = [slow_ancestor(tree, u, v) for u, v in pairs.T.tolist()]
    np.testing.assert_array_equal(lowest_common_ancestors(tree, pairs), expected)
    np.testing.assert_array_equal(lowest_common_ancestors(tree, pairs[::-1]), expected)


@settings(derandomize=True, deadline=None, max_examples=15)
@given(sorted_pairs())
def test_protected_pairs_are_counted_once(facts: PairTree) -> None:
    tree = facts.tree
    np.testing.assert_array_equal(facts.pairs, count_edges(tree, protected(facts)))
    np.testing.assert_array_equal(facts.public_counts, count_edges(tree, facts.public))
    private = set(facts.row.tolist())
    for node in range(tree.nodes):
        leaves = [leaf for leaf in below(tree, node) if leaf in private]
        assert facts.row[facts.start[node] : facts.stop[node]].tolist() == leaves
        if node >= tree.leaves:
            inside = [u in leaves and v in leaves for u, v in protected(facts).T.tolist()]
            assert facts.pairs_below[node - tree.leaves] == sum(inside)
    for leaf in private:
        assert facts.row[facts.place[leaf]] == leaf


def test_sums_below_are_those_of_the_subtree() -> None:
    tree = drawn_tree(12, np.random.default_rng(3))
    values, leaves = np.arange(11) ** 2, [set(below(tree, 12 + row)) for row in range(11)]
    expected = [sum(value for value, inside in zip(values, leaves, strict=True) if inside <= own) for own in leaves]
    np.testing.assert_array_equal(sums_below(tree, values), expected)


def test_deep_trees_and_leaves_many_blocks_apart_have_the_ancestors_of_two_walks_up() -> None:
    tree = caterpillar(200_000)
    pairs = np.random.default_rng(0).integers(0, 100_000, (2, 100_000))
    pairs[1] += 100_000
    np.testing.assert_array_equal(lowest_common_ancestors(tree, pairs), tree.leaves + pairs[1] - 1)
    draw = np.random.default_rng(5)
    tree, first = drawn_tree(40 * GAPS, draw), draw.integers(0, 40 * GAPS - 1, 500)
    pairs = np.stack([first, draw.integers(first + 1, 40 * GAPS)])
    expected = [slow_ancestor(tree, u, v) for u, v in pairs.T.tolist()]
    np.testing.assert_array_equal(lowest_common_ancestors(tree, pairs), expected)


def test_what_is_no_pair_and_no_member_is_refused() -> None:
    for pairs, message in (
        (np.array([[0, 1], [1, 1]]), "pairs, column 1: not a pair of nodes; allowed: ids 0 to 3, two different ones"),
        (np.array([[0], [4]]), "column 0"),
        (np.array([[-1], [2]]), "column 0"),
        (np.array([[0.0], [1.0]]), "float64"),
        (np.array([0, 1]), r"shape \(2,\)"),
    ):
        with pytest.raises(InputError, match=message):
            lowest_common_ancestors(caterpillar(4), pairs)
    for members in ([0, 0], [4], [-1], [[0, 1]], [0.5]):
        with pytest.raises(InputError, match="members"):
            pair_tree(caterpillar(4), members=members)
    with pytest.raises(InputError, match="listed twice"):
        pair_tree(caterpillar(4), public=np.array([[0, 1], [1, 0]]))
