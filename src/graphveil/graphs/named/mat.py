"""Numbers and sparse matrices of a MATLAB 5 file, read by hand: SciPy's reader does not survive every damaged file.

    header (128 bytes), then elements: type (4 bytes), size (4 bytes), content, up to 7 bytes that fill the last 8
    matrix = flags, dimensions, name, then numbers, or (sparse) rows, starts of columns, numbers
    compressed = one element more, packed with zlib

Source: MathWorks, "MAT-File Format", version 5.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from graphveil.errors import DataError
from graphveil.files.reading import MIB, read_bytes

_LARGEST: Final = 1024 * MIB
_HEADER: Final = 128
_KINDS: Final = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_MATRIX, _COMPRESSED = 14, 15
_SPARSE, _NUMBERS = 5, range(6, 16)

Element = tuple[int, memoryview]


def read_mat(path: Path, *, largest: int = _LARGEST) -> dict[str, Any]:
    """Return the arrays of a file, and its sparse matrices as SciPy's by columns; what is neither is left out.

    DataError where it is no MATLAB 5 file, is damaged, or has or unpacks to more than `largest` bytes.
    """
    content = read_bytes(path, largest=largest)
    order = {b"IM": "<", b"MI": ">"}.get(content[126:_HEADER])
    if order is None or not content.startswith(b"MATLAB 5.0"):
        raise DataError("is not a MATLAB 5 file", where=str(path))
    matrices: dict[str, Any] = {}
    try:
        for kind, part in _elements(memoryview(content)[_HEADER:], order):
            if kind == _COMPRESSED:
                unpacked = _unpacked(part, largest)
                # A bound for all parts together: a thousand small bombs are one large one.
                largest -= len(unpacked)
                ((kind, part),) = _elements(memoryview(unpacked), order)
            if kind == _MATRIX:
                matrices |= _matrix(part, order)
    except (ValueError, TypeError, struct.error, zlib.error) as error:
        raise DataError(f"is damaged ({error})", where=str(path)) from error
    return matrices


def _elements(content: memoryview, order: str) -> Iterator[Element]:
    while len(content) >= 8:
        kind, size = struct.unpack(f"{order}II", content[:8])
        if kind >> 16:  # a short one: its size stands beside its type, its content in place of the size
            kind, size, start = kind & 0xFFFF, kind >> 16, 4
        else:
            start = 8
        # Checked against what is there, not what is announced: slices would silently be shorter.
        if start + size > (8 if start == 4 else len(content)):
            raise ValueError(f"an element of {size:,} bytes in {len(content):,}")
        yield kind, content[start : start + size]
        end = start + size
        content = content[end if kind == _COMPRESSED else -(-end // 8) * 8 :]


def _unpacked(part: memoryview, largest: int) -> bytes:
    stream = zlib.decompressobj()
    unpacked = stream.decompress(part, largest)
    if not stream.eof:
        raise ValueError(f"it unpacks to {len(unpacked) / MIB:,.0f} MiB or more, or ends early")
    return unpacked


def _matrix(content: memoryview, order: str) -> dict[str, Any]:
    """Return {name: array}, or nothing of texts, cells and structures."""
    parts = list(_elements(content, order))
    if len(parts) < 4:
        return {}
    flags, shape = _numbers(parts[0], order), tuple(int(length) for length in _numbers(parts[1], order))
    kind, name = int(flags[0]) & 0xFF, bytes(parts[2][1]).decode("ascii", "replace")
    if kind == _SPARSE and len(parts) > 5 and len(shape) == 2:
        from scipy.sparse import csc_matrix

        rows, starts, values = (_numbers(part, order) for part in parts[3:6])
        count = int(starts[-1]) if len(starts) else 0
        if not 0 <= count <= min(len(rows), len(values)):
            raise ValueError(f"{count} entries in a list of {min(len(rows), len(values))}")
        return {name: csc_matrix((values[:count], rows[:count], starts), shape=shape)}
    return {name: _numbers(parts[3], order).reshape(shape, order="F")} if kind in _NUMBERS else {}


def _numbers(element: Element, order: str) -> np.ndarray:
    kind, content = element
    if kind not in _KINDS:
        raise ValueError(f"numbers of type {kind}")
    values: np.ndarray = np.frombuffer(content, f"{order}{_KINDS[kind]}")
    return values.astype(values.dtype.newbyteorder("="))
