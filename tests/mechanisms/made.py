"""Inputs and sources of noise that several mechanism tests share."""

from __future__ import annotations

import itertools
import math
from typing import Any

import torch
from torch import Tensor

from graphveil.mechanisms import Values

RANGE = (-1.0, 3.0)


class Untouched:
    """A source of noise that nobody may draw from."""

    void = None

    def uint64(self, count: int) -> Any:
        raise AssertionError("noise was drawn")

    def bytes(self, count: int) -> bytes:
        raise AssertionError("noise was drawn")


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


def bad_labels(classes: int) -> dict[str, Tensor]:
    """What is no label of so many classes by what a refusal must say."""
    return {
        "row 1": torch.tensor([0, classes, 0]),
        "row 2": torch.tensor([0, 0, -1, 0]),
        "integers": torch.zeros(3),
        "one for each user": torch.zeros(3, 1, dtype=torch.int64),
    }


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
