"""A small network that reads a few numbers about each node and class, the same way for every class.

    h_vk = selu( a_vk A + b_v B + s ),      z_vk = a_vk w + selu( h_vk C + mean_j h_vj D + t ) u

Weights are shared by all classes, and classes meet in a mean alone: whoever renames classes renames scores, and a
network trained on one graph reads another with other features and another number of classes.  Source: Zaheer et al.,
"Deep Sets", NeurIPS 2017, arXiv 1703.06114, equation 4 (equivariant layers).
Shapes: own a [n, c, p], common b [n, q], scores z [n, c].
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from graphveil.models.networks.initial import glorot


class ClassReader(nn.Module):
    """Scores of every class from numbers about node and class, and about the node alone.

    Args:
        own: p, numbers about a node and a class; common: q, numbers about a node.
        hidden: width of both layers; generator: of initial weights.
    """

    def __init__(self, own: int, common: int, hidden: int, *, generator: torch.Generator) -> None:
        super().__init__()
        self.own = glorot((own, hidden), generator)
        self.common = glorot((common, hidden), generator)
        self.bias1 = nn.Parameter(torch.zeros(hidden))
        self.alone = glorot((hidden, hidden), generator)
        self.together = glorot((hidden, hidden), generator)
        self.bias2 = nn.Parameter(torch.zeros(hidden))
        # At 0, so that training starts from the mean of what is read, which is right as far as the clues are.
        self.head = nn.Parameter(torch.zeros(hidden))
        self.direct = nn.Parameter(torch.full((own,), 1 / own))

    def forward(self, own: Tensor, common: Tensor) -> Tensor:
        """Return scores [..., c], however many nodes and blocks come first.

        Args:
            own: numbers [..., c, p] about a node and a class.
            common: numbers [..., q] about a node.
        """
        h = functional.selu(own @ self.own + (common @ self.common + self.bias1).unsqueeze(-2))
        together = (h.mean(dim=-2) @ self.together + self.bias2).unsqueeze(-2)
        scores: Tensor = own @ self.direct + functional.selu(h @ self.alone + together) @ self.head
        return scores
