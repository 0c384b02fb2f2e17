"""Edge weights in [0, 1] and the proximal Adam step that trains them (derived in `calibration`)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphveil.aggregation import Support
from graphveil.errors import InputError
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor


#: Adam's constants (Kingma and Ba, ICLR 2015, Algorithm 1).
DECAY = (0.9, 0.999)
TINY = 1e-8


@dataclass(frozen=True)
class Calibration:
    """How edge weights are trained. Raises InputError: for numbers that are negative or not finite, and a complement
    that is no whole number.

    Attributes:
        lambda1: price of the squared distance from the collected adjacency.
        lambda2: price of the weights themselves.
        learning_rate: of the weights; the most that one moves in an epoch, roughly.
        complement: entries outside the collected ones to train along (pairs, where `symmetric`).
        symmetric: both entries of a pair move as one, by the mean of their slopes.
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
                # As users set it, beside the learning rate of the network.
                setting = "learning_rate_a" if name == "learning_rate" else name
                raise InputError(f"{setting} = {value}", allowed="a finite number of at least 0")
        if int(self.complement) != self.complement:
            raise InputError(f"complement = {self.complement}", allowed="a whole number")


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
        self.mean, self.square, self.steps = torch.zeros_like(self.start), torch.zeros_like(self.start), 0

    def step(self, loss: Tensor) -> None:
        """Descend from the slopes of `loss` (the cross entropy at the present values)."""
        slope = torch.autograd.grad(loss, self.values)[0]
        if self.opposite is not None:
            # One unknown in two entries: left apart, rounding would let them drift.
            slope = (slope + slope.index_select(0, self.opposite)) / 2
        chosen, values = self.calibration, self.values.detach()
        # On [0, inf) the price |w| is w: its slope joins Adam's mean, where a constant stays what it is.
        slope.add_(values - self.start, alpha=2 * chosen.lambda1).add_(chosen.lambda2)
        self.steps += 1
        self.mean.lerp_(slope, 1 - DECAY[0])
        self.square.mul_(DECAY[1]).addcmul_(slope, slope, value=1 - DECAY[1])
        rate = chosen.learning_rate / (1 - DECAY[0] ** self.steps)
        scale = self.square.sqrt().mul_((1 - DECAY[1] ** self.steps) ** -0.5).add_(TINY)
        values.addcdiv_(self.mean, scale, value=-rate).clamp_(0, 1)
        self.grown |= values > self.start

    @property
    def violations(self) -> float | None:
        """Share of the entries that started at 0 and have ever left it; None without such entries."""
        outside = self.start == 0
        return float(self.grown[outside].float().mean()) if bool(outside.any()) else None
