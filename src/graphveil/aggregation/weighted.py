"""Sparse matrices whose values are learned: weights on a fixed support that take gradients.

    y = A x + diag(b) x,     dL/dx = A^T g + b * g,     dL/dA_e = g_i . x_j,     dL/db_i = g_i . x_i     (e = j -> i)

    mean:  V_e = A_e / d_i              d_i = sum of row i of A (+ 1 with self-loops)
    gcn:   V_e = A_e / sqrt(d_i c_j)    c_j = sum of column j of A (+ 1)

g is the slope dL/dy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from graphveil.aggregation.propagation import Normalisation
from graphveil.aggregation.support import Support
from graphveil.errors import InputError
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class WeightedMatrix:
    """The matrix with `values` [E] on a support, and optionally `diagonal` [n] added to it. `matrix @ x` is
    differentiable in x, the values and the diagonal (once: slopes of slopes are not offered).
    """

    support: Support
    values: Tensor
    diagonal: Tensor | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return self.support.num_nodes, self.support.num_nodes

    def detach(self) -> WeightedMatrix:
        """Return the same matrix as a constant."""
        diagonal = None if self.diagonal is None else self.diagonal.detach()
        return WeightedMatrix(self.support, self.values.detach(), diagonal)

    def __matmul__(self, x: Tensor) -> Tensor:
        if x.dim() != 2 or x.shape[0] != self.shape[1]:
            raise InputError(f"cannot multiply a {self.shape} matrix with a tensor {tuple(x.shape)}")
        from graphveil.aggregation.weighted_slopes import Product

        return cast(torch.Tensor, Product.apply(x, self.values, self.diagonal, self.support))  # type: ignore[no-untyped-call]


def normalised_weights(
    support: Support, weights: Tensor, normalisation: Normalisation = "gcn", *, self_loops: bool = False
) -> WeightedMatrix:
    """Return the matrix of `aggregation.normalised` for weights [E] >= 0, differentiable in them, degrees included. A
    row without weight stays zero, and so does its slope: no mean of nothing has a derivative.

    Args:
        self_loops: every node sends itself its own value with weight 1.
    """
    from graphveil.aggregation.weighted_slopes import Normalised

    values, diagonal = Normalised.apply(  # type: ignore[no-untyped-call]
        weights, support, normalisation == "mean", self_loops
    )
    return WeightedMatrix(support, values, diagonal if self_loops else None)
