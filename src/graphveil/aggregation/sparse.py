"""A constant sparse matrix that multiplies dense ones, forwards and backwards.

    y = A x,        dL/dx = A^T dL/dy

Both products run as weighted sums over rows (`torch.nn.functional.embedding_bag` with 32-bit indices): on CPU the
fastest of the kernels that plain torch wheels carry, about six times the speed of torch's own CSR product at 32
columns (benchmarks/kernels.py).  The transpose is stored, so a gradient costs what the product costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
import scipy.sparse as sp

from graphveil.engine import Blocks
from graphveil.errors import InputError
from graphveil.late import torch

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Rows:
    """Compressed sparse rows: row i is `indices[starts[i]:starts[i+1]]` weighted by `values`.

    `starts` are int32, or int64 where there are 2^31 entries and more.
    """

    starts: Tensor
    indices: Tensor
    values: Tensor

    def times(self, x: Tensor) -> Tensor:
        """Return the product with a dense `x` [columns, c] -> [rows, c]."""
        if self.indices.numel() == 0:
            return x.new_zeros(self.starts.numel() - 1, x.shape[1])
        if self.starts.dtype == torch.int64:
            blocks = Blocks.of(self.starts.numel() - 1, x.shape[1])
            return torch.cat([self.part(block.rows).times(x) for block in blocks])
        return torch.nn.functional.embedding_bag(
            self.indices, x, self.starts, mode="sum", per_sample_weights=self.values, include_last_offset=True
        )

    def part(self, rows: slice) -> Rows:
        """Return consecutive rows alone, without a copy of their entries."""
        starts = self.starts[rows.start : rows.stop + 1]
        first, stop = int(starts[0]), int(starts[-1])
        # Counted from their own beginning, entries of a few rows have 32-bit numbers, however many there are in all.
        return Rows((starts - first).int(), self.indices[first:stop], self.values[first:stop])

    def to(self, device: torch.device | str) -> Rows:
        """Return the same rows on another device."""
        return Rows(self.starts.to(device), self.indices.to(device), self.values.to(device))


@dataclass(frozen=True)
class SparseMatrix:
    """A constant sparse matrix [rows, columns] and its transpose, float32.

    Build one with :func:`from_scipy`; `matrix @ x` is differentiable in `x`.
    """

    forward: Rows
    backward: Rows
    shape: tuple[int, int]

    @property
    def entries(self) -> int:
        """Number of stored entries."""
        return int(self.forward.indices.numel())

    @property
    def nbytes(self) -> int:
        """Bytes held by both orientations."""
        rows = (self.forward,) if self.backward is self.forward else (self.forward, self.backward)
        return sum(t.numel() * t.element_size() for r in rows for t in (r.starts, r.indices, r.values))

    def __matmul__(self, x: Tensor) -> Tensor:
        """Return the product [rows, c] with a dense `x` [columns, c].

        Raises:
            InputError: when the shapes do not fit.
        """
        if x.dim() != 2 or x.shape[0] != self.shape[1]:
            raise InputError(f"cannot multiply a {self.shape} matrix with a tensor {tuple(x.shape)}")
        # Without a gradient to come nothing needs to be kept: predictions skip the bookkeeping of autograd.
        return self._differentiable(x, 1) if x.requires_grad else self.forward.times(x)

    def power(self, x: Tensor, hops: int) -> Tensor:
        """Return A^hops x [n, c] for a square matrix and a dense `x` [n, c].

        Raises:
            InputError: when the shapes do not fit.
        """
        if x.requires_grad and hops and x.shape[0] == self.shape[0] == self.shape[1]:
            return self._differentiable(x, hops)
        for _ in range(hops):
            x = self @ x
        return x

    def _differentiable(self, x: Tensor, hops: int) -> Tensor:
        from graphveil.aggregation.sparse_slopes import Product

        return cast(torch.Tensor, Product.apply(x, self, hops))  # type: ignore[no-untyped-call]

    def to(self, device: torch.device | str) -> SparseMatrix:
        """Return the same matrix on another device."""
        forward = self.forward.to(device)
        backward = forward if self.backward is self.forward else self.backward.to(device)
        return SparseMatrix(forward, backward, self.shape)


def from_scipy(matrix: sp.csr_matrix, *, symmetric: bool = False) -> SparseMatrix:
    """Return a scipy sparse matrix as a `SparseMatrix`, which shares what it can of its memory.

    Args:
        matrix: any sparse format.
        symmetric: promises A = A^T, which is then stored once.

    Raises:
        InputError: for 2^31 or more rows or columns.
    """
    csr = matrix.tocsr()
    # 32-bit indices halve what a product reads, which is what bounds its speed.
    if max(csr.shape) >= 2**31:
        raise InputError(f"a sparse matrix {csr.shape}", allowed="below 2^31 rows and columns")
    forward = _rows(csr)
    backward = forward if symmetric else _rows(csr.T.tocsr())
    return SparseMatrix(forward, backward, (int(csr.shape[0]), int(csr.shape[1])))


def _rows(csr: sp.csr_matrix) -> Rows:
    return Rows(
        torch.from_numpy(csr.indptr.astype(np.int32 if csr.nnz < 2**31 else np.int64, copy=False)),
        torch.from_numpy(csr.indices.astype(np.int32, copy=False)),
        torch.from_numpy(np.ascontiguousarray(csr.data, dtype=np.float32)),
    )
