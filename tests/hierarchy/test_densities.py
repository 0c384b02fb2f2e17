"""Densities that weigh noisy counts against public edges: what they keep, and where they go with epsilon."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphveil.errors import InputError
from graphveil.hierarchy import (
    PairTree,
    choose_blocks,
    collapse_by_support,
    informed_density,
    pair_tree,
    public_tree,
    sums_below,
)
from tests.hierarchy.trees import balanced, planted, sorted_pairs


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
    assert len(choose_blocks(facts, collapse_by_support(facts, 1.0, edges=8))) > len(
        choose_blocks(facts, collapse_by_support(facts, 1.0))
    )
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
