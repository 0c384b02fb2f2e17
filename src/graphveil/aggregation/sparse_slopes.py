"""The product of a constant sparse matrix with its slope; apart, because only a network that trains needs torch for it.

y = A x,        dL/dx = A^T dL/dy
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


class Product(torch.autograd.Function):
    """A x for a `SparseMatrix` A [m, n] and x [n, c], differentiable in x."""

    @staticmethod
    def forward(ctx: _Kept, x: Tensor, matrix: SparseMatrix) -> Tensor:
        """Return A x [m, c]."""
        ctx.matrix = matrix
        return matrix.forward.times(x.contiguous())

    @staticmethod
    def backward(ctx: _Kept, gradient: Tensor) -> tuple[Tensor, None]:
        """Return A^T dL/dy [n, c]."""
        return ctx.matrix.backward.times(gradient.contiguous()), None
