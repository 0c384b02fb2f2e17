"""Edge weights in [0, 1] and the proximal Adam step that trains them (derived in `calibration`)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from graphveil.aggregation import Support
from graphveil.errors import InputError


@dataclass(frozen=True)
class Calibration:
    """How edge weights are trained.

    Attributes:
        lambda1: price of the squared distance from the collected adjacency.
        lambda2: price of the weights themselves.
        learning_rate: of the weights; the most that one moves in an epoch, roughly.
        complement: entries outside the collected ones to train along (pairs, where `symmetric`).
        symmetric: both entries of a pair move as one, by the mean of their slopes.

    Raises:
        InputError: for negative or infinite numbers.
    """

    lambda1: float = 1e-3
    lambda2: float = 1e-3
    learning_rate: float = 0.01
    complement: int = 0
    symmetric: bool = False

    def __post_init__(self) -> None:
        for name in ("lambda1", "lambda2", "learning_rate", "complement"):
            value = getattr(self, name)
            if not 0 <= value < math.inf:
                raise InputError(f"{name} {value}", where="calibration", allowed="a number of 0 or more")


class EdgeWeights:
    """The weights of a support's entries while they are trained.

    Args:
        collected: bool [E]; these entries start at 1 and are drawn back to it, the others start at 0.
    """

    def __init__(self, support: Support, collected: Tensor, calibration: Calibration) -> None:
        self.start = collected.to(device=support.source.device, dtype=torch.float32)
        self.values = self.start.clone().requires_grad_()
        self.calibration = calibration
        self.opposite = support.turned if calibration.symmetric else None
        self.grown = torch.zeros_like(self.start, dtype=torch.bool)
        self.optimiser = torch.optim.Adam([self.values], lr=calibration.learning_rate, fused=True)

    def step(self, loss: Tensor) -> None:
        """Descend from the slopes of `loss` (the cross entropy at the present values)."""
        slope = torch.autograd.grad(loss, self.values)[0]
        if self.opposite is not None:
            slope = (slope + slope.index_select(0, self.opposite)) / 2
        chosen = self.calibration
        with torch.no_grad():
            # On [0, inf) the price |w| is w: its slope joins Adam's mean, where a constant stays what it is.
            self.values.grad = slope.add_(self.values - self.start, alpha=2 * chosen.lambda1).add_(chosen.lambda2)
            self.optimiser.step()
            self.values.clamp_(0, 1)
            self.grown |= self.values > self.start

    @property
    def violations(self) -> float | None:
        """Share of the entries that started at 0 and have ever left it; None without such entries."""
        outside = self.start == 0
        return float(self.grown[outside].float().mean()) if bool(outside.any()) else None
