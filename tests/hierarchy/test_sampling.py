"""Edges drawn from densities: never a public one, none twice, and with the right law."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from graphveil.errors import InputError
from graphveil.hierarchy import PairTree, choose_blocks, lowest_common_ancestors, pair_tree, sample_edges
from graphveil.hierarchy.sampling import pair_numbers
from tests.hierarchy.trees import all_pairs, balanced, drawn_blocks, protected, sorted_pairs

FALSE_ALARM = 1e-6


@settings(derandomize=True, deadline=None, max_examples=25)
@given(sorted_pairs(), st.integers(0, 1000))
def test_pairs_of_a_block_are_numbered_without_gaps(facts: PairTree, seed: int) -> None:
    blocks, pairs = drawn_blocks(facts, seed), all_pairs(facts.row)
    rows = lowest_common_ancestors(facts.tree, pairs) - facts.tree.leaves
    pairs = pairs[:, blocks.owner[rows] >= 0]
    numbers = pair_numbers(blocks, pairs)
    assert sorted(numbers) == list(range(int(blocks.places.sum())))
    np.testing.assert_array_equal(numbers, pair_numbers(blocks, pairs[::-1]))


@settings(derandomize=True, deadline=None, max_examples=25)
@given(sorted_pairs(), st.integers(0, 1000), st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]))
def test_edges_are_protected_pairs_each_once(facts: PairTree, seed: int, density: float) -> None:
    blocks = drawn_blocks(facts, seed)
    edges = sample_edges(blocks, np.full(len(blocks), density), np.random.default_rng(seed))
    drawn, allowed = ({tuple(pair) for pair in pairs.T.tolist()} for pairs in (edges, protected(facts)))
    assert len(drawn) == edges.shape[1] and drawn <= allowed
    assert edges.T.tolist() == sorted(edges.T.tolist())
    full, pairs = np.random.default_rng(seed).random(len(blocks)) < 0.5, protected(facts)
    edges = sample_edges(blocks, full.astype(float), np.random.default_rng(seed))
    assert edges.T.tolist() == sorted(pairs[:, full[blocks.of(pairs)]].T.tolist()), "each block has its own"


def test_all_graphs_come_with_the_chance_of_their_pairs() -> None:
    """Of four nodes all 64 graphs, in 4,000 draws: pairs are independent of each other; 15% more edges are refused."""
    blocks, pairs = choose_blocks(pair_tree(balanced(4)), np.ones(3, bool)), all_pairs(np.arange(4)).T.tolist()
    rng, seen = np.random.default_rng(11), np.zeros(64)
    for _ in range(4_000):
        seen[sum(1 << pairs.index(pair) for pair in sample_edges(blocks, np.array([0.4]), rng).T.tolist())] += 1
    size = np.bitwise_count(np.arange(64, dtype=np.uint8))
    for density, accepted in ((0.4, True), (0.46, False)):
        chances = density**size * (1 - density) ** (6 - size)
        assert (stats.chisquare(seen, 4_000 * chances).pvalue > FALSE_ALARM) == accepted


@pytest.mark.parametrize("density", [np.array([1.5]), np.array([-0.1]), np.array([np.nan]), np.zeros(2)])
def test_densities_are_shares(density: np.ndarray) -> None:
    blocks = choose_blocks(pair_tree(balanced(4)), np.ones(3, bool))
    with pytest.raises(InputError, match="allowed: 1 numbers from 0 to 1"):
        sample_edges(blocks, density, np.random.default_rng(0))
