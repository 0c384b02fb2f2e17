"""Arrays in memory and on disk, as tensors: what an engine hands to its workers, and where results are written."""

from __future__ import annotations

import warnings
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from graphveil.engine import Mapped
from graphveil.errors import InputError
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor

#: Rows [n, c] in memory or on disk.
Dense: TypeAlias = "Tensor | npt.NDArray[Any] | Mapped"
#: Bytes of a line of the cache.
_LINE: Final = 64
#: From so many numbers on (16 MB) allocations come from the system each time.
_LARGE: Final = 1 << 22


def as_tensor(array: npt.NDArray[Any]) -> Tensor:
    """Return an array as a tensor without a copy; the tensor of a read-only array must not be written."""
    if array.flags.writeable:
        return torch.from_numpy(array)
    with warnings.catch_warnings():
        # Arrays shared by all tasks are read-only on purpose, but torch has no read-only tensors.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array)


def rows_of(x: Dense) -> Tensor:
    """Return rows as a tensor that shares their memory, or their file."""
    return x if isinstance(x, torch.Tensor) else as_tensor(x.open() if isinstance(x, Mapped) else x)


def overlap(out: npt.NDArray[Any], x: Dense) -> bool:
    """Return whether writing into `out` changes x: they share memory, or a file."""
    if isinstance(x, torch.Tensor):
        return bool(np.may_share_memory(out, x.detach().cpu().numpy()))
    array = x.open() if isinstance(x, Mapped) else x
    files = [getattr(side, "filename", None) for side in (out, array)]
    return bool(np.may_share_memory(out, array)) or (files[0] is not None and files[0] == files[1])


def require_room(out: npt.NDArray[Any] | None, rows: int, columns: int) -> npt.NDArray[Any]:
    """Return the array that results are written into, a new one where there is none.

    Args:
        out: an array of the caller's, of this shape and float32, else an InputError.
        rows, columns: of the result.
    """
    if out is None:
        return np.empty((rows, columns), np.float32)
    if out.shape != (rows, columns) or out.dtype != np.float32:
        raise InputError(f"out is {out.dtype} {out.shape}", allowed=f"float32 {(rows, columns)}")
    return out


def room(rows: int, columns: int, kind: npt.DTypeLike = np.float32) -> npt.NDArray[Any]:
    """Return an uninitialized array [rows, columns], whose first row is aligned to a cache line.

    Args:
        kind: of its entries.
    """
    if rows * columns < _LARGE:
        # By torch, which reuses memory and aligns it.
        return torch.empty(rows, columns, dtype=_torch_type(np.dtype(kind))).numpy()
    # By numpy, which asks for large pages: they make random access to rows quicker.
    size = rows * columns * np.dtype(kind).itemsize
    space = np.empty(size + _LINE, np.uint8)
    start = -space.ctypes.data % _LINE
    return space[start : start + size].view(kind).reshape(rows, columns)


@cache
def _torch_type(kind: np.dtype[Any]) -> torch.dtype:
    dtype: torch.dtype = getattr(torch, kind.name)
    return dtype


def widened(x: npt.NDArray[Any], *, many_products: bool = False) -> npt.NDArray[np.float32]:
    """Return x [n, c] as float32 or, where that pays, padded with columns of zeros to `quick_width`: then rows touch as
    few cache lines as possible and are added up in one pass. For one product of a small array the copy takes longer
    than it saves.

    Args:
        many_products: whether many products follow.
    """
    columns = x.shape[1]
    width = quick_width(columns)
    if width == columns or not (many_products or x.size >= _LARGE):
        return np.ascontiguousarray(x, np.float32)
    wide = room(len(x), width)
    wide[:, :columns], wide[:, columns:] = x, 0
    return wide


def quick_width(columns: int) -> int:
    """Return the columns from `columns` on with which a product on CPU is quickest, 4, 8 or a multiple of 16: such rows
    are added up in one pass, and lie in as few lines of the cache as they can.
    """
    return next((width for width in (4, 8) if columns <= width), -(-columns // 16) * 16)
