"""The last layer of a perceptron with softmax and cross entropy, and its slopes in closed form."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def head_loss(h: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Mean cross entropy of the last layer, and the share of rows that it gets right. Returns the loss, with its exact
    slopes in `h`, `weight` and `bias`, and the accuracy in [0, 1].

    Args:
        h: the input of the last layer [n, d].
        weight: of the layer [c, d].
        bias: of the layer [c].
        targets: the class of each row as a column of zeros and a one [c, n].
    """
    loss, accuracy = _HeadLoss.apply(h, weight, bias, targets)  # type: ignore[no-untyped-call]
    return loss, accuracy


class _HeadLoss(torch.autograd.Function):
    """Linear layer, softmax and mean cross entropy in one, with classes as rows [c, n]; also the accuracy."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        chances = torch.softmax(torch.addmm(bias[:, None], weight, h.t()), dim=0)
        own = (chances * targets).sum(dim=0)
        accuracy = (own >= chances.amax(dim=0)).float().mean()
        # About the smallest normal float32: a certain but wrong row has a large loss, but not an infinite one.
        loss = -own.clamp_min(1e-38).log_().mean()
        ctx.save_for_backward(h, weight, (chances - targets).div_(h.shape[0]))
        ctx.mark_non_differentiable(accuracy)
        return loss, accuracy

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        h, weight, slope = ctx.saved_tensors
        slope = slope * gradient
        return slope.t() @ weight, slope @ h, slope.sum(dim=1), None
