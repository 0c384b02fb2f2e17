"""Published files of arrays (npz, npy, gz), opened safely: bounded before they are unpacked, nothing unpickled.

An archive declares the size of each member, and an array's header its shape and type. Both are read first, and compared
with a bound and with each other; what is unpacked never exceeds them.
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
_NUMBER_KINDS: Final = "biuf"


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
            # The declared sizes, before a byte is unpacked; zipfile never reads past them.
            _require_size(sum(member.file_size for member in members), path, largest)
            return [_array(archive, member) for member in members]
    except (DataError, MemoryError):
        raise
    except Exception as error:  # zipfile, zlib and NumPy raise many kinds on a damaged file
        raise DataError(f"cannot be read as arrays ({error})", where=str(path)) from error


def read_npy(path: Path) -> np.ndarray:
    """Return the array of an npy file; DataError as `read_npz`."""
    require_file(path)
    size = path.stat().st_size
    _require_size(size, path, LARGEST)
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
    """Return the content of a gzip file; DataError where it is damaged or unpacks to too much.

    Args:
        largest: the most bytes that it may unpack to.
    """
    require_file(path, packed=True)
    try:
        with gzip.open(path) as file:
            # One byte more than allowed tells a bomb from a file that fits, without unpacking all of it.
            content = file.read(largest + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"cannot be unpacked ({error})", where=str(path)) from error
    _require_size(len(content), path, largest)
    return content


def require_valid_rows(matrix: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return a SciPy matrix if all its indices are inside it, else ValueError: SciPy would access other memory."""
    if bool((np.diff(matrix.indptr) < 0).any()):  # `check_format` does not check this where the last start is 0
        raise ValueError("starts of rows that decrease")
    matrix.check_format(full_check=True)
    return matrix


def whole_numbers(values: np.ndarray, what: str) -> np.ndarray:
    """Return numbers as int64; ValueError where a number would change.

    Args:
        values: numbers of any type and shape.
        what: their name in the message.
    """
    with np.errstate(invalid="ignore"):
        array: np.ndarray = values.astype(np.int64)
    if values.dtype.kind not in _NUMBER_KINDS or not np.array_equal(array, values):
        raise ValueError(f"{what} are not whole numbers")
    return array


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    with archive.open(member) as file:
        # Parsed twice on purpose: NumPy, below, would allocate whatever an unchecked header declares.
        _check_header(file, member.file_size)
    with archive.open(member) as file:
        array: np.ndarray = np.lib.format.read_array(file, allow_pickle=False)
        return array


def _check_header(file: IO[bytes], size: int) -> None:
    """Refuse an array of objects or texts, and one that claims to be larger than its file."""
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"an array of format {version}")
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, kind = read_header(file)
    if kind.kind not in _NUMBER_KINDS:
        raise ValueError(f"an array of {kind.name}, not of numbers")
    if any(length < 0 for length in shape) or math.prod(shape) * kind.itemsize > size:
        raise ValueError(f"an array of shape {shape} in {size:,} bytes")


def _require_size(size: int, path: Path, largest: int) -> None:
    if size > largest:
        allowed = f"at most {largest / MIB:,.0f} MiB for such a file"
        raise DataError(f"unpacks to {size / MIB:,.0f} MiB or more", where=str(path), allowed=allowed)


BOUND = 4.0
EMBEDDED_RANGE: Final = (-BOUND, BOUND)
EMBEDDED_SOURCE = (
    f"declared by graphveil: the embedding has no published bound, so -{BOUND:g} to {BOUND:g} is fixed in "
    "the program and values beyond it are clipped"
)


def embedded_features(values: np.ndarray, where: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return float32 features clipped to EMBEDDED_RANGE, and a note where any was clipped.

    Args:
        values: [n, d], of any type of numbers; not changed. DataError where one is NaN.
        where: their file, for the message.
    """
    # A bound fixed in the program: the largest value in the data is a function of one person's row.
    x, changed = clip_features(np.array(values, dtype=np.float32), *EMBEDDED_RANGE, where)
    return x, (f"clipped {count_of(changed, 'feature value')} to -{BOUND:g}..{BOUND:g}",) if changed else ()
