"""The formulas of weighted means over arrays of n x n numbers, to compare products with."""

from __future__ import annotations

import torch
from torch import Tensor


def dense_normalised(a: Tensor, law: str, self_loops: bool) -> Tensor:
    """D_in^-1/2 A D_out^-1/2 ("gcn") or D_in^-1 A ("mean"); a row (or column) without weight stays 0.

    Args:
        a: the weights, row = receiver, column = sender.
        law: "gcn" or "mean".
        self_loops: whether everybody hears itself too.
    """
    a = a + torch.eye(len(a), dtype=a.dtype) if self_loops else a
    received, sent = a.sum(1), a.sum(0)

    def inverse(degrees: Tensor, power: float) -> Tensor:
        return torch.where(degrees > 0, torch.where(degrees > 0, degrees, 1.0).pow(power), 0.0)

    if law == "mean":
        return inverse(received, -1)[:, None] * a
    return inverse(received, -0.5)[:, None] * a * inverse(sent, -0.5)
