"""The chain's stationary law is the one stated, checked on all 105 trees over 5 leaves; what it keeps of its tree.

The kernel's own gains give a transition matrix that is in detailed balance with a law computed from nothing but the
trees' clusters, and a walk takes exactly the steps of that matrix: no samples.
"""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphveil.hierarchy import Dendrogram, dendrogram_of
from graphveil.hierarchy.counts import log_likelihood
from graphveil.hierarchy.markov import Chain, Layer, open_chain
from graphveil.hierarchy.mcmc_steps import (
    COUNT,
    CROSS,
    ENDS,
    LEFT,
    PARENT,
    RIGHT,
    SIZE,
    WORK,
    gains,
    rearrange,
    relabel,
)
from graphveil.privacy import SeededRandomness
from tests.hierarchy.trees import all_trees, below, trees
from tests.mechanisms.samplers.scripted import Scripted

LEAVES = 5
WEIGHT = 0.4
PUBLIC = Layer(np.array([[0, 0, 1, 3], [1, 2, 2, 4]]), np.array([True, True, True, True, True]))
PRIVATE = Layer(np.array([[0, 1, 2], [3, 4, 4]]), np.array([True, True, True, True, True]))
NOBODY = Layer(np.zeros((2, 0), np.int64), np.zeros(LEAVES, np.bool_))
FEW = Layer(np.array([[0, 1], [3, 3]]), np.array([True, True, False, True, False]))

Matrix = npt.NDArray[np.float64]


def place_of(chain: Chain) -> int:
    """The number of a chain's present tree among all of them."""
    rows = chain.tree.node[:, [LEFT, RIGHT]].tolist()

    def mask(item: int) -> int:
        return 1 << item if item < LEAVES else mask(rows[item][0]) | mask(rows[item][1])

    return numbers()[frozenset(mask(item) for item in range(LEAVES, 2 * LEAVES - 1))]


@functools.cache
def numbers() -> dict[frozenset[int], int]:
    """The number of each tree by the set of its clusters, a bit for each leaf."""
    inner = range(LEAVES, 2 * LEAVES - 1)
    return {
        frozenset(sum(1 << leaf for leaf in below(tree, node)) for node in inner): number
        for number, tree in enumerate(all_trees(LEAVES))
    }


def law(public: Layer, private: Layer, weight: float) -> Matrix:
    """exp(L_public + weight L_private) over its sum, from sets of leaves."""
    logs = []
    for tree in all_trees(LEAVES):
        total = 0.0
        for row in range(LEAVES - 1):
            left, other = below(tree, int(tree.left[row])), below(tree, int(tree.right[row]))
            for part, factor in ((public, 1.0), (private, weight)):
                edges = sum((u in left and v in other) or (v in left and u in other) for u, v in part.edges.T.tolist())
                total += factor * log_likelihood([edges], [int(part.ends[left].sum() * part.ends[other].sum())])
        logs.append(total)
    weights = np.exp(np.array(logs) - max(logs))
    return weights / weights.sum()


def transitions(public: Layer, private: Layer, weight: float) -> Matrix:
    """The chain's transition matrix from the gains that the compiled step asks for."""
    result = np.zeros((105, 105))
    for number, tree in enumerate(all_trees(LEAVES)):
        for inner, swap in itertools.product(range(LEAVES, 2 * LEAVES - 2), range(2)):
            chain = open_chain(tree, public, private, weight)
            public_gain, private_gain = gains(chain.tree, chain.edges, inner, swap)
            rearrange(chain.tree, inner, swap)
            result[number, place_of(chain)] += min(1.0, math.exp(public_gain + weight * private_gain)) / 6
        result[number, number] += 1 - result[number].sum()
    return result


@pytest.mark.slow  # long chains
@pytest.mark.parametrize(
    ("public", "private", "weight"),
    [
        pytest.param(PUBLIC, PRIVATE, WEIGHT, id="public and private"),
        pytest.param(PUBLIC, PRIVATE, 1.7, id="another temperature"),
        pytest.param(PUBLIC, NOBODY, 0.0, id="public only"),
        pytest.param(NOBODY, PRIVATE, 1.0, id="all private"),
        pytest.param(PUBLIC, FEW, 1.0, id="few private nodes"),
    ],
)
def test_detailed_balance_holds_exactly(public: Layer, private: Layer, weight: float) -> None:
    matrix, target = transitions(public, private, weight), law(public, private, weight)
    flow = target[:, None] * matrix
    np.testing.assert_allclose(flow, flow.T, rtol=1e-12, atol=1e-18)
    np.testing.assert_allclose(target @ matrix, target, rtol=1e-12)
    wrong = law(public, private, 1.02 * weight)[:, None] * matrix
    assert weight == 0 or np.abs(wrong - wrong.T).max() > 1e-6, "another law is not in balance"
    # Every tree is reached from every other, and the chain has no period: one stationary law, and it is approached.
    assert (np.linalg.matrix_power(matrix, 20) > 0).all()


@pytest.mark.parametrize(("public", "weight"), [(PUBLIC, WEIGHT), (NOBODY, 0.01)])
def test_a_coin_below_the_odds_takes_the_step_and_one_above_does_not(public: Layer, weight: float) -> None:
    near = 0
    for tree, move in itertools.product(itertools.islice(all_trees(LEAVES), 0, None, 4), range(6)):
        moved, chain = (open_chain(tree, public, PRIVATE, weight) for _ in range(2))
        public_gain, private = gains(chain.tree, chain.edges, LEAVES + move // 2, move % 2)
        rearrange(moved.tree, LEAVES + move // 2, move % 2)
        ends, odds = (place_of(chain), place_of(moved)), math.exp(public_gain + weight * private)
        if odds < 1:
            near += odds > 0.97
            for factor, steps in ((1 - 1e-9, 1), (1 + 1e-9, 0)):
                chain = open_chain(tree, public, PRIVATE, weight)
                assert chain.walk(1, Scripted([move, int(min(odds * factor, 1 - 2**-53) * 2**53) << 11])) == steps
                assert place_of(chain) == ends[steps]
        else:
            assert chain.walk(1, Scripted([move, 2**64 - 1])) == 1 and place_of(chain) == ends[1]
    assert near > 15 or public is PUBLIC


# ---- what a chain keeps is what counting anew gives, after thousands of steps, on any graph and tree ----


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
