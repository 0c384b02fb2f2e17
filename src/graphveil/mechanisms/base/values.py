"""One reader for every format of private values; it never makes more than one block of rows dense."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from graphveil.errors import InputError
from graphveil.runtime.late import sparse, torch

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer[Any]]
# What `randomize` takes: dense [n, d], or compressed sparse rows.
Values: TypeAlias = "torch.Tensor | npt.NDArray[Any] | sparse.csr_matrix"

# Numbers processed at a time: few enough to stay in the cache, enough to amortise the calls.
BLOCK: Final = 1 << 18


class Rows(Protocol):
    """Rows of private values, read block by block."""

    @property
    def shape(self) -> tuple[int, int]: ...

    @property
    def stored(self) -> int:
        """Numbers held in memory."""

    @property
    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """The arrays that hold the numbers: one dense array, or row starts, columns and entries."""

    def block(self, start: int, stop: int) -> FloatArray:
        """Rows start..stop, dense [stop - start, d]."""

    def at(self, start: int, stop: int, columns: IntArray) -> FloatArray:
        """The entries of rows start..stop at `columns` [stop - start, m].

        Args:
            columns: integers [stop - start, m], the columns to read in each row, ascending.
        """

    def refuse_outside(self, low: float, high: float) -> None:
        """Raise InputError with row and column of the first entry that is not a number in [low, high]."""


@dataclass(frozen=True)
class DenseRows:
    """A dense matrix, possibly memory-mapped."""

    array: npt.NDArray[Any]

    @property
    def shape(self) -> tuple[int, int]:
        rows, columns = self.array.shape
        return rows, columns

    @property
    def stored(self) -> int:
        return self.array.size

    @property
    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        return (self.array,)

    def block(self, start: int, stop: int) -> FloatArray:
        return self.array[start:stop].astype(np.float64)

    def at(self, start: int, stop: int, columns: IntArray) -> FloatArray:
        picked: npt.NDArray[Any] = np.take_along_axis(self.array[start:stop], columns, axis=1)
        return picked.astype(np.float64)

    def refuse_outside(self, low: float, high: float) -> None:
        # Block by block, so that a memory-mapped matrix is never in memory as a whole.
        for start, stop in blocks(self.shape[0], self.shape[1]):
            part = self.array[start:stop]
            # Comparisons with NaN are False, so this lets no NaN pass.
            if part.size and not (part.min() >= low and part.max() <= high):
                row, column = np.argwhere(~((part >= low) & (part <= high)))[0]
                raise _outside(part[row, column], start + int(row), int(column), low, high)


@dataclass(frozen=True)
class SparseRows:
    """Compressed sparse rows with sorted, distinct columns in every row."""

    starts: IntArray
    columns: IntArray
    entries: npt.NDArray[Any]
    width: int

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.starts) - 1, self.width

    @property
    def stored(self) -> int:
        return self.entries.size

    @property
    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        return self.starts, self.columns, self.entries

    def block(self, start: int, stop: int) -> FloatArray:
        keys, entries = self._keys(start, stop)
        dense = np.zeros((stop - start) * self.width)
        dense[keys] = entries
        return dense.reshape(stop - start, self.width)

    def at(self, start: int, stop: int, columns: IntArray) -> FloatArray:
        keys, entries = self._keys(start, stop)
        positions = np.arange(stop - start)[:, None] * self.width + columns
        if not keys.size:
            return np.zeros(positions.shape)
        # Stored keys ascend, so that one search tells both whether an entry is stored and where.
        index = np.minimum(np.searchsorted(keys, positions), keys.size - 1)
        return np.where(keys[index] == positions, entries[index], 0.0)

    def refuse_outside(self, low: float, high: float) -> None:
        # All entries are checked before any is encoded: a refusal then reveals nothing of the rows before it.
        for start in range(0, self.entries.size, BLOCK):
            part = self.entries[start : start + BLOCK]
            if not (part.min() >= low and part.max() <= high):
                first = start + int(np.argmin((part >= low) & (part <= high)))
                row = int(np.searchsorted(self.starts, first, side="right")) - 1
                raise _outside(self.entries[first], row, int(self.columns[first]), low, high)
        # Zeros that are not stored are values like any other, and a range without 0 has to refuse them too.
        if not low <= 0.0 <= high:
            self._refuse_gaps(low, high)

    def is_canonical(self) -> bool:
        """Whether the columns of every row are sorted, distinct and inside the matrix."""
        if self.entries.size and not (self.columns.min() >= 0 and self.columns.max() < self.width):
            return False
        for start, stop in blocks(self.shape[0], max(1, self.stored // max(1, self.shape[0]))):
            keys, _ = self._keys(start, stop)
            if not np.all(keys[1:] > keys[:-1]):
                return False
        return True

    def _keys(self, start: int, stop: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
        """Position of every stored entry of a block when the block is read row by row, in ascending order."""
        first, last = int(self.starts[start]), int(self.starts[stop])
        counts = np.diff(self.starts[start : stop + 1])
        keys = np.repeat(np.arange(stop - start, dtype=np.int64) * self.width, counts)
        keys += self.columns[first:last]
        return keys, self.entries[first:last]

    def _refuse_gaps(self, low: float, high: float) -> None:
        """An entry that is not stored is 0: refuse it where 0 is outside the declared range."""
        short = np.flatnonzero(np.diff(self.starts) < self.width)
        if short.size:
            row = int(short[0])
            stored = self.columns[self.starts[row] : self.starts[row + 1]]
            raise _outside(0.0, row, int(np.setdiff1d(np.arange(self.width), stored)[0]), low, high)


def open_rows(values: Values, dimension: int) -> Rows:
    """A reader for `values`. Raises InputError for another kind of value, another shape, or numbers that are not real.

    Args:
        values: torch dense or sparse_csr [n, d], numpy [n, d], or a scipy sparse matrix [n, d].
    """
    rows = read_rows(values)
    if rows.shape[1] != dimension:
        raise InputError(f"the values have {rows.shape[1]} columns", allowed=f"{dimension}, the mechanism's dimension")
    return rows


def open_values(values: Values, dimension: int, low: float, high: float) -> Rows:
    """A reader of `values`, after a check that all of them are numbers in [low, high]. Raises InputError as `open_rows`
    does, and for an entry that is NaN or out of range: its row and column are named, never the value.

    Args:
        low, high: the declared range of every entry, those that are not stored included.
    """
    rows = open_rows(values, dimension)
    # Before the first draw: a later error would leave budget spent on reports that nobody has.
    rows.refuse_outside(low, high)
    return rows


def blocks(rows: int, width: int, most: int = BLOCK) -> Iterator[tuple[int, int]]:
    """Consecutive (start, stop) that cover `rows` rows of `width` numbers, with about `most` numbers each.

    Args:
        most: numbers of a block; a longer row makes a block of its own.
    """
    step = max(1, most // max(1, width))
    return ((start, min(start + step, rows)) for start in range(0, rows, step))


def read_rows(values: Values) -> Rows:
    """A reader for `values` of any width; raises InputError for what is no matrix of real numbers."""
    if isinstance(values, np.ndarray):
        return _dense_reader(values)
    if torch.is_tensor(values):
        return _tensor_reader(values.detach().cpu())
    if sparse.issparse(values):
        return _sparse_reader(values.tocsr())
    raise InputError(
        f"values are {type(values).__name__}", allowed="a torch tensor, a numpy array or a scipy sparse matrix"
    )


def _tensor_reader(values: torch.Tensor) -> Rows:
    # numpy has no bfloat16: the conversion below would fail with an error that does not mention the values.
    if values.dtype == torch.bfloat16:
        raise InputError("values are bfloat16", allowed="another real type", remedy="call .float()")
    if values.layout == torch.strided:
        return _dense_reader(values.numpy())
    if values.layout != torch.sparse_csr:
        raise InputError(f"values are {values.layout}", allowed="dense, sparse_csr")
    rows = SparseRows(
        values.crow_indices().numpy(), values.col_indices().numpy(), values.values().numpy(), values.shape[1]
    )
    _require_real(rows.entries)
    # Torch promises neither sorted nor distinct columns; scipy adds duplicates up, as the matrix they stand for.
    if rows.is_canonical():
        return rows
    parts = (rows.entries, rows.columns, rows.starts)
    return _sparse_reader(sparse.csr_matrix(parts, shape=tuple(values.shape)))


def _sparse_reader(values: sparse.csr_matrix) -> Rows:
    _require_real(values.data)
    if not values.has_canonical_format:
        # The caller keeps its own matrix: adding duplicates up works in place.
        values = values.copy()
        values.sum_duplicates()
    return SparseRows(values.indptr, values.indices, values.data, values.shape[1])


def _dense_reader(values: npt.NDArray[np.generic]) -> Rows:
    if values.ndim != 2:
        raise InputError(f"values have shape {values.shape}", allowed="two dimensions: users x coordinates")
    _require_real(values)
    return DenseRows(values)


def _require_real(values: npt.NDArray[np.generic]) -> None:
    # Complex numbers and objects have no order, so no comparison with the declared range could refuse them.
    if values.dtype.kind not in "fiub":
        raise InputError(f"values are {values.dtype}", allowed="real numbers")


def _outside(value: float, row: int, column: int, low: float, high: float) -> InputError:
    """The refusal of one entry: where, not what, since messages end in logs and the value is private."""
    if np.isnan(value):
        problem, remedy = "the value is NaN", "fill in missing values before they are encoded"
    else:
        side = "below" if value < low else "above"
        problem = f"the value lies {side} the declared range"
        remedy = "declare the range that is publicly known to hold, or clip with clip_to_range"
    return InputError(
        problem, where=f"values, row {row}, column {column}", allowed=f"[{low:g}, {high:g}]", remedy=remedy
    )


def clip_to_range(values: Values, low: float, high: float) -> Values:
    """`values` with every number below `low` or above `high` moved to the nearer end, as a new object. For users who
    ask for clipping: mechanisms themselves refuse what is out of range. Infinities are clipped. Sparse input stays
    sparse; its range must hold 0, which is what an entry that is not stored stands for. Raises InputError where an
    entry is NaN, the range is not in order, or values are sparse and the range lacks 0.

    Args:
        values: dense or sparse rows [n, d].
        low, high: the declared, public range.

    >>> clip_to_range(torch.tensor([[-2.0, 0.5]]), 0.0, 1.0)
    tensor([[0.0000, 0.5000]])
    """
    if not low < high:
        raise InputError(f"the range is [{low!r}, {high!r}]", allowed="low below high")
    is_sparse = sparse.issparse(values) or (torch.is_tensor(values) and values.layout == torch.sparse_csr)
    if is_sparse and not low <= 0.0 <= high:
        raise InputError(f"sparse values cannot be clipped to [{low:g}, {high:g}]", allowed="a range with 0 in it")
    # NaN is not clipped to an end: which end would be a guess about a private value.
    read_rows(values).refuse_outside(-np.inf, np.inf)
    if torch.is_tensor(values):
        if values.layout == torch.sparse_csr:
            clipped = values.values().clamp(low, high)
            parts = values.crow_indices(), values.col_indices(), clipped
            return torch.sparse_csr_tensor(*parts, values.shape, check_invariants=False)
        return values.clamp(low, high)
    if sparse.issparse(values):
        copy = sparse.csr_matrix(values, copy=True)
        copy.data = np.clip(copy.data, low, high)
        return copy
    return np.clip(values, low, high)
