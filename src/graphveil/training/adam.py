"""Adam by torch's own fused step, without torch's optimiser class.

The class brings torch's compiler with it, a second of imports before the first step; the step and its bits are the
same.  Source: Kingma and Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015 (arXiv 1412.6980), Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor


class Adam:
    """Moves parameters against their gradients.

    Args:
        parameters: what is moved in place; one without a gradient stays.
        learning_rate: of a step.
        weight_decay: how much of a parameter is added to its gradient.
    """

    def __init__(self, parameters: Iterable[Tensor], *, learning_rate: float, weight_decay: float = 0.0) -> None:
        self.parameters = list(parameters)
        self.learning_rate, self.weight_decay = learning_rate, weight_decay
        self._means = [torch.zeros_like(parameter) for parameter in self.parameters]
        self._squares = [torch.zeros_like(parameter) for parameter in self.parameters]
        self._steps = [torch.zeros((), device=parameter.device) for parameter in self.parameters]

    def clear(self) -> None:
        """Forget the gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    def step(self) -> None:
        """Take a step."""
        from torch.optim.adam import adam

        gradients = [parameter.grad for parameter in self.parameters]
        moved = [place for place, gradient in enumerate(gradients) if gradient is not None]
        with torch.no_grad():
            adam(
                [self.parameters[place] for place in moved],
                [gradient for gradient in gradients if gradient is not None],
                [self._means[place] for place in moved],
                [self._squares[place] for place in moved],
                [],
                [self._steps[place] for place in moved],
                fused=True,
                amsgrad=False,
                beta1=0.9,
                beta2=0.999,
                lr=self.learning_rate,
                weight_decay=self.weight_decay,
                eps=1e-8,
                maximize=False,
            )
