"""Sparse products against dense ones, and the compiled sums of rows against whole numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from graphveil.aggregation import from_scipy
from graphveil.aggregation.loops import add_rows
from graphveil.aggregation.shared import widened
from graphveil.aggregation.sparse import Rows, walk_coefficients
from graphveil.engine import Blocks, LocalEngine
from graphveil.errors import InputError

# Row 2 and column 1 are empty; entry (3, 0) is stored although it is 0.
VALUES = np.array([1.5, -2.0, 0.25, 0.0, 3.0, -1.0], dtype=np.float32)
LITERAL = sp.csr_matrix((VALUES, ([0, 0, 1, 3, 3, 4], [0, 3, 2, 0, 3, 2])), shape=(5, 4))
MATRICES = {
    "literal": LITERAL,
    "square": sp.random_array((40, 40), density=0.1, rng=np.random.default_rng(0), dtype=np.float32).tocsr(),
    "tall": sp.random_array((50, 3), density=0.3, rng=np.random.default_rng(1), dtype=np.float32).tocsr(),
    "wide": sp.random_array((3, 50), density=0.3, rng=np.random.default_rng(2), dtype=np.float32).tocsr(),
    "empty": sp.csr_matrix((6, 4), dtype=np.float32),
}


@pytest.mark.parametrize("name", MATRICES)
def test_products_and_gradients_equal_dense_autograd(name: str) -> None:
    matrix = MATRICES[name]
    sparse, dense = from_scipy(matrix), torch.from_numpy(matrix.toarray())
    start = torch.randn(matrix.shape[1], 5, generator=torch.Generator().manual_seed(1))
    weights = torch.randn(matrix.shape[0], 5, generator=torch.Generator().manual_seed(2))
    assert torch.allclose(sparse @ start, dense @ start, atol=1e-5)
    gradients = []
    for product in (sparse, dense):
        x = start.clone().requires_grad_()
        (weights * torch.tanh(product @ x)).sum().backward()
        gradients.append(x.grad)
    assert torch.allclose(gradients[0], gradients[1], atol=1e-5)


@pytest.mark.parametrize("hops", [0, 1, 3])
def test_several_products_at_once_equal_dense_autograd(hops: int) -> None:
    dense = torch.from_numpy(MATRICES["square"].toarray())
    x, other = (torch.ones(40, 2).cumsum(0).div(40).requires_grad_() for _ in range(2))
    product = from_scipy(MATRICES["square"]).power(x, hops)
    expected = torch.linalg.matrix_power(dense, hops) @ other
    assert torch.allclose(product, expected, atol=1e-5)
    torch.tanh(product).sum().backward()
    torch.tanh(expected).sum().backward()
    assert torch.allclose(x.grad, other.grad, atol=1e-5)


def test_gradients_pass_through_transposed_views() -> None:
    """Autograd hands over tensors that are not contiguous; they are multiplied as what they mean."""
    x = torch.randn(2, 4, requires_grad=True, generator=torch.Generator().manual_seed(4))
    (from_scipy(LITERAL) @ x.T).T.square().sum().backward()
    expected = 2 * torch.from_numpy(LITERAL.toarray()).T @ (torch.from_numpy(LITERAL.toarray()) @ x.detach().T)
    assert torch.allclose(x.grad, expected.T, atol=1e-5)


@pytest.mark.parametrize("shape", [(5, 3), (3, 4), (4,), (4, 2, 1)])
def test_wrong_shapes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=r"cannot multiply a \(5, 4\) matrix"):
        from_scipy(LITERAL) @ torch.ones(shape)


def test_rows_numbered_in_64_bits_give_the_same_product_in_blocks() -> None:
    """As rows of 2^31 entries and more are: their kernel is called with a few rows at a time."""
    generator = np.random.default_rng(3)
    matrix = sp.random_array((9_000, 50), density=0.1, rng=generator, dtype=np.float32).tocsr()
    x, rows = torch.randn(50, 64, generator=torch.Generator().manual_seed(5)), from_scipy(matrix).forward
    wide = Rows(rows.starts.long(), rows.indices, rows.values)
    assert torch.equal(wide.times(x), rows.times(x))


def test_some_rows_of_a_matrix_are_those_rows_in_the_order_of_their_names() -> None:
    rows = from_scipy(LITERAL).forward
    part = rows.part(slice(1, 4))
    assert part.starts.tolist() == [0, 1, 1, 3]
    assert torch.equal(part.times(torch.eye(4)), torch.from_numpy(LITERAL.toarray())[1:4])
    # Views, not copies: a part costs nothing.
    assert part.indices.data_ptr() == rows.indices[2:].data_ptr()
    assert rows.part(slice(2, 3)).times(torch.eye(4)).tolist() == [[0.0] * 4]
    chosen = torch.tensor([3, 0, 2])
    part, x = from_scipy(LITERAL)[chosen], torch.randn(4, 2, generator=torch.Generator().manual_seed(1))
    whole = torch.from_numpy(LITERAL.toarray())
    torch.testing.assert_close(part @ x, whole[chosen] @ x)
    torch.testing.assert_close(part.backward.times(torch.eye(3)), whole[chosen].T)


DRAWN = np.random.default_rng(0)
MATRIX = sp.random_array(
    (40, 30), density=0.2, rng=DRAWN, data_sampler=lambda size: DRAWN.integers(-9, 9, size)
).tocsr()


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("columns", [1, 2, 3, 4, 7, 8, 9, 16, 17, 31, 32, 33, 48, 49, 64, 65, 96])
def test_each_row_is_the_sum_of_its_entries(columns: int, kind: type) -> None:
    x = DRAWN.integers(-100, 100, (30, columns))
    matrix = MATRIX.indptr.astype(kind), MATRIX.indices.astype(np.int32), MATRIX.data.astype(np.float32)
    sums = np.full((40, columns), np.nan, np.float32)
    add_rows(*matrix, x.astype(np.float32), sums)
    assert np.array_equal(sums, MATRIX @ x)
    # A stored zero counts as well, where no weights are given.
    unweighted = sp.csr_matrix((np.ones_like(MATRIX.data), MATRIX.indices, MATRIX.indptr), MATRIX.shape)
    for weights, counted in ((matrix[2], MATRIX), (None, unweighted)):
        sums[:] = np.nan
        add_rows(matrix[0], matrix[1], weights, x.astype(np.int16), sums)
        assert np.array_equal(sums, counted @ x)


@pytest.mark.parametrize(("columns", "width"), [(1, 4), (4, 4), (5, 8), (17, 32), (33, 48)])
def test_rows_of_large_arrays_lie_in_few_lines_of_the_cache(columns: int, width: int) -> None:
    x = np.ones(((1 << 22) // columns + 1, columns), np.float32)
    wide = widened(x)
    assert wide.shape == (len(x), width) and np.array_equal(wide[:, :columns], x)
    assert wide is x if columns == width else wide.ctypes.data % 64 == 0 and not wide[:, columns:].any()
    assert widened(x[:3]).shape == (3, columns) and np.array_equal(widened(x[:3], many_products=True), wide[:3])
    turned = widened(x[:3].T)
    assert np.array_equal(turned, x[:3].T) and turned.flags.c_contiguous


@pytest.mark.parametrize("kind", [torch.float64, torch.int64])
def test_other_numbers_are_multiplied_as_the_numbers_that_they_are(kind: torch.dtype) -> None:
    x = torch.arange(16).repeat(30, 1)
    product = from_scipy(MATRIX).forward.times(x.to(kind))
    assert product.dtype == torch.float32
    assert np.array_equal(product, MATRIX @ x.numpy())


def test_threads_give_the_bits_of_one() -> None:
    rows, columns = 40_000, 16
    assert len(Blocks.of(rows, columns)) > 1
    p = from_scipy(sp.random_array((rows, rows), density=1e-4, rng=DRAWN, dtype=np.float32))
    x, before = torch.randn(rows, columns), torch.get_num_threads()
    products = []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            products.append(p.power(x, 2))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*products) and torch.equal(p.on(LocalEngine(2)).power(x, 2), products[0])


def test_a_row_is_rounded_once_an_entry_and_in_the_order_of_its_entries() -> None:
    """As a fused multiply-add rounds: the product is exact in 64 bits, and only its sum with the rest goes to 32."""
    drawn = np.random.default_rng(1)
    entries, columns = 200, 13
    senders = drawn.integers(0, 30, entries).astype(np.int32)
    weights, x = drawn.normal(size=entries).astype(np.float32), drawn.normal(size=(30, columns)).astype(np.float32)
    sums = np.empty((1, columns), np.float32)
    add_rows(np.array([0, entries]), senders, weights, x, sums)
    total = np.zeros(columns, np.float32)
    for sender, weight in zip(senders, weights, strict=True):
        total = (np.float64(weight) * x[sender].astype(np.float64) + total).astype(np.float32)
    # In 64 bits the sum is rounded a first time, which changes a last digit about once in 2^29 entries.
    assert np.allclose(sums[0], total, rtol=1e-6, atol=0)
    assert np.mean(sums[0] == total) > 0.9


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
    matrix = sp.random_array((11_000, 11_000), density=4e-4, rng=drawn, dtype=np.float32)
    a = from_scipy(matrix).forward
    x = torch.from_numpy(drawn.normal(size=(11_000, columns)).astype(np.float32))
    expected = x
    for _ in range(9):
        expected = x * (1 - alpha) + alpha * a.times(expected)
    product = a.walk(x, 9, alpha)
    assert torch.allclose(product, expected, atol=1e-6)
    assert torch.equal(product, a.on(LocalEngine(2)).walk(x, 9, alpha))


@pytest.mark.parametrize("nodes", [40, 11_000])
def test_a_chain_of_products_gives_all_walks_at_once(nodes: int) -> None:
    """Of few rows, and of so many that they are numbered anew; as other precision and engines take them, too."""
    drawn = np.random.default_rng(6)
    matrix = sp.random_array((nodes, nodes), density=4 / nodes, rng=drawn, dtype=np.float32)
    a = from_scipy(matrix).forward
    x = torch.from_numpy(drawn.normal(size=(nodes, 24)).astype(np.float32))
    walks, some = [(9, 0.7), (3, 1.0), (10, 0.9)], torch.tensor([5, 0, nodes - 1])
    chain = [walk_coefficients(hops, alpha, 10) for hops, alpha in walks]
    doubled = replace(a, values=a.values.double())
    for rows in (a, a.on(LocalEngine(2)), doubled):
        here = x.to(rows.values.dtype)
        whole, part = rows.polynomials(here, chain), rows.polynomials(here, chain, some)
        for (hops, alpha), every, three in zip(walks, whole, part, strict=True):
            expected = rows.walk(here, hops, alpha)
            assert torch.allclose(every, expected, atol=1e-6 * float(expected.abs().max()))
            assert torch.equal(three, every[some])
