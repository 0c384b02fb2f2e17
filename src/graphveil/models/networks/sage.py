"""GraphSAGE with mean aggregation, two layers (Hamilton, Ying, Leskovec, NeurIPS 2017, arXiv 1706.02216, Algorithm 1).

    h_v = selu( mean_{u in N(v)} x_u W_n + x_v W_r + b ),      z_v = mean_{u in N(v)} h_u W_n' + h_v W_r' + b'

Shapes: x [n, d] as `Inputs`, h [n, hidden], z [n, classes].
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from graphveil.aggregation import Inputs, SparseMatrix
from graphveil.models.networks.dropout import dropout
from graphveil.models.networks.initial import uniform


class GraphSAGE(nn.Module):
    """Two GraphSAGE layers; neighbour and root weights of a layer are stored side by side [in, 2 out]."""

    def __init__(
        self, dimension: int, hidden: int, classes: int, dropout: float, *, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.hidden, self.classes, self.dropout = hidden, classes, dropout
        self.weight1 = uniform((dimension, 2 * hidden), dimension, generator)
        self.bias1 = uniform((hidden,), dimension, generator)
        self.weight2 = uniform((hidden, 2 * classes), hidden, generator)
        self.bias2 = uniform((classes,), hidden, generator)

    def first(self, inputs: Inputs, mean: SparseMatrix) -> Tensor:
        """Return the first layer before its activation [n, hidden]: all that depends on the features.

        Args:
            inputs: the features as an operator [n, d]; mean: the mean over neighbours [n, n].
        """
        near, own = torch.split(inputs.linear(self.weight1), self.hidden, dim=1)
        return mean @ near + own + self.bias1

    def rest(self, first: Tensor, mean: SparseMatrix) -> Tensor:
        """Return the logits [n, classes].

        Args:
            first: [n, hidden], what `first` gave; mean: the mean over neighbours [n, n].
        """
        h = dropout(functional.selu(first), self.dropout, self.training)
        near, own = torch.split(h @ self.weight2, self.classes, dim=1)
        return mean @ near + own + self.bias2
