"""Feature matrices: sparse while they are sparse, and checked against the declared range."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from graphveil.engine import Blocks
from graphveil.errors import DataError
from graphveil.graphs.value.parts import Features, SparseRows
from graphveil.runtime.late import Tensor, quiet, sparse, torch

SPARSE_BELOW = 0.10
"""Share of non-zero entries under which features are kept as `torch.sparse_csr`."""


def compact_rows(rows: sparse.csr_matrix) -> Features:
    """Return a SciPy CSR matrix as float32 features, sparse when its density is under `SPARSE_BELOW`."""
    count, dimension = rows.shape
    # Before counting: two entries for one cell are one number, and could together leave the range.
    rows.sum_duplicates()
    if rows.nnz >= SPARSE_BELOW * (count * dimension):
        dense: np.ndarray = rows.astype(np.float32).toarray()
        return dense
    values = rows.data.astype(np.float32, copy=False)
    return SparseRows(values, rows.indices.astype(np.int64), rows.indptr.astype(np.int64), (count, dimension))


def compact_dense(values: np.ndarray) -> Features:
    """Return a dense array as float32 features, sparse when its density is under `SPARSE_BELOW`."""
    counts = np.count_nonzero(values, axis=1)
    if counts.sum() >= SPARSE_BELOW * values.size:
        return np.ascontiguousarray(values, dtype=np.float32)
    # Copies: `nonzero` returns strided columns of one array, and a column of one entry passes for contiguous.
    rows, columns = (indices.copy() for indices in np.nonzero(values))
    starts = np.concatenate([[0], np.cumsum(counts)])
    return SparseRows(values[rows, columns].astype(np.float32), columns, starts, (len(values), values.shape[1]))


def features_from_rows(rows: sparse.csr_matrix) -> Tensor:
    """Return `compact_rows` as a float32 [n, d] tensor."""
    return features_tensor(compact_rows(rows))


def features_tensor(features: Features) -> Tensor:
    """Return features as a tensor that shares their memory."""
    with quiet():
        if isinstance(features, np.ndarray):
            return torch.from_numpy(features)
        parts = (features.starts, features.columns, features.values)
        starts, columns, values = map(torch.from_numpy, parts)
        return torch.sparse_csr_tensor(starts, columns, values, size=features.shape, check_invariants=True)


def deep_copy(value: Any, memo: dict[int, Any]) -> Any:
    """As `copy.deepcopy`, also for sparse tensors, which torch clones but refuses to deep-copy.

    Args:
        memo: the argument of `__deepcopy__`.
    """
    from torch.overrides import TorchFunctionMode

    class CloningRows(TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if function is torch.Tensor.__deepcopy__ and args[0].layout == torch.sparse_csr:
                return args[0].clone()
            return function(*args, **(kwargs or {}))

    with CloningRows():
        return deepcopy(value, memo)


def features_of(x: Tensor) -> Features:
    """Return a dense or `torch.sparse_csr` tensor [n, d] as arrays; in main memory they share its values."""
    if x.layout != torch.sparse_csr:
        dense: np.ndarray = x.detach().cpu().numpy()
        return dense
    values, columns, starts = (part.detach().cpu().numpy() for part in (x.values(), x.col_indices(), x.crow_indices()))
    return SparseRows(values, columns, starts, (int(x.shape[0]), int(x.shape[1])))


def to_rows(x: Tensor) -> sparse.csr_matrix:
    """Return the SciPy CSR matrix of a tensor, sharing its values if it is a `torch.sparse_csr` one."""
    features = features_of(x)
    if isinstance(features, np.ndarray):
        return sparse.csr_matrix(features)
    return sparse.csr_matrix((features.values, features.columns, features.starts), shape=features.shape)


def check_range(features: Features | Tensor, low: float, high: float, where: str, names: Sequence[object] = ()) -> None:
    """Refuse NaN, infinite and out-of-range entries of features [n, d]; DataError counts row and column from 0.

    Args:
        features: arrays, or a tensor of any kind that `features_of` takes.
        where: the name of the features in messages.
        names: the names of the columns, if they have any.
    """
    if not isinstance(features, np.ndarray | SparseRows):
        features = features_of(features)
    values = features if isinstance(features, np.ndarray) else features.values
    width = values.shape[1] if values.ndim > 1 else 1
    for block in Blocks.of(len(values), width):
        part = values[block.rows]
        # Written so that NaN counts as bad: every comparison with it is false.
        bad = ~((part >= low) & (part <= high))
        if bad.any():
            raise _out_of_range(features, block.start * width + int(bad.argmax()), low, high, where, names)
    absent = isinstance(features, SparseRows) and values.size < features.shape[0] * features.shape[1]
    # Mechanisms read an absent entry as 0 and scale it by the range: below `low` it would break their bound.
    if absent and not low <= 0 <= high:
        what = "entries absent from the sparse features are 0, which is outside the declared range"
        raise DataError(what, where=where, allowed=f"{low:g} to {high:g}")


def _out_of_range(
    features: Features, position: int, low: float, high: float, where: str, names: Sequence[object]
) -> DataError:
    if isinstance(features, SparseRows):
        row = int(np.searchsorted(features.starts, position, side="right")) - 1
        column, value = int(features.columns[position]), float(features.values[position])
    else:
        row, column = divmod(position, features.shape[1])
        value = float(features[row, column])
    what = f"feature {names[column] if names else column} of node {row} is {value:g}"
    return DataError(what, where=where, allowed=f"{low:g} to {high:g}, no NaN")


def clip_features(x: np.ndarray, low: float, high: float, where: str) -> tuple[np.ndarray, int]:
    """Clip features to a range, in place; return them, and how many entries were changed. DataError for NaN.

    Args:
        x: float32 [n, d].
        where: the name of the features in messages.
    """
    if np.isnan(x).any():
        check_range(x, -np.inf, np.inf, where)
    changed = int(np.count_nonzero((x < low) | (x > high)))
    if changed:
        np.clip(x, low, high, out=x)
    return x, changed
