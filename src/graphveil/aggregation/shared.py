"""Arrays that an engine hands to its workers, as tensors."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from graphveil.late import torch

if TYPE_CHECKING:
    from torch import Tensor


def as_tensor(array: npt.NDArray[Any]) -> Tensor:
    """Return an array without a copy; one that may not be written, on disk or in shared memory, must not be written."""
    with warnings.catch_warnings():
        # What a task shares with all others is read-only on purpose, and torch has no tensors that are.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array)
