"""Blocks of public facts, one count and one draw for all of them, densities from both, and edges drawn from these."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from graphveil.errors import InputError
from graphveil.hierarchy import (
    Dendrogram,
    PairTree,
    choose_blocks,
    clamped_density,
    collapse_by_scale,
    collapse_by_support,
    informed_density,
    lowest_common_ancestors,
    pair_tree,
    public_tree,
    release_counts,
    sample_edges,
    sums_below,
)
from graphveil.hierarchy.sampling import pair_numbers
from tests.hierarchy.trees import (
    all_pairs,
    all_trees,
    balanced,
    below,
    drawn_blocks,
    drawn_tree,
    planted,
    protected,
    sorted_pairs,
)


def literal_blocks(tree: Dendrogram, node: int, collapse: np.ndarray) -> list[tuple[int, bool]]:
    """The recursion as the paper writes it, stopping at a collapse."""
    if node < tree.leaves:
        return []
    if collapse[node - tree.leaves]:
        return [(node, True)]
    row = node - tree.leaves
    children = int(tree.left[row]), int(tree.right[row])
    return [(node, False), *(block for child in children for block in literal_blocks(tree, child, collapse))]


@settings(derandomize=True, deadline=None, max_examples=25)
@given(sorted_pairs(), st.integers(0, 1000))
def test_blocks_are_those_of_the_recursion_and_partition_the_protected_pairs(facts: PairTree, seed: int) -> None:
    rng = np.random.default_rng(seed)
    collapse = rng.random(facts.tree.leaves - 1) < 0.2
    blocks, pairs = choose_blocks(facts, collapse), protected(facts)
    chosen = list(zip(blocks.node.tolist(), blocks.whole.tolist(), strict=True))
    literal = literal_blocks(facts.tree, facts.tree.root, collapse)
    assert set(chosen) <= set(literal) and len(set(chosen)) == len(chosen)
    np.testing.assert_array_equal(np.bincount(blocks.of(pairs), minlength=len(blocks)), blocks.pairs)
    assert blocks.pairs.sum() == pairs.shape[1] and (blocks.pairs > 0).all()
    for block, (node, whole) in enumerate(chosen):
        inside = set(below(facts.tree, node))
        for u, v in pairs[:, blocks.of(pairs) == block].T.tolist():
            assert {u, v} <= inside
            left = set(below(facts.tree, int(facts.tree.left[node - facts.tree.leaves])))
            assert whole or (u in left) != (v in left)


def test_one_edge_moves_one_block_by_one_in_every_small_graph() -> None:
    pairs = all_pairs(np.arange(4))
    for tree in all_trees(4):
        for bits in range(8):
            blocks = choose_blocks(pair_tree(tree), np.array([bits >> row & 1 for row in range(3)], bool))
            counts = np.stack(
                [blocks.counts(pairs[:, [bool(graph >> c & 1) for c in range(6)]]) for graph in range(64)]
            )
            for graph in range(0, 64, 9):
                for column in range(6):
                    assert np.abs(counts[graph] - counts[graph ^ 1 << column]).sum() == 1


@settings(derandomize=True, deadline=None, max_examples=15)
@given(sorted_pairs(), st.integers(0, 1000))
def test_noise_is_drawn_once_for_each_block(facts: PairTree, seed: int) -> None:
    blocks, edges, calls = drawn_blocks(facts, seed), protected(facts)[:, ::2], []

    def noise(counts: np.ndarray) -> np.ndarray:
        calls.append(counts)
        return counts - 3

    released = release_counts(blocks, edges, noise=noise, share=clamped_density)
    assert len(calls) == 1 and calls[0].shape == (len(blocks),)
    np.testing.assert_array_equal(released.noisy, blocks.counts(edges) - 3)
    np.testing.assert_array_equal(released.density, clamped_density(released.noisy, blocks.pairs))
    assert ((released.density >= 0) & (released.density <= 1)).all()


def test_blocks_without_an_edge_get_noise_too() -> None:
    """A block that is exactly 0 would have no edge for certain."""
    facts = pair_tree(drawn_tree(40, np.random.default_rng(0)))
    blocks, pair = choose_blocks(facts, np.zeros(39, bool)), np.array([[3], [17]])
    for edges in (pair[:, :0], pair):
        released = release_counts(blocks, edges, noise=lambda counts: counts + 2, share=clamped_density)
        assert sorted(released.noisy.tolist()) == [2.0] * (len(blocks) - edges.shape[1]) + [3.0] * edges.shape[1]


def test_the_rule_of_the_paper_at_its_thresholds() -> None:
    facts = pair_tree(balanced(32))  # across 256 64 16 4 1, below 496 120 28 6 1
    sizes = facts.tree.sizes[32:]
    for epsilon, largest in ((0.1, 16), (0.8, 8), (1.0, 8), (20.0, 2), (20.1, 0)):
        collapse = collapse_by_scale(facts, epsilon)
        assert sizes[collapse].max(initial=0) == largest
    wide = collapse_by_scale(facts, 1.0, between=0.01, within=0.002)
    assert sizes[wide].max() == 16


def test_edges_that_are_no_protected_pairs_and_what_does_not_fit_the_tree_are_refused() -> None:
    blocks = choose_blocks(pair_tree(balanced(4), members=[0, 1]), np.zeros(3, bool))
    with pytest.raises(InputError, match="pairs, column 1: no protected pair"):
        blocks.counts(np.array([[0, 0], [1, 2]]))
    facts = pair_tree(balanced(4))
    blocks = choose_blocks(facts, np.zeros(3, bool))
    for noisy in (np.zeros(2), np.full(3, np.nan), np.zeros((3, 1))):
        with pytest.raises(InputError, match="allowed: 3 numbers"):
            release_counts(blocks, all_pairs(np.arange(1)), noise=lambda _, noisy=noisy: noisy, share=clamped_density)
    for collapse in (np.zeros(2, bool), np.zeros(3)):
        with pytest.raises(InputError, match="collapse"):
            choose_blocks(facts, collapse)
    for epsilon in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(InputError, match="epsilon"):
            collapse_by_scale(facts, epsilon)


def variance(epsilon: float) -> float:
    return float(0.5 / np.sinh(epsilon / 2) ** 2)


def communities(private: float = 0.2) -> tuple[PairTree, np.ndarray]:
    edges, _ = planted(6, 40, 0.3, 0.03)
    hidden = np.random.default_rng(3).random(edges.shape[1]) < private
    return pair_tree(public_tree(240, edges[:, ~hidden]), public=edges[:, ~hidden]), edges[:, hidden]


@settings(derandomize=True, deadline=None, max_examples=25)
@given(sorted_pairs(), st.floats(-20, 60), st.floats(0.01, 1e4), st.integers(0, 100))
def test_densities_are_shares_whatever_the_noise(facts: PairTree, shift: float, spread: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    blocks = choose_blocks(facts, rng.random(facts.tree.leaves - 1) < 0.3)
    noisy = shift + np.sqrt(spread) * rng.normal(size=len(blocks))
    density = informed_density(blocks, variance=spread)(noisy, blocks.pairs)
    assert density.shape == noisy.shape and ((density >= 0) & (density <= 1)).all()
    assert (density * blocks.pairs).sum() <= max(noisy.sum(), 0) + 1e-6


def test_with_little_noise_the_counts_speak_and_with_much_the_public_edges() -> None:
    facts, hidden = communities()
    blocks = choose_blocks(facts, collapse_by_support(facts, 1.0))
    counts = blocks.counts(hidden).astype(np.float64)
    exact = informed_density(blocks, variance=1e-9)(counts, blocks.pairs)
    np.testing.assert_allclose(exact, counts / blocks.pairs, atol=1e-6)
    public = (blocks.places - blocks.pairs) + 0.5 * len(blocks) * blocks.pairs / blocks.pairs.sum()
    vague = informed_density(blocks, variance=1e12)(counts, blocks.pairs)
    expected, wide = public / public.sum() * counts.sum() / blocks.pairs, blocks.pairs > 50
    np.testing.assert_allclose(vague[wide], expected[wide], rtol=2e-3)


def test_subtrees_with_support_stay_apart_and_clear_counts_are_believed() -> None:
    facts, _ = communities()
    blocks = choose_blocks(facts, collapse_by_support(facts, 1.0))
    counts = np.zeros(len(blocks))
    counts[np.argmax(blocks.pairs)] = 500
    density = informed_density(blocks, variance=variance(1.0))(counts, blocks.pairs)
    assert (density * blocks.pairs)[counts > 0].sum() > 450
    below = sums_below(facts.tree, facts.public_counts)
    for epsilon in (0.5, 1.0, 2.0):
        np.testing.assert_array_equal(collapse_by_support(facts, epsilon), below < 32 / epsilon)
    facts = pair_tree(balanced(10))
    blocks = choose_blocks(facts, collapse_by_support(facts, 1.0))
    assert len(blocks) == 1
    rule = informed_density(blocks, variance=2.0)
    assert rule(np.array([9.0]), blocks.pairs) == pytest.approx([0.2])
    assert rule(np.array([-3.0]), blocks.pairs) == 0


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan")])
def test_settings_are_above_zero(value: float) -> None:
    facts = pair_tree(balanced(4))
    with pytest.raises(InputError, match="variance"):
        informed_density(choose_blocks(facts, np.zeros(3, bool)), variance=value)
    with pytest.raises(InputError, match="edges"):
        collapse_by_support(facts, 1.0, edges=value)


# ---- edges drawn from densities: never a public one, none twice, and with the right law ----


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
