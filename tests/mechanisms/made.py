"""Inputs that several mechanism tests share."""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor

from graphveil.mechanisms import Values

RANGE = (-1.0, 3.0)


def vectors(dimension: int) -> Tensor:
    """All corners of [-1, 3]^d, the middle and a point inside, one a row."""
    corners = list(itertools.product(RANGE, repeat=dimension))
    inside = [tuple(-1 + 4 * (k + 1) / (2 * k + 5) for k in range(dimension))]
    return torch.tensor([*corners, (1.0,) * dimension, *inside], dtype=torch.float64)


def bad_vectors(dimension: int) -> dict[str, Tensor]:
    """Values outside [-1, 3]^d by the place a refusal must name."""
    result = {}
    for row, wrong in enumerate((math.nan, math.inf, -math.inf, 1e308, -1e308, 3.0001)):
        values = torch.zeros(8, dimension, dtype=torch.float64)
        values[row, dimension - 1] = wrong
        result[f"row {row}, column {dimension - 1}"] = values
    result["columns"] = torch.zeros(8, dimension + 1)
    return result


def by_every_road(values: Tensor) -> dict[str, Values]:
    """The same matrix in every form a mechanism takes."""
    import scipy.sparse

    csr = scipy.sparse.csr_matrix(values.numpy())
    tensor = torch.sparse_csr_tensor(
        torch.from_numpy(csr.indptr).long(),
        torch.from_numpy(csr.indices).long(),
        torch.from_numpy(csr.data),
        csr.shape,
        check_invariants=True,
    )
    return {"torch": values, "numpy": values.numpy(), "scipy": csr, "torch csr": tensor, "scipy coo": csr.tocoo()}
