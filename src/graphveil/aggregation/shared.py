"""Arrays in memory and on disk, as tensors: what an engine hands to its workers, and where results are written."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from graphveil.engine import Mapped
from graphveil.errors import InputError
from graphveil.late import torch

if TYPE_CHECKING:
    from torch import Tensor

#: Rows [n, c] in memory or on disk.
Dense: TypeAlias = "Tensor | npt.NDArray[Any] | Mapped"


def as_tensor(array: npt.NDArray[Any]) -> Tensor:
    """Return an array without a copy; one that may not be written, on disk or in shared memory, must not be written."""
    with warnings.catch_warnings():
        # What a task shares with all others is read-only on purpose, and torch has no tensors that are.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array)


def rows_of(x: Dense) -> Tensor:
    """Return rows as a tensor that shares their memory, or their file."""
    array = x.open() if isinstance(x, Mapped) else x
    return as_tensor(array) if isinstance(array, np.ndarray) else array


def require_room(out: npt.NDArray[Any] | None, rows: int, columns: int) -> npt.NDArray[Any]:
    """Return the array that results are written into, a new one where there is none.

    Args:
        out: an array of the caller's; None: there is none.
        rows, columns: of the result.

    Raises:
        InputError: it has another shape or type.
    """
    if out is None:
        return np.empty((rows, columns), np.float32)
    if out.shape != (rows, columns) or out.dtype != np.float32:
        raise InputError(f"out is {out.dtype} {out.shape}", allowed=f"float32 {(rows, columns)}")
    return out
