"""Arrays on disk that are read and written through the page cache: larger than memory, and shared without a copy."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from graphveil.errors import InputError


@dataclass(frozen=True)
class Mapped:
    """An array in a `.npy` file, which workers open by themselves: the path has to lead to it on every machine."""

    path: Path

    def open(self, *, writable: bool = False) -> npt.NDArray[Any]:
        """Return the array; nothing is read before it is used. Raises InputError: no file, or no array that can be
        mapped.
        """
        try:
            array: npt.NDArray[Any] = np.load(self.path, mmap_mode="r+" if writable else "r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise InputError(f"the array cannot be opened ({error})", where=str(self.path)) from error
        return array


def create(path: Path, shape: tuple[int, ...], kind: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return a new array on disk, all zero, that can be written; only its owner may read the file.

    Args:
        path: of the `.npy` file, which must not exist.
    """
    try:
        # Made with its mode: what passes through may be private, and a later change of mode would leave a gap.
        path.touch(mode=0o600, exist_ok=False)
    except FileExistsError as error:
        raise InputError("the file is there already", where=str(path), allowed="a new file") from error
    return np.lib.format.open_memmap(path, mode="w+", dtype=np.dtype(kind), shape=shape)


def room_beside(array: npt.NDArray[Any], shape: tuple[int, ...], kind: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return a new working array where another one lies: in memory, or in a file without a name.

    Args:
        array: the other one; kind: of its entries, which have no values yet.
    """
    place = getattr(array, "filename", None)
    if place is None or 0 in shape:
        return np.empty(shape, kind)
    # Without a name nobody else opens it, and it ends with its last reader.
    with tempfile.TemporaryFile(dir=Path(place).parent) as file:
        return np.memmap(file, kind, "w+", shape=shape)


def opened(array: npt.NDArray[Any] | Mapped | None) -> npt.NDArray[Any] | None:
    return array.open() if isinstance(array, Mapped) else array
