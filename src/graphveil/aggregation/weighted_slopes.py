"""Weighted products and normalised weights with their gradients; in a module of its own, since only training needs
them."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor

from graphveil.aggregation.sparse import Rows
from graphveil.aggregation.support import Support


class _Context(Protocol):
    """What torch hands from a forward pass to its backward pass."""

    support: Support
    power: float
    needs_input_grad: tuple[bool, ...]

    @property
    def saved_tensors(self) -> tuple[Any, ...]: ...

    def save_for_backward(self, *tensors: Tensor | None) -> None: ...


class Product(torch.autograd.Function):
    """The product of a `WeightedMatrix` with x [n, c], differentiable in x, the values [E] and the diagonal [n]."""

    @staticmethod
    def forward(ctx: _Context, x: Tensor, values: Tensor, diagonal: Tensor | None, support: Support) -> Tensor:
        x = x.contiguous()
        ctx.save_for_backward(x, values, diagonal)
        ctx.support = support
        out = Rows(support.starts, support.source, values).times(x)
        return out if diagonal is None else out.addcmul_(x, diagonal[:, None])

    @staticmethod
    def backward(ctx: _Context, slope: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        (x, values, diagonal), support = ctx.saved_tensors, ctx.support
        slope, to_x, to_values, to_diagonal = slope.contiguous(), None, None, None
        if ctx.needs_input_grad[0]:
            turned = values.index_select(0, support.turned)
            to_x = Rows(support.back_starts, support.back_target, turned).times(slope)
            if diagonal is not None:
                to_x.addcmul_(slope, diagonal[:, None])
        # Only those that are needed: each costs a pass over all entries, and a constant structure needs only the first.
        if ctx.needs_input_grad[1]:
            to_values = support.dots(slope, x)
        if ctx.needs_input_grad[2]:
            to_diagonal = (slope * x).sum(dim=1)
        return to_x, to_values, to_diagonal, None


class Normalised(torch.autograd.Function):
    """The values [E] and diagonal [n] of the normalised matrix, differentiable in the weights [E]."""

    @staticmethod
    def forward(
        ctx: _Context, weights: Tensor, support: Support, mean: bool, self_loops: bool
    ) -> tuple[Tensor, Tensor | None]:
        power = -1.0 if mean else -0.5
        received = support.row_sums(weights) + float(self_loops)
        # 0 to a negative power is infinite, and infinity times the row's weight 0 would be NaN.
        left = received.pow(power).masked_fill_(received <= 0, 0.0)
        factor, diagonal, right, sent = left.index_select(0, support.target), left, None, None
        if not mean:
            # Row and column sums apart: a support need not be symmetric, and with learned weights hardly any matrix is.
            sent = support.column_sums(weights) + float(self_loops)
            right = sent.pow(power).masked_fill_(sent <= 0, 0.0)
            factor, diagonal = factor.mul_(right.index_select(0, support.source)), left * right
        values = weights * factor
        ctx.save_for_backward(values, factor, diagonal, received, sent)
        ctx.support, ctx.power = support, power
        return values, diagonal if self_loops else None

    @staticmethod
    def backward(ctx: _Context, slope: Tensor, on_diagonal: Tensor | None) -> tuple[Tensor, None, None, None]:
        (values, factor, diagonal, received, sent), support = ctx.saved_tensors, ctx.support
        weighed = slope * values
        loops = 0.0 if on_diagonal is None else on_diagonal * diagonal

        def through(degrees: Tensor, sums: Tensor) -> Tensor:
            # d v/d degree = power v / degree for every entry of the row: the quotient rule, summed.
            return sums.add_(loops).mul_(ctx.power).div_(degrees).masked_fill_(degrees <= 0, 0.0)

        # The direct part first, each entry by its factor; then the part through the degrees of both ends.
        gradient = slope * factor
        gradient += through(received, support.row_sums(weighed)).index_select(0, support.target)
        if sent is not None:
            gradient += through(sent, support.column_sums(weighed)).index_select(0, support.source)
        return gradient, None, None, None
