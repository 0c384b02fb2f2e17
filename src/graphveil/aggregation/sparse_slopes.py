"""A constant linear map with its gradient; in a module of its own, since only training needs torch for it.

y = f(x),        dL/dx = f^T(dL/dy)

K products with a matrix are one map: no gradient needs the intermediate values, and torch stores none of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

import torch
from torch import Tensor

LinearMap: TypeAlias = Callable[[Tensor], Tensor]


class _Context(Protocol):
    """What torch hands from a forward pass to its backward pass."""

    transposed: LinearMap


class Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: _Context, x: Tensor, mapped: LinearMap, transposed: LinearMap) -> Tensor:
        ctx.transposed = transposed
        return mapped(x)

    @staticmethod
    def backward(ctx: _Context, slope: Tensor) -> tuple[Tensor, None, None]:
        return ctx.transposed(slope), None, None
