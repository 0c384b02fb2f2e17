"""Published files of arrays (npz, npy, gz), opened safely: bounded before they are unpacked, nothing unpickled.

What a file unpacks to is known from what it declares: the size of each member of an archive, the shape and type in each
array's header. Both are read first, and compared with a bound and with each other; what is unpacked never exceeds them.
"""

from __future__ import annotations

import gzip
import math
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Final

import numpy as np

from graphveil.errors import DataError
from graphveil.files.reading import MIB, require_file
from graphveil.graphs.value.features import clip_features
from graphveil.runtime.late import sparse
from graphveil.runtime.words import count_of

#: The most bytes that the arrays of one published file may take.
LARGEST: Final = 1024 * MIB
_PLAIN: Final = "biuf"


def read_npz(path: Path, names: Sequence[str], *, largest: int = LARGEST) -> list[np.ndarray]:
    """Return arrays of an npz file.

    Args:
        names: of the arrays, without `.npy`.
        largest: the most bytes that they may take together.

    Raises:
        DataError: the file is damaged, lacks an array, holds objects, or is too large.
    """
    require_file(path, packed=True)
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            members = [archive.getinfo(f"{name}.npy") for name in names]
            # By what the directory says, before a byte is unpacked; what follows never reads past it.
            _require(sum(member.file_size for member in members), path, largest)
            return [_array(archive, member) for member in members]
    except (DataError, MemoryError):
        raise
    except Exception as error:  # zipfile, zlib and NumPy raise many kinds on a damaged file
        raise DataError(f"cannot be read as arrays ({error})", where=str(path)) from error


def read_npy(path: Path) -> np.ndarray:
    """Return the array of an npy file; DataError as `read_npz`."""
    require_file(path)
    size = path.stat().st_size
    _require(size, path, LARGEST)
    try:
        with path.open("rb") as file:
            _check_header(file, size)
            file.seek(0)
            array: np.ndarray = np.lib.format.read_array(file, allow_pickle=False)
            return array
    except (DataError, MemoryError):
        raise
    except Exception as error:
        raise DataError(f"cannot be read as an array ({error})", where=str(path)) from error


def read_gzip(path: Path, *, largest: int = LARGEST) -> bytes:
    """Return what a gzip file unpacks to; DataError where the file is damaged, or unpacks to more than `largest` bytes.

    Args:
        largest: as said.
    """
    require_file(path, packed=True)
    try:
        with gzip.open(path) as file:
            # One byte more than allowed tells a bomb from a file that fits, without unpacking all of it.
            content = file.read(largest + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"cannot be unpacked ({error})", where=str(path)) from error
    _require(len(content), path, largest)
    return content


def whole_rows(matrix: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return a SciPy matrix whose indices are all inside it, else ValueError: SciPy itself would write elsewhere."""
    if bool((np.diff(matrix.indptr) < 0).any()):  # what comes next does not look where the last start is 0
        raise ValueError("starts of rows that decrease")
    matrix.check_format(full_check=True)
    return matrix


def whole_numbers(values: np.ndarray, what: str) -> np.ndarray:
    """Return numbers as int64; ValueError where a number would change.

    Args:
        values: numbers of any type and shape.
    """
    with np.errstate(invalid="ignore"):
        array: np.ndarray = values.astype(np.int64)
    if values.dtype.kind not in _PLAIN or not np.array_equal(array, values):
        raise ValueError(f"{what} are not whole numbers")
    return array


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    with archive.open(member) as file:
        # Parsed twice on purpose: here to judge it, below by NumPy, which would allocate whatever it says.
        _check_header(file, member.file_size)
    with archive.open(member) as file:
        array: np.ndarray = np.lib.format.read_array(file, allow_pickle=False)
        return array


def _check_header(file: IO[bytes], size: int) -> None:
    """Refuse an array of objects or texts, and one that claims to be larger than its file."""
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"an array of format {version}")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, kind = read(file)
    if kind.kind not in _PLAIN:
        raise ValueError(f"an array of {kind.name}, not of numbers")
    if any(length < 0 for length in shape) or math.prod(shape) * kind.itemsize > size:
        raise ValueError(f"an array of shape {shape} in {size:,} bytes")


def _require(size: int, path: Path, largest: int) -> None:
    if size > largest:
        allowed = f"at most {largest / MIB:,.0f} MiB for such a file"
        raise DataError(f"unpacks to {size / MIB:,.0f} MiB or more", where=str(path), allowed=allowed)


BOUND = 4.0
EMBEDDED_SOURCE = (
    f"declared by graphveil: the embedding has no published bound, so -{BOUND:g} to {BOUND:g} is fixed in "
    "the program and values beyond it are clipped"
)


def embedded_features(values: np.ndarray, where: str) -> tuple[np.ndarray, tuple[float, float], tuple[str, ...]]:
    """Return float32 features clipped to the fixed range, that range, and a note when anything was clipped.

    Args:
        values: [n, d], of any type of numbers; not changed. DataError where one is NaN.
        where: their file, for the message.
    """
    # A bound fixed in the program: the data's own largest value is a function of one person's row.
    x, changed = clip_features(np.array(values, dtype=np.float32), -BOUND, BOUND, where)
    notes = (f"clipped {count_of(changed, 'feature value')} to -{BOUND:g}..{BOUND:g}",) if changed else ()
    return x, (-BOUND, BOUND), notes
