"""Estimates from reports about a few sampled coordinates: zero, less the middle, wherever nobody reported."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import scipy.sparse

from graphveil.errors import InputError
from graphveil.mechanisms.base.reports import require_inside
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor


Worth = npt.NDArray[np.float32]


def centred_rows(indices: Tensor, worth: Worth, dimension: int) -> scipy.sparse.csr_matrix:
    """The estimates minus the middle of the range, [n, d] with k numbers a row.

    Args:
        indices: int32 [n, k], the sampled coordinates, ascending.
        worth: float32 [n, k], what each adds.
        dimension: d.
    """
    count, size = worth.shape
    parts = (worth.ravel(), indices.numpy().ravel(), np.arange(0, count * size + 1, size))
    return scipy.sparse.csr_matrix(parts, shape=(count, dimension))


def dense_rows(indices: Tensor, worth: Worth, dimension: int, midpoint: float) -> Tensor:
    """The estimates, dense float32 [n, d].

    Args:
        indices, worth, dimension: as for `centred_rows`.
        midpoint: of the range, where coordinates stay that were not reported.
    """
    dense = torch.full((len(worth), dimension), midpoint)
    return dense.scatter_add_(1, indices.long(), torch.from_numpy(worth))


def require_subsets(indices: Tensor, size: int, dimension: int, name: str) -> None:
    """Refuse what no device samples.

    Args:
        indices: int32 [n, k], the coordinates that were named.
        size: how many there must be.
        dimension: d.
        name: a report holds one of for each, for the message: "bits".

    Raises:
        InputError: another number of coordinates, one that there is not, or a row that is not ascending.
    """
    if indices.shape[1] != size:
        raise InputError(f"reports hold {indices.shape[1]} {name}", allowed=f"{size}")
    require_inside(indices, 0, dimension - 1, "a coordinate")
    # A forged report that names one coordinate k times would push it k times as far as an honest one can.
    if not bool((indices[:, 1:] > indices[:, :-1]).all()):
        raise InputError("a report names its coordinates out of order or twice", allowed="ascending")
