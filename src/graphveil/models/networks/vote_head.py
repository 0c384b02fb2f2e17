"""A linear layer over what features say of a class and what neighbours' noisy votes say of it, right before training.

    z = [ a | b ] W + w,        W = [ I | I ]^T and w = 0 before the first step

Under private training every weight costs noise: 2 c^2 + c of them, begun where both opinions count alike, need few
steps.  The start is public: it depends on the number of classes alone.  Shapes: a, b [n, c].
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from graphveil.models.networks.perceptrons import Blocks


class VoteHead(nn.Module):
    """Reads both opinions side by side [n, 2 c]."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.head = nn.Linear(2 * classes, classes)
        with torch.no_grad():
            self.head.weight.copy_(torch.eye(classes).repeat(1, 2))
            self.head.bias.zero_()

    def features(self, x: Tensor) -> Tensor:
        """Return what the head reads: x itself."""
        return x

    def forward(self, x: Blocks) -> Tensor:
        """Return logits [n, c]."""
        return cast(Tensor, self.head(x))
