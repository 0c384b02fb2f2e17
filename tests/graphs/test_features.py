"""Feature matrices: the same numbers sparse and dense, and the first bad one named by its node."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_matrix

from graphveil.errors import DataError
from graphveil.graphs.features import (
    check_range,
    clip_features,
    compact_dense,
    compact_rows,
    features_from_dense,
    features_from_rows,
    features_of,
    features_tensor,
    to_rows,
)
from graphveil.graphs.parts import SparseRows

tables = arrays(np.float32, st.tuples(st.integers(1, 8), st.integers(1, 20)), elements=st.sampled_from([0, 0, 0, 1, 2]))


def dense(features: object) -> np.ndarray:
    """Features of either form as one table."""
    if isinstance(features, np.ndarray):
        return features
    assert isinstance(features, SparseRows)
    return csr_matrix((features.values, features.columns, features.starts), shape=features.shape).toarray()


@settings(max_examples=100, deadline=None)
@given(tables)
def test_both_roads_give_the_same_form_and_the_same_numbers(table: np.ndarray) -> None:
    one, other = compact_dense(table), compact_rows(csr_matrix(table))
    assert type(one) is type(other)
    assert isinstance(one, SparseRows) == (np.count_nonzero(table) < 0.1 * table.size)
    for found in (one, other):
        assert np.array_equal(dense(found), table) and dense(found).dtype == np.float32


@settings(max_examples=60, deadline=None)
@given(tables)
def test_tensors_and_arrays_are_one_thing(table: np.ndarray) -> None:
    tensor = features_tensor(compact_dense(table))
    assert torch.equal(tensor.to_dense(), torch.from_numpy(table))
    assert np.array_equal(dense(features_of(tensor)), table)
    assert np.array_equal(to_rows(tensor).toarray(), table)
    assert torch.equal(features_from_dense(table).to_dense(), features_from_rows(csr_matrix(table)).to_dense())


def test_repeated_entries_add_up_before_anything_is_decided() -> None:
    rows = csr_matrix((np.array([1.0, 1.0]), np.array([3, 3]), np.array([0, 2])), shape=(1, 20))
    assert dense(compact_rows(rows))[0, 3] == 2


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, -0.5, 1.5])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_first_bad_entry_is_named_by_node_and_column(bad: float, sparse: bool) -> None:
    table = np.zeros((5, 40), dtype=np.float32)
    table[1, 7], table[3, 2], table[3, 9], table[4, 0] = 1.0, bad, bad, bad
    features = compact_dense(table)
    assert isinstance(features, SparseRows)
    said = f"x: feature 2 of node 3 is {bad:g}; allowed: 0 to 1, no NaN"
    for given_as in (features, features_tensor(features)) if sparse else (table, torch.from_numpy(table)):
        with pytest.raises(DataError) as found:
            check_range(given_as, 0.0, 1.0, "x")
        assert str(found.value) == said


def test_absent_entries_are_zeros_and_must_be_allowed() -> None:
    features = compact_rows(csr_matrix(([1.5], ([0], [1])), shape=(3, 20)))
    with pytest.raises(DataError, match="entries absent from the sparse features are 0"):
        check_range(features, 1.0, 2.0, "x")
    check_range(features, 0.0, 2.0, "x")
    check_range(np.full((2, 3), 1.5, dtype=np.float32), 1.0, 2.0, "x")


def test_clipping_counts_what_it_changed_and_refuses_what_is_no_number() -> None:
    table = np.array([[-1.0, 0.5], [2.0, 1.0]], dtype=np.float32)
    clipped, changed = clip_features(table, 0.0, 1.0, "x")
    assert clipped is table and changed == 2
    assert table.tolist() == [[0.0, 0.5], [1.0, 1.0]]
    assert clip_features(table, 0.0, 1.0, "x")[1] == 0
    table[1, 0] = np.nan
    with pytest.raises(DataError, match="feature 0 of node 1 is nan"):
        clip_features(table, 0.0, 1.0, "x")


def test_infinite_entries_are_clipped_to_the_end_of_the_range() -> None:
    table = np.array([[np.inf, -np.inf]], dtype=np.float32)
    assert clip_features(table, -2.0, 3.0, "x")[0].tolist() == [[3.0, -2.0]]
