"""What a chain keeps of its tree is what counting anew gives, after thousands of steps, on any graph and tree."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphveil.hierarchy import Dendrogram, dendrogram_of
from graphveil.hierarchy.counts import log_likelihood
from graphveil.hierarchy.markov import Chain, Layer, open_chain
from graphveil.hierarchy.mcmc_steps import COUNT, CROSS, ENDS, LEFT, PARENT, RIGHT, SIZE, WORK, relabel
from graphveil.privacy import SeededRandomness
from tests.hierarchy.trees import all_trees, trees


def drawn_layers(nodes: int, density: float, seed: int) -> tuple[Layer, Layer]:
    """Disjoint public and private edges; about three in four nodes take part in each layer."""
    rng = np.random.default_rng(seed)
    public_ends, private_ends = (rng.random(nodes) < 0.75 for _ in range(2))
    pairs = np.array(list(itertools.combinations(range(nodes), 2)), np.int64).reshape(-1, 2).T
    kind = rng.random(pairs.shape[1])
    public = pairs[:, (kind < density / 2) & public_ends[pairs].all(0)]
    private = pairs[:, (kind > 1 - density / 2) & private_ends[pairs].all(0)]
    return Layer(public, public_ends), Layer(private, private_ends)


def check(chain: Chain, layers: tuple[Layer, Layer]) -> None:
    """Compare every number in the arrays of a chain with a count made from nothing but the tree."""
    node, first, last = chain.tree.node, chain.tree.first, chain.tree.last
    leaves = (len(node) + 1) // 2
    under: dict[int, set[int]] = {}

    def walk(item: int) -> set[int]:
        under[item] = {item} if item < leaves else walk(int(node[item, LEFT])) | walk(int(node[item, RIGHT]))
        return under[item]

    walk(len(node) - 1)
    assert len(under) == len(node)
    ends = [leaf for part in layers for leaf in part.edges.ravel().tolist()]
    for item, inside in under.items():
        assert node[item, SIZE] == len(inside)
        assert node[item, WORK] == len(inside) + sum(end in inside for end in ends)
        assert {leaf for leaf in range(leaves) if first[item] <= first[leaf] <= last[item]} == inside
        for layer, part in enumerate(layers):
            assert node[item, ENDS + layer] == part.ends[sorted(inside)].sum()
    for item in range(leaves, len(node)):
        left, other = int(node[item, LEFT]), int(node[item, RIGHT])
        assert node[left, PARENT] == node[other, PARENT] == item
        for layer, part in enumerate(layers):
            count = edges_between(part, under[left], under[other])
            pairs = int(part.ends[sorted(under[left])].sum() * part.ends[sorted(under[other])].sum())
            assert node[item, COUNT + layer] == count
            np.testing.assert_allclose(chain.tree.score[item, layer], log_likelihood([count], [pairs]), atol=1e-12)
            if item != len(node) - 1 and node[item, CROSS] >= 0:
                up = int(node[item, PARENT])
                beside = int(node[up, LEFT] + node[up, RIGHT] - item)
                assert node[item, CROSS + layer] == edges_between(part, under[left], under[beside])


def edges_between(part: Layer, left: set[int], right: set[int]) -> int:
    return sum((u in left and v in right) or (v in left and u in right) for u, v in part.edges.T.tolist())


@pytest.mark.slow  # long chains
@settings(derandomize=True, deadline=None, max_examples=12)
@given(trees(), st.sampled_from([0.0, 0.1, 0.5, 1.0]), st.sampled_from([0.0, 0.05, 1.0, 20.0]), st.integers(0, 2**32))
def test_kept_counts_are_the_counts(tree: Dendrogram, density: float, weight: float, seed: int) -> None:
    """After a thousand steps, and where narrow places are dealt out anew."""
    layers = drawn_layers(tree.leaves, density, seed)
    chain = open_chain(tree, *layers, weight)
    check(chain, layers)
    chain.walk(1000, SeededRandomness(seed))
    check(chain, layers)
    for part in range(4 if tree.leaves > 2 else 0):
        relabel(chain.tree, tree.root, 0, 1 + part)
        chain.walk(10, SeededRandomness(seed + part))
        check(chain, layers)


def test_a_tree_is_read_back_the_same_whatever_its_sides_and_numbers() -> None:
    """The way to a tree must not show in it."""
    rng = np.random.default_rng(5)
    for tree in itertools.islice(all_trees(6), 0, None, 31):
        rows = rng.permutation(5)
        new = np.concatenate([np.arange(6), 6 + np.argsort(rows)])
        left, right = new[tree.left[rows]], new[tree.right[rows]]
        swap = rng.random(5) < 0.5
        other = dendrogram_of(np.where(swap, right, left), np.where(swap, left, right))
        seen = [open_chain(form, *drawn_layers(6, 0.5, 0), 1.0).dendrogram() for form in (tree, other)]
        np.testing.assert_array_equal(seen[0].left, seen[1].left)
        np.testing.assert_array_equal(seen[0].right, seen[1].right)
