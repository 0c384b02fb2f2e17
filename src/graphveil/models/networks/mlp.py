"""A perceptron with one hidden layer: the backbone that sees no edges.

    z = selu( X W + b ) W' + b'

Shapes: X [n, d] as `Inputs`, z [n, classes].
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from graphveil.aggregation import Inputs
from graphveil.models.networks.dropout import dropout
from graphveil.models.networks.initial import uniform


class MLP(nn.Module):
    """Two linear layers with a SELU between them."""

    def __init__(
        self, dimension: int, hidden: int, classes: int, dropout: float, *, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.weight1 = uniform((dimension, hidden), dimension, generator)
        self.bias1 = uniform((hidden,), dimension, generator)
        self.weight2 = uniform((hidden, classes), hidden, generator)
        self.bias2 = uniform((classes,), hidden, generator)

    def first(self, inputs: Inputs, structure: None) -> Tensor:
        """Return the hidden layer before its activation [n, hidden].

        Args:
            inputs: the features as an operator [n, d]; structure: None: no edge is read.
        """
        return inputs.linear(self.weight1) + self.bias1

    def rest(self, first: Tensor, structure: None) -> Tensor:
        """Return the logits [n, classes].

        Args:
            first: [n, hidden], what `first` gave; structure: None: no edge is read.
        """
        h = dropout(functional.selu(first), self.dropout, self.training)
        return h @ self.weight2 + self.bias2
