"""The product of a constant sparse matrix with its slope; apart, because only a network that trains needs torch for it.

y = A^K x,        dL/dx = (A^T)^K dL/dy

K products are one step for torch: the values between them are in nobody's gradient, and none is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

if TYPE_CHECKING:
    from graphveil.aggregation.sparse import SparseMatrix


class _Kept(Protocol):
    """What torch hands from a forward pass to its backward pass."""

    matrix: SparseMatrix
    hops: int


class Product(torch.autograd.Function):
    """A^K x for a `SparseMatrix` A and x [n, c], differentiable in x; A is [m, n], and square where K is above 1."""

    @staticmethod
    def forward(ctx: _Kept, x: Tensor, matrix: SparseMatrix, hops: int) -> Tensor:
        """Return A^hops x [m, c], for hops of at least 1."""
        ctx.matrix, ctx.hops = matrix, hops
        return matrix.forward.power(x, hops)

    @staticmethod
    def backward(ctx: _Kept, gradient: Tensor) -> tuple[Tensor, None, None]:
        """Return (A^T)^hops dL/dy [n, c]."""
        return ctx.matrix.backward.power(gradient, ctx.hops), None, None
