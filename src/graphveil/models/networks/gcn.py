"""Graph convolutional network, two layers (Kipf and Welling, ICLR 2017, arXiv 1609.02907, equation 9).

    h = selu( Q X W + b ),      z = Q h W' + b',      Q = D^{-1/2} (A + I) D^{-1/2}

For directed graphs, which the paper leaves open, Q = D_in^{-1/2} (A + I) D_out^{-1/2}: the receiver's in-degree and
the sender's out-degree, each with the self-loop (see `aggregation.normalised`).  This differs from PyG's `GCNConv`,
which takes the in-degree at both ends; on undirected graphs the two are the same.
Shapes: X [n, d] as `Inputs`, h [n, hidden], z [n, classes].
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from graphveil.aggregation import Inputs, SparseMatrix
from graphveil.models.networks.dropout import dropout
from graphveil.models.networks.initial import glorot


class GCN(nn.Module):
    """Two graph convolutions with symmetric normalisation and self-loops."""

    def __init__(
        self, dimension: int, hidden: int, classes: int, dropout: float, *, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.weight1 = glorot((dimension, hidden), generator)
        self.bias1 = nn.Parameter(torch.zeros(hidden))
        self.weight2 = glorot((hidden, classes), generator)
        self.bias2 = nn.Parameter(torch.zeros(classes))

    def first(self, inputs: Inputs, q: SparseMatrix) -> Tensor:
        """Return the first layer before its activation [n, hidden].

        Args:
            inputs: the features as an operator [n, d]; q: the normalised adjacency [n, n].
        """
        return q @ inputs.linear(self.weight1) + self.bias1

    def rest(self, first: Tensor, q: SparseMatrix) -> Tensor:
        """Return the logits [n, classes].

        Args:
            first: [n, hidden], what `first` gave; q: the normalised adjacency [n, n].
        """
        h = dropout(functional.selu(first), self.dropout, self.training)
        return q @ (h @ self.weight2) + self.bias2
