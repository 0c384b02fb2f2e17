"""Arrays in memory and on disk, as tensors: what an engine hands to its workers, and where results are written."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from graphveil.engine import Mapped
from graphveil.errors import InputError
from graphveil.runtime.late import torch

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
    return x if isinstance(x, torch.Tensor) else as_tensor(x.open() if isinstance(x, Mapped) else x)


def overlap(out: npt.NDArray[Any], x: Dense) -> bool:
    """Return whether what is written into `out` changes x: they share memory, or a file."""
    if isinstance(x, torch.Tensor):
        return bool(np.may_share_memory(out, x.detach().cpu().numpy()))
    array = x.open() if isinstance(x, Mapped) else x
    files = [getattr(one, "filename", None) for one in (out, array)]
    return bool(np.may_share_memory(out, array)) or (files[0] is not None and files[0] == files[1])


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
