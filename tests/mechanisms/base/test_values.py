"""Reading private values in every form, and clipping them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from graphveil.errors import InputError
from graphveil.mechanisms import clip_to_range
from graphveil.mechanisms.base.values import open_rows, open_values
from tests.mechanisms.made import by_every_road

quiet_csr = pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")


@quiet_csr
@settings(max_examples=15, deadline=None)
@given(
    values=arrays(np.float64, (5, 4), elements=st.sampled_from([0.0, 0.0, 0.0, 0.25, -1.0, 7.0])),
    columns=arrays(np.int64, (3, 2), elements=st.integers(0, 3)),
)
def test_every_reader_reads_the_same(values: np.ndarray, columns: np.ndarray) -> None:
    for form in by_every_road(torch.from_numpy(values)).values():
        rows = open_rows(form, 4)
        assert rows.shape == (5, 4)
        assert np.array_equal(rows.block(1, 4), values[1:4])
        assert np.array_equal(rows.at(1, 4, columns), np.take_along_axis(values[1:4], columns, 1))


@quiet_csr
def test_every_reader_names_the_first_bad_entry() -> None:
    values = torch.zeros(6, 5, dtype=torch.float64)
    values[2, 1] = 0.5
    for wrong in (math.nan, math.inf, -math.inf, 1.0001, -0.0001):
        values[4, 3] = wrong
        for form in by_every_road(values).values():
            with pytest.raises(InputError, match=r"row 4, column 3.*(NaN|below|above)"):
                open_values(form, 5, 0.0, 1.0)


def test_an_entry_that_is_not_stored_is_zero_and_checked_too_and_no_message_repeats_a_value() -> None:
    with pytest.raises(InputError) as caught:
        open_values(np.array([[0.0, 123.456]]), 2, 0.0, 1.0)
    assert "123" not in str(caught.value)
    assert "clip_to_range" in str(caught.value)
    full = scipy.sparse.csr_matrix(np.array([[2.0, 1.0], [1.0, 3.0]]))
    open_values(full, 2, 1.0, 3.0)
    holed = scipy.sparse.csr_matrix(np.array([[2.0, 1.0], [1.0, 0.0]]))
    with pytest.raises(InputError, match=r"row 1, column 1.*below"):
        open_values(holed, 2, 1.0, 3.0)


@quiet_csr
def test_unsorted_and_repeated_sparse_columns_are_put_in_order() -> None:
    starts, columns, entries = np.array([0, 2, 4]), np.array([2, 0, 1, 1]), np.array([0.5, 0.25, 0.1, 0.2])
    expected = np.array([[0.25, 0, 0.5], [0, 0.3, 0]])
    unsorted = scipy.sparse.csr_matrix((entries, columns, starts), shape=(2, 3))
    parts = torch.from_numpy(starts), torch.from_numpy(columns), torch.from_numpy(entries)
    tensor = torch.sparse_csr_tensor(*parts, (2, 3), check_invariants=False)
    for form in (unsorted, tensor):
        assert np.allclose(open_rows(form, 3).block(0, 2), expected)
    assert unsorted.nnz == 4


def test_all_real_types_are_read_and_files_in_place(tmp_path: Path) -> None:
    for dtype in (np.float16, np.float32, np.int8, np.uint8, np.int64, bool):
        assert open_values(np.eye(3, dtype=dtype), 3, 0.0, 1.0).block(0, 3).tolist() == np.eye(3).tolist()
    # 0.1 as a 32-bit number is a little more than 0.1 and still inside a declared range that ends at 0.1.
    open_values(np.full((2, 2), 0.1, dtype=np.float32), 2, 0.0, 0.1)
    values = np.random.default_rng(1).random((50, 3), dtype=np.float32)
    np.save(tmp_path / "values.npy", values)
    mapped = np.load(tmp_path / "values.npy", mmap_mode="r")
    assert np.array_equal(open_values(mapped, 3, 0.0, 1.0).block(10, 20), values[10:20])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[0.0, 0.0]], "values are list"),
        (np.zeros(2), "two dimensions"),
        (np.zeros((2, 2, 2)), "two dimensions"),
        (np.zeros((3, 3)), "3 columns; allowed: 2"),
        (np.zeros((2, 2), dtype=complex), "complex128"),
        (np.array([["a", "b"]]), "real numbers"),
        (torch.zeros(2, 2, dtype=torch.bfloat16), "bfloat16"),
        (torch.zeros(2, 2).to_sparse(), "sparse_coo"),
    ],
)
def test_what_is_no_matrix_of_numbers_is_refused(values: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_rows(values, 2)


@quiet_csr
def test_clipping_moves_values_to_the_ends_and_keeps_the_form() -> None:
    values = torch.tensor([[-5.0, 0.0, 0.5], [math.inf, 0.0, -math.inf]])
    expected = [[-1.0, 0.0, 0.5], [2.0, 0.0, -1.0]]
    for form in by_every_road(values).values():
        clipped: Any = clip_to_range(form, -1.0, 2.0)
        assert open_rows(clipped, 3).block(0, 2).tolist() == expected
        assert scipy.sparse.issparse(clipped) == scipy.sparse.issparse(form)
        assert torch.is_tensor(clipped) == torch.is_tensor(form)
    assert values[0, 0] == -5.0


@quiet_csr
def test_clipping_refuses_nan_a_bad_range_and_a_range_without_zero_for_sparse_values() -> None:
    for form in by_every_road(torch.tensor([[0.0, math.nan]])).values():
        with pytest.raises(InputError, match=r"row 0, column 1.*NaN"):
            clip_to_range(form, 0.0, 1.0)
    for low in (1.0, math.nan):
        with pytest.raises(InputError, match="low below high"):
            clip_to_range(np.zeros((1, 1)), low, 0.0)
    with pytest.raises(InputError, match="with 0 in it"):
        clip_to_range(scipy.sparse.csr_matrix((1, 1)), 1.0, 2.0)
