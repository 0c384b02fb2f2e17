"""Places for nodes without public edges: projections that keep angles, the likest group, and like beside like."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from graphveil.errors import InputError
from graphveil.hierarchy.similar import nearest_groups, random_projection, similar_order


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_rows_come_out_with_length_1_sparse_and_dense_alike() -> None:
    features = np.abs(rng(1).normal(size=(300, 40)))
    features[7] = 0
    found = random_projection(features, 300, rng())
    lengths = np.linalg.norm(found, axis=1)
    assert found.shape == (300, 16)
    assert lengths[7] == 0 and np.allclose(np.delete(lengths, 7), 1)
    # Across the boundary of the blocks in which rows are taken.
    features = np.zeros((66_000, 5))
    features[np.arange(66_000), np.arange(66_000) % 5] = 1 + np.arange(66_000) % 3
    one, other = (random_projection(each, 66_000, rng(3)) for each in (features, csr_matrix(features)))
    assert np.allclose(one, other)
    assert np.allclose(one[65_530:65_545], one[:15])  # row i is like row i + 15 wherever the block ends


@pytest.mark.parametrize(
    ("features", "said"),
    [
        (np.ones((4, 2)), r"features have shape \[4, 2\]; allowed: 5 rows"),
        (np.ones(5), r"shape \[5\]"),
        (np.full((5, 2), np.nan), "public features: features that are not numbers; allowed: finite numbers"),
        (np.full((5, 2), np.inf), "not numbers"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value encountered")
def test_what_is_no_table_of_numbers_is_refused(features: np.ndarray, said: str) -> None:
    with pytest.raises(InputError, match=said):
        random_projection(features, 5, rng())


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_a_node_goes_to_the_group_whose_mean_is_likest(seed: int) -> None:
    """Against one product at a time; a group of nobody but isolated nodes takes none."""
    draw = rng(seed)
    rows = draw.normal(size=(30, 4))
    groups = draw.integers(0, 5, size=30)
    groups[:5] = np.arange(5)
    isolated = np.flatnonzero((draw.random(30) < 0.4) | (groups == 3))
    others = np.setdiff1d(np.arange(30), isolated)
    if not len(others):
        return
    found = nearest_groups(rows, groups, isolated)
    means = {group: rows[others[groups[others] == group]].mean(axis=0) for group in np.unique(groups[others])}
    for node, group in zip(isolated, found, strict=True):
        assert group == max(means, key=lambda one: rows[node] @ means[one])
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
