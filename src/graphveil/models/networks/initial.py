"""Initial weights from an explicit generator, as the layers' own papers and PyG draw them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import nn


def uniform(shape: tuple[int, ...], fan_in: int, generator: torch.Generator) -> nn.Parameter:
    """Return a parameter drawn from U(-1/sqrt(fan_in), 1/sqrt(fan_in)), as `torch.nn.Linear` does.

    Args:
        fan_in: how many inputs an output adds up.
    """
    bound = 1.0 / math.sqrt(fan_in)
    return torch.nn.Parameter((torch.rand(shape, generator=generator) * 2 - 1) * bound)


def glorot(shape: tuple[int, ...], generator: torch.Generator) -> nn.Parameter:
    """Return a parameter drawn from U(-b, b), b = sqrt(6 / (rows + columns)) of its last two axes.

    Args:
        shape: of the parameter, two axes or more.
    """
    bound = math.sqrt(6.0 / (shape[-1] + shape[-2]))
    return torch.nn.Parameter((torch.rand(shape, generator=generator) * 2 - 1) * bound)
