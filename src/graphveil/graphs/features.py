"""Feature matrices: sparse while they are sparse, and checked against the declared range."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from graphveil.errors import DataError
from graphveil.graphs.quiet import quiet

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

SPARSE_BELOW = 0.10
"""Share of non-zero entries under which features are kept as `torch.sparse_csr`."""


def features_from_rows(rows: csr_matrix) -> Tensor:
    """A float32 [n, d] tensor of a SciPy CSR matrix, sparse when its density is under `SPARSE_BELOW`."""
    count, dimension = rows.shape
    rows.sum_duplicates()
    if rows.nnz >= SPARSE_BELOW * count * dimension:
        return torch.from_numpy(rows.astype(np.float32).toarray())
    with quiet():
        return torch.sparse_csr_tensor(
            torch.from_numpy(rows.indptr.astype(np.int64)),
            torch.from_numpy(rows.indices.astype(np.int64)),
            torch.from_numpy(rows.data.astype(np.float32, copy=False)),
            size=(count, dimension),
            check_invariants=True,
        )


def features_from_dense(values: np.ndarray) -> Tensor:
    """A float32 [n, d] tensor of a dense array, sparse when its density is under `SPARSE_BELOW`."""
    if np.count_nonzero(values) >= SPARSE_BELOW * values.size:
        return torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32))
    from scipy.sparse import csr_matrix

    return features_from_rows(csr_matrix(values, dtype=np.float32))


def to_rows(x: Tensor) -> csr_matrix:
    """The SciPy CSR matrix of a `torch.sparse_csr` tensor, sharing its values."""
    from scipy.sparse import csr_matrix

    if x.layout != torch.sparse_csr:
        return csr_matrix(x.numpy())
    parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
    return csr_matrix(parts, shape=tuple(x.shape))


def check_range(x: Tensor, low: float, high: float, where: str) -> None:
    """Refuse NaN, infinite and out-of-range entries of x [n, d].

    Raises:
        DataError: names the first bad row and column, both counted from 0.
    """
    sparse = x.layout == torch.sparse_csr
    values = x.values() if sparse else x
    bad = ~((values >= low) & (values <= high))
    if bool(bad.any()):
        raise _out_of_range(x, bad, low, high, where)
    if sparse and not low <= 0 <= high and x.values().numel() < x.shape[0] * x.shape[1]:
        raise DataError(
            "absent entries of the sparse features count as 0, which is outside the declared range",
            where=where,
            allowed=f"{low:g} to {high:g}",
        )


def _out_of_range(x: Tensor, bad: Tensor, low: float, high: float, where: str) -> DataError:
    position = int(bad.flatten().nonzero()[0])
    if x.layout == torch.sparse_csr:
        row = int(torch.searchsorted(x.crow_indices(), position, right=True)) - 1
        column, value = int(x.col_indices()[position]), float(x.values()[position])
    else:
        row, column = divmod(position, x.shape[1])
        value = float(x[row, column])
    return DataError(
        f"feature {column} of node {row} is {value:g}", where=where, allowed=f"{low:g} to {high:g}, no NaN"
    )


def clip_features(x: Tensor, low: float, high: float, where: str) -> tuple[Tensor, int]:
    """x with its stored entries clipped to [low, high], and how many were changed.

    Raises:
        DataError: an entry is NaN, which no clipping makes usable.
    """
    values = x.values() if x.layout == torch.sparse_csr else x
    if bool(torch.isnan(values).any()):
        check_range(x, -torch.inf, torch.inf, where)
    changed = int(((values < low) | (values > high)).sum())
    if changed:
        values.clamp_(low, high)
    return x, changed
