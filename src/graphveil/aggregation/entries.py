"""Where a sparse matrix has entries, row by row, made of a list of pairs by one sort.

A pair is one number, its row before its column: sorted numbers are sorted rows and twins stand side by side.  A list
that is sorted already is read and not sorted again.  Neither torch nor SciPy is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from graphveil.engine import Blocks
from graphveil.errors import InputError
from graphveil.runtime.sorted_arrays import HALF, packed

Starts: TypeAlias = "npt.NDArray[np.int32] | npt.NDArray[np.int64]"

# A column has 32 bits, which halves what a product reads: that bounds its speed.
_MOST: Final = 1 << 31
# Numbers that stay in a core's cache while they are worked on; fresh memory costs more than the work.
_PART: Final = 1 << 16


@dataclass(frozen=True)
class Entries:
    """Row i has entries in `columns[starts[i]:starts[i + 1]]`, which ascend. Build them with :meth:`of`.

    Attributes:
        starts: int32 [n + 1]; int64 from 2^31 entries on.
        columns: int32 [E].
        weights: float32 [E]; None where all are 1.
    """

    starts: Starts
    columns: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float32] | None = None

    @staticmethod
    def of(
        rows: npt.NDArray[np.int64],
        columns: npt.NDArray[np.int64],
        size: int,
        weights: npt.NDArray[np.float32] | None = None,
    ) -> Entries:
        """Return the entries of a square matrix; those of weight 0 are left out, and twins without weights count once.
        Raises InputError: a pair is listed twice with weights, or 2^31 rows or more.

        Args:
            rows, columns: [E] in 0..size-1, in any order; size: n; weights: [E].

        >>> import numpy as np
        >>> entries = Entries.of(np.array([2, 0, 2]), np.array([1, 0, 0]), 3)
        >>> entries.starts.tolist(), entries.columns.tolist()
        ([0, 1, 1, 3], [0, 0, 1])
        """
        if size >= _MOST:
            raise InputError(f"a sparse matrix of {size} rows", allowed="below 2^31")
        if weights is not None:
            return _weighted(rows, columns, size, weights)
        if _ascend(rows, columns):
            return Entries(_starts(rows, np.arange(size + 1)), columns.astype(np.int32))
        keys = packed(rows, columns)
        keys.sort()
        later = keys[1:] > keys[:-1]
        if not later.all():
            # Added up, twins would weigh any amount, and no sensitivity would hold.
            keys = keys[np.concatenate([[True], later])]
        return _of_keys(keys, size)

    @property
    def counts(self) -> Starts:
        """Entries of each row [n]."""
        return np.diff(self.starts)

    def equals(self, other: Entries) -> bool:
        """Return whether both hold the same entries, weights included."""
        if not (np.array_equal(self.starts, other.starts) and np.array_equal(self.columns, other.columns)):
            return False
        return self.weights is None or other.weights is None or np.array_equal(self.weights, other.weights)

    def backwards(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return values of the entries [E] with each row from its end to its beginning."""
        turned = np.empty_like(values)
        for block in Blocks(len(self.starts) - 1, _PART >> 3):
            starts = self.starts[block.start : block.stop + 1]
            part = slice(starts[0], starts[-1])
            ends = starts.astype(np.int64) - starts[0]
            places = np.repeat(ends[:-1] + ends[1:] - 1, np.diff(ends))
            places -= np.arange(len(places))
            turned[part] = values[part][places]
        return turned

    def at_columns(self, table: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return the value of a table [n] at each entry's column [E]."""
        values = np.empty(len(self.columns), table.dtype)
        for part in Blocks(len(values), _PART):
            values[part.rows] = table[self.columns[part.rows]]
        return values

    def at_rows(self, table: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return the value of a table [n] at each entry's row [E]."""
        return np.repeat(table, self.counts)


def _weighted(
    rows: npt.NDArray[np.int64], columns: npt.NDArray[np.int64], size: int, weights: npt.NDArray[np.float32]
) -> Entries:
    keys = packed(rows, columns)
    order = np.argsort(keys)
    keys, weights = keys[order], weights[order]
    # Which of two weights holds is not ours to guess, and their sum may exceed the declared largest weight.
    if (keys[1:] == keys[:-1]).any():
        raise InputError("a weighted edge is listed twice", remedy="give each edge once")
    keys, weights = keys[weights != 0], weights[weights != 0]
    return _of_keys(keys, size, weights)


def _of_keys(keys: npt.NDArray[np.uint64], size: int, weights: npt.NDArray[np.float32] | None = None) -> Entries:
    # Of the keys' own type: other integers would be compared with them as floats.
    beginnings = np.arange(size + 1, dtype=np.uint64) << HALF
    # The lower half of a key, its column, is what a conversion to 32 bits keeps.
    return Entries(_starts(keys, beginnings), keys.astype(np.int32), weights)


def _starts(ascending: npt.NDArray[Any], beginnings: npt.NDArray[Any]) -> Starts:
    """Return where rows begin among rows, or keys, given the least of each, and where the last one ends."""
    starts = np.searchsorted(ascending, beginnings)
    return starts.astype(np.int32) if len(ascending) < _MOST else starts


def _ascend(rows: npt.NDArray[np.int64], columns: npt.NDArray[np.int64]) -> bool:
    """Return whether each pair comes after the one before it."""
    for part in Blocks(len(rows), _PART):
        # With the last pair of the part before.
        here = slice(max(part.start - 1, 0), part.stop)
        keys = packed(rows[here], columns[here])
        if (keys[1:] <= keys[:-1]).any():
            return False
    return True
