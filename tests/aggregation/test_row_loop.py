"""The compiled sums of rows, against whole numbers that float32 adds up exactly."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from graphveil.aggregation import from_scipy
from graphveil.aggregation.row_loop import add_rows, widened
from graphveil.engine import Blocks, LocalEngine

DRAWN = np.random.default_rng(0)
MATRIX = sp.random_array(
    (40, 30), density=0.2, rng=DRAWN, data_sampler=lambda size: DRAWN.integers(-9, 9, size)
).tocsr()


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("columns", [1, 2, 3, 4, 7, 8, 9, 16, 17, 31, 32, 33, 48, 49, 65])
def test_each_row_is_the_sum_of_its_entries(columns: int, kind: type) -> None:
    x = DRAWN.integers(-100, 100, (30, columns))
    matrix = MATRIX.indptr.astype(kind), MATRIX.indices.astype(np.int32), MATRIX.data.astype(np.float32)
    found = np.full((40, columns), np.nan, np.float32)
    add_rows(*matrix, x.astype(np.float32), found)
    assert np.array_equal(found, MATRIX @ x)


@pytest.mark.parametrize(("columns", "width"), [(1, 4), (4, 4), (5, 8), (17, 32), (33, 48)])
def test_rows_of_large_arrays_lie_in_few_lines_of_the_cache(columns: int, width: int) -> None:
    x = np.ones(((1 << 22) // columns + 1, columns), np.float32)
    wide = widened(x)
    assert wide.shape == (len(x), width) and np.array_equal(wide[:, :columns], x)
    assert wide is x if columns == width else wide.ctypes.data % 64 == 0 and not wide[:, columns:].any()
    assert widened(x[:3]).shape == (3, columns) and np.array_equal(widened(x[:3], often=True), wide[:3])
    turned = widened(x[:3].T)
    assert np.array_equal(turned, x[:3].T) and turned.flags.c_contiguous


@pytest.mark.parametrize("kind", [torch.float64, torch.int64])
def test_other_numbers_are_multiplied_as_the_numbers_that_they_are(kind: torch.dtype) -> None:
    x = torch.arange(16).repeat(30, 1)
    found = from_scipy(MATRIX).forward.times(x.to(kind))
    assert found.dtype == torch.float32
    assert np.array_equal(found, MATRIX @ x.numpy())


def test_threads_give_the_bits_of_one() -> None:
    rows, columns = 40_000, 16
    assert len(Blocks.of(rows, columns)) > 1
    p = from_scipy(sp.random_array((rows, rows), density=1e-4, rng=DRAWN, dtype=np.float32))
    x, before = torch.randn(rows, columns), torch.get_num_threads()
    found = []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            found.append(p.power(x, 2))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*found) and torch.equal(p.on(LocalEngine(2)).power(x, 2), found[0])


def test_a_row_is_rounded_once_an_entry_and_in_the_order_of_its_entries() -> None:
    """As a fused multiply-add rounds: the product is exact in 64 bits, and only its sum with the rest goes to 32."""
    drawn = np.random.default_rng(1)
    entries, columns = 200, 13
    senders = drawn.integers(0, 30, entries).astype(np.int32)
    weights, x = drawn.normal(size=entries).astype(np.float32), drawn.normal(size=(30, columns)).astype(np.float32)
    found = np.empty((1, columns), np.float32)
    add_rows(np.array([0, entries]), senders, weights, x, found)
    total = np.zeros(columns, np.float32)
    for sender, weight in zip(senders, weights, strict=True):
        total = (np.float64(weight) * x[sender].astype(np.float64) + total).astype(np.float32)
    # In 64 bits the sum is rounded a first time, which changes a last digit about once in 2^29 entries.
    assert np.allclose(found[0], total, rtol=1e-6, atol=0)
    assert np.mean(found[0] == total) > 0.9


@pytest.mark.parametrize(("columns", "rows"), [(1, slice(0, 7)), (16, slice(13, 40)), (40, slice(39, 40))])
def test_some_rows_alone_have_the_bits_of_all_together(rows: slice, columns: int) -> None:
    """Whoever works on a block of rows finds what one loop over all of them finds."""
    matrix = sp.random_array((40, 30), density=0.5, rng=np.random.default_rng(2), dtype=np.float32).tocsr()
    x = np.random.default_rng(columns).normal(size=(30, columns)).astype(np.float32)
    parts = matrix.indices.astype(np.int32), matrix.data, x
    whole, some = np.empty((40, columns), np.float32), np.empty((rows.stop - rows.start, columns), np.float32)
    add_rows(matrix.indptr, *parts, whole)
    add_rows(matrix.indptr[rows.start : rows.stop + 1], *parts, some)
    assert np.array_equal(whole[rows], some)


@pytest.mark.parametrize("columns", [24, 32])
@pytest.mark.parametrize("alpha", [0.7, 1.0])
def test_rows_that_are_numbered_anew_for_many_products_keep_every_bit(alpha: float, columns: int) -> None:
    drawn = np.random.default_rng(5)
    held = sp.random_array((11_000, 11_000), density=4e-4, rng=drawn, dtype=np.float32)
    a = from_scipy(held).forward
    x = torch.from_numpy(drawn.normal(size=(11_000, columns)).astype(np.float32))
    expected = x
    for _ in range(9):
        expected = x * (1 - alpha) + alpha * a.times(expected)
    found = a.walk(x, 9, alpha)
    assert torch.allclose(found, expected, atol=1e-6)
    assert torch.equal(found, a.on(LocalEngine(2)).walk(x, 9, alpha))
