"""Moving values into a declared range, for users who ask for it."""

from __future__ import annotations

import numpy as np

from graphveil.errors import InputError
from graphveil.mechanisms.base.values import Values, read_rows
from graphveil.runtime.late import sparse, torch


def clip_to_range(values: Values, low: float, high: float) -> Values:
    """`values` with every number below `low` or above `high` moved to the nearer end, as a new object. For users who
    ask for clipping: mechanisms themselves refuse what is out of range. Infinities are clipped. Sparse input stays
    sparse; its range must hold 0, which is what an entry that is not stored stands for. Raises InputError where an
    entry is NaN, the range is not in order, or values are sparse and the range lacks 0.

    Args:
        values: dense or sparse rows [n, d].
        low, high: the declared, public range.

    >>> clip_to_range(torch.tensor([[-2.0, 0.5]]), 0.0, 1.0)
    tensor([[0.0000, 0.5000]])
    """
    if not low < high:
        raise InputError(f"the range is [{low!r}, {high!r}]", allowed="low below high")
    is_sparse = sparse.issparse(values) or (torch.is_tensor(values) and values.layout == torch.sparse_csr)
    if is_sparse and not low <= 0.0 <= high:
        raise InputError(f"sparse values cannot be clipped to [{low:g}, {high:g}]", allowed="a range with 0 in it")
    # NaN is not clipped to an end: which end would be a guess about a private value.
    read_rows(values).refuse_outside(-np.inf, np.inf)
    if torch.is_tensor(values):
        if values.layout == torch.sparse_csr:
            clipped = values.values().clamp(low, high)
            parts = values.crow_indices(), values.col_indices(), clipped
            return torch.sparse_csr_tensor(*parts, values.shape, check_invariants=False)
        return values.clamp(low, high)
    if sparse.issparse(values):
        copy = sparse.csr_matrix(values, copy=True)
        copy.data = np.clip(copy.data, low, high)
        return copy
    return np.clip(values, low, high)
