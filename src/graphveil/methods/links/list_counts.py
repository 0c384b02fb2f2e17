"""A regression on noisy counts alone, one and two steps away; post-processing of reports.

    M, H     as `methods.links.list_network`
    S        what others say of those whom one knows, `models.blocks.list_sums.shared_sums`
    z        [ asinh(H / max(noise, 1)) | H / |H| | asinh(S / max(noise, 1)) | S / |S| ] standardised
    p(y | v) = softmax( z_v W + b )

Its few columns cannot learn training labels by heart, as a network on features and counts together may; features come
in where opinions are pooled.  Shapes: H, S [n, c]; z [n, 4 c], or [n, 8 c] where links have a direction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphveil import models
from graphveil.methods.links.list_network import beside, messages_of
from graphveil.models.blocks.block_model import NamedPairs
from graphveil.models.blocks.list_sums import neighbour_means, noise_scale, shared_sums
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor

#: Columns are of deviation 1, where entries of a feature vector of norm 1 are small: penalties begin far stronger.
STRENGTHS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)


def two_steps(pairs: NamedPairs, shares: Tensor) -> Tensor:
    """Return z.

    Args:
        pairs: what the lists say.
        shares: [n, c] what labels say, unbiased, see `models.blocks.list_sums.unbiased_labels`.
    """
    messages = messages_of(shares)
    ways = [pairs, *([pairs.turned] if pairs.directed else [])]
    return torch.cat([beside(pairs, shares), *(_second(way, messages) for way in ways)], dim=1)


def _second(pairs: NamedPairs, messages: Tensor) -> Tensor:
    """Return the columns of S, on the scale that the lists' noise gives the second step."""
    noise = noise_scale(pairs, neighbour_means(pairs, messages))
    return models.beside([shared_sums(pairs, messages)], float(noise.mean()))
