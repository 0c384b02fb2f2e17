"""Sparse products against scipy and dense autograd."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from graphveil.aggregation import from_scipy
from graphveil.aggregation.sparse import Rows
from graphveil.errors import InputError

# Row 2 and column 1 are empty; entry (3, 0) is stored although it is 0.
ROWS = np.array([0, 0, 1, 3, 3, 4])
COLUMNS = np.array([0, 3, 2, 0, 3, 2])
VALUES = np.array([1.5, -2.0, 0.25, 0.0, 3.0, -1.0], dtype=np.float32)
LITERAL = sp.csr_matrix((VALUES, (ROWS, COLUMNS)), shape=(5, 4))
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
    found = from_scipy(MATRICES["square"]).power(x, hops)
    expected = torch.linalg.matrix_power(dense, hops) @ other
    assert torch.allclose(found, expected, atol=1e-5)
    torch.tanh(found).sum().backward()
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
