"""Trees are checked, laid out and numbered."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from graphveil.errors import InputError
from graphveil.hierarchy import Dendrogram, balanced_dendrogram, dendrogram_of
from tests.hierarchy.trees import below, depth_of_first, trees


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
