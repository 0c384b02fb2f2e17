"""Facebook100: the friendships of one American university in 2005, with profile fields, as a mat file.

Source: Traud, Mucha, Porter, "Social Structure of Facebook Networks", Physica A 2012. The MATLAB 5 file is parsed here,
since SciPy's reader crashes on some damaged files (MathWorks, "MAT-File Format", version 5):

    header (128 bytes), then elements: type (4 bytes), size (4 bytes), content, padding to a multiple of 8 bytes
    matrix = flags, dimensions, name, then numbers, or (sparse) rows, starts of columns, numbers
    compressed = another element, packed with zlib
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from graphveil.errors import DataError, InputError, MissingDataError
from graphveil.files.columns import Category, Column, width_of
from graphveil.files.reading import MIB, read_bytes
from graphveil.graphs.named.archives import require_valid_rows, whole_numbers
from graphveil.graphs.value.checks import check_parts
from graphveil.graphs.value.edges import merge_edges
from graphveil.graphs.value.features import compact_rows
from graphveil.graphs.value.parts import GraphParts
from graphveil.graphs.value.schema import GraphSchema
from graphveil.runtime.late import sparse
from graphveil.runtime.words import count_of

_LARGEST: Final = 1024 * MIB
_HEADER: Final = 128
_KINDS: Final = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_MATRIX, _COMPRESSED = 14, 15
_SPARSE, _NUMBERS = 5, range(6, 16)

Element = tuple[int, memoryview]


def read_mat(path: Path, *, largest: int = _LARGEST) -> dict[str, Any]:
    """Return the arrays of a file, and its sparse matrices as SciPy CSC; everything else is left out.

    Args:
        path: of the file; DataError where it is no MATLAB 5 file, or damaged.
        largest: the most bytes that it may have, and that it may unpack to.
    """
    content = read_bytes(path, largest=largest)
    order = {b"IM": "<", b"MI": ">"}.get(content[126:_HEADER])
    if order is None or not content.startswith(b"MATLAB 5.0"):
        raise DataError("is not a MATLAB 5 file", where=str(path))
    matrices: dict[str, Any] = {}
    try:
        for kind, part in _elements(memoryview(content)[_HEADER:], order):
            if kind == _COMPRESSED:
                stream = zlib.decompressobj()
                unpacked = stream.decompress(part, largest)
                if not stream.eof:
                    raise ValueError(f"it unpacks to {len(unpacked) / MIB:,.0f} MiB or more, or ends early")
                # One bound for all parts together: a thousand small bombs are one large one.
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
        if kind >> 16:  # a short element: its size is in the upper half of the type, its content in the size field
            kind, size, start = kind & 0xFFFF, kind >> 16, 4
        else:
            start = 8
        # Checked, since a slice past the end would silently be shorter.
        if start + size > (8 if start == 4 else len(content)):
            raise ValueError(f"an element of {size:,} bytes in {len(content):,}")
        yield kind, content[start : start + size]
        end = start + size
        content = content[end if kind == _COMPRESSED else -(-end // 8) * 8 :]


def _matrix(content: memoryview, order: str) -> dict[str, Any]:
    """Return {name: array}, or nothing for texts, cells and structures."""
    parts = list(_elements(content, order))
    if len(parts) < 4:
        return {}
    flags, shape = _numbers(parts[0], order), tuple(int(length) for length in _numbers(parts[1], order))
    kind, name = int(flags[0]) & 0xFF, bytes(parts[2][1]).decode("ascii", "replace")
    if kind == _SPARSE and len(parts) > 5 and len(shape) == 2:
        rows, starts, values = (_numbers(part, order) for part in parts[3:6])
        count = int(starts[-1]) if len(starts) else 0
        if not 0 <= count <= min(len(rows), len(values)):
            raise ValueError(f"{count_of(count, 'entry')} in a list of {min(len(rows), len(values))}")
        return {name: sparse.csc_matrix((values[:count], rows[:count], starts), shape=shape)}
    return {name: _numbers(parts[3], order).reshape(shape, order="F")} if kind in _NUMBERS else {}


def _numbers(element: Element, order: str) -> np.ndarray:
    kind, content = element
    if kind not in _KINDS:
        raise ValueError(f"numbers of type {kind}")
    values: np.ndarray = np.frombuffer(content, f"{order}{_KINDS[kind]}")
    return values.astype(values.dtype.newbyteorder("="))


YEARS = tuple(range(2004, 2010))
"""The classes: the six class years that GAP (Sajadmanesh et al., USENIX Security 2023) uses."""

# Column of `local_info` -> number of buckets for its codes: which codes occur is private; 0 is an empty field.
_STATUS, _GENDER, _MAJOR, _MINOR, _HOUSING, _YEAR, _SCHOOL = range(7)
BUCKETS = {_STATUS: 8, _GENDER: 4, _MAJOR: 256, _MINOR: 256, _HOUSING: 256, _SCHOOL: 1024}
GENDER_BUCKETS = {_STATUS: 8, _MAJOR: 256, _MINOR: 256, _HOUSING: 256, _YEAR: 64, _SCHOOL: 1024}

_NAMES = ("status", "gender", "major", "minor", "housing", "year", "school")

_SOURCE = (
    "declared by graphveil: status, gender, major, minor, housing and school, each one-hot in 8, 4, 256, "
    "256, 256 and 1024 fixed buckets (code modulo buckets), 0 or 1; the classes are the class years 2004 to "
    "2009, other years count as unknown"
)
_SOURCE_OF_GENDER = (
    "declared by graphveil: status, major, minor, housing, year and school, each one-hot in 8, 256, 256, 256, 64 and "
    "1024 fixed buckets (code modulo buckets), 0 or 1; the classes are the two codes of gender, 0 counts as unknown"
)
_SOURCE_OF_YEARS = (
    "declared by graphveil: status, gender, major, minor and housing, each one-hot in 8, 4, 256, 256 and 256 fixed "
    "buckets (code modulo buckets), 0 or 1; who is in the graph, and the classes, are the class years in its name"
)


def load_facebook100(university: str, root: Path) -> GraphParts:
    """Return the graph of one university's mat file, the name compared without case.

    The file is `root/facebook100/<university>.mat`, or PyG's copy `root/pyg/LINKX/<university>/raw/data.mat`. It holds
    the sparse matrix `A` and the table `local_info`; the classes are class years.

    `<university>-<first>-<last>` is the part that papers on private graph learning use: only the people of those class
    years, without their schools. `<university>-gender` predicts gender instead of the class year, as papers on graphs
    without homophily do (code 1 or 2, else unknown; Lim et al., NeurIPS 2021).

    Args:
        university: as above, in lower case.

    Raises:
        MissingDataError: there is no such file; names those that are there.
        DataError: the file is damaged.
        InputError: the last year is not after the first.
    """
    name, years, by_gender = f"facebook100-{university}", None, university.endswith("-gender")
    if by_gender:
        university = university.removesuffix("-gender")
    elif part := re.fullmatch(r"(.+)-(\d{4})-(\d{4})", university):
        university, years = part[1], range(int(part[2]), int(part[3]) + 1)
        if len(years) < 2:
            raise InputError(f"class years {part[2]} to {part[3]}", allowed="at least two, the first one first")
    path = _file_of(university, root)
    try:
        content = read_mat(path)
        adjacency, fields = require_valid_rows(content["A"]).tocoo(), whole_numbers(content["local_info"], "local_info")
        if fields.shape != (adjacency.shape[0], 7):
            raise ValueError(f"local_info has shape {fields.shape}")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"is not a Facebook100 file ({error})", where=str(path), allowed="A, local_info") from error
    year, gender = fields[:, _YEAR], fields[:, _GENDER]
    if by_gender:
        y = np.where((gender == 1) | (gender == 2), gender - 1, -1)
        unknown = int((y < 0).sum())
        note = f"{count_of(unknown, 'node')} {'states' if unknown == 1 else 'state'} no gender: label unknown"
        return _graph(name, adjacency, fields, GENDER_BUCKETS, y, ("gender 1", "gender 2"), _SOURCE_OF_GENDER, note)
    if years is None:
        y = np.where((year >= YEARS[0]) & (year <= YEARS[-1]), year - YEARS[0], -1)
        unknown = int((y < 0).sum())
        has = "has" if unknown == 1 else "have"
        note = f"{count_of(unknown, 'node')} {has} no class year of 2004 to 2009: label unknown"
        return _graph(name, adjacency, fields, BUCKETS, y, tuple(map(str, YEARS)), _SOURCE, note)
    selected = np.flatnonzero((year >= years[0]) & (year <= years[-1]))
    inside = adjacency.tocsr()[selected][:, selected].tocoo()
    buckets = {column: size for column, size in BUCKETS.items() if column != _SCHOOL}
    other_years = len(year) - len(selected)
    note = f"{count_of(other_years, 'node')} of other class years {'is' if other_years == 1 else 'are'} left out"
    y = year[selected] - years[0]
    return _graph(name, inside, fields[selected], buckets, y, tuple(map(str, years)), _SOURCE_OF_YEARS, note)


def _file_of(university: str, root: Path) -> Path:
    """Return the mat file of a university; the folder of mat files comes before PyG's layout."""
    folder = root / "facebook100"
    paths = {path.parent.parent.name.lower(): path for path in sorted((root / "pyg/LINKX").glob("*/raw/data.mat"))}
    paths |= {re.sub(r"[ _]", "-", path.stem.lower()): path for path in sorted(folder.glob("*.mat"))}
    if university not in paths:
        available = (
            ", ".join(path.stem if path.stem != "data" else name for name, path in paths.items()) or "no mat file"
        )
        remedy = f"put the university's mat file (A, local_info) into {folder}"
        raise MissingDataError(f"no file for {university!r}, only {available}", where=str(folder), remedy=remedy)
    return paths[university]


def _graph(
    name: str,
    adjacency: sparse.coo_matrix,
    fields: np.ndarray,
    buckets: Mapping[int, int],
    y: np.ndarray,
    classes: tuple[str, ...],
    source: str,
    note: str,
) -> GraphParts:
    edge_index, notes = merge_edges(adjacency.row, adjacency.col, len(fields), directed=False)
    # An empty field is an answer too: code 0 says that somebody did not fill it in.
    kinds = {field: Category(tuple(map(str, range(size))), empty=True) for field, size in buckets.items()}
    notes, columns = (note, *notes), tuple(Column(_NAMES[field], kind) for field, kind in kinds.items())
    schema = GraphSchema(name, width_of(columns), 0.0, 1.0, classes, source=source, notes=notes, columns=columns)
    rows, features, start = [], [], 0
    for column, size in buckets.items():
        filled = np.flatnonzero(fields[:, column])
        rows.append(filled)
        # Modulo a fixed number: a vocabulary of the codes that occur would reveal who is in the data.
        features.append(start + fields[filled, column] % size)
        start += size
    where = (np.concatenate(rows), np.concatenate(features))
    x = sparse.csr_matrix((np.ones(len(where[0]), dtype=np.float32), where), shape=(len(fields), start))
    return check_parts(GraphParts(compact_rows(x), edge_index, y, schema))
