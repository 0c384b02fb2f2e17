"""Where each id that an edge names stands among the people: by hashes, as comparing texts would wait for memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import polars

_BLOCK = 1 << 18


@dataclass(frozen=True, eq=False)
class IdPlaces:
    """The ids of n people, to be looked up.

    An id is known again by 128 bits of two hashes: one that is nobody's is taken for somebody's with a probability of
    n / 2^128.

    Attributes:
        hashes: uint64 [n + 1], ascending and distinct but for the last one, which ends every search.
        seconds: uint64 [n + 1], a second hash of the same ids.
        order: [n + 1], the place of each among the people.
        starts: the first hash with each value of the leading bits.
        shift: how many bits are not leading.
    """

    hashes: np.ndarray
    seconds: np.ndarray
    order: np.ndarray
    starts: np.ndarray
    shift: np.uint64

    @classmethod
    def of(cls, ids: polars.Series) -> IdPlaces | None:
        """Return the table of distinct ids [n], or None where two of them have one hash."""
        hashes = _hash(ids, 0)
        order = np.argsort(hashes)
        hashes = hashes[order]
        if (hashes[1:] == hashes[:-1]).any():
            return None
        bits = len(ids).bit_length() + 1
        shift = np.uint64(64 - bits)
        starts = np.searchsorted(hashes, np.arange(1 << bits, dtype=np.uint64) << shift)
        seconds, end = _hash(ids, 1)[order], np.iinfo(np.uint64).max
        # Small whole numbers, so that the tables stay near the processor.
        kind = np.min_scalar_type(-len(ids) - 1)
        order, starts = np.append(order, 0).astype(kind), starts.astype(kind)
        return cls(np.append(hashes, end), np.append(seconds, end), order, starts, shift)

    def find(self, wanted: polars.Series) -> np.ndarray:
        """Return the place of each of the wanted ids [m], of the kind of the ids; -1 for what is no id."""
        places = np.empty(len(wanted), self.order.dtype)
        for start in range(0, len(wanted), _BLOCK):
            places[start : start + _BLOCK] = self._find(wanted[start : start + _BLOCK])
        return places

    def _find(self, wanted: polars.Series) -> np.ndarray:
        hashes = _hash(wanted, 0)
        at = self.starts[hashes >> self.shift]
        behind = np.flatnonzero(self.hashes[at] < hashes)
        while behind.size:
            at[behind] += 1
            behind = behind[self.hashes[at[behind]] < hashes[behind]]
        known = (self.hashes[at] == hashes) & (self.seconds[at] == _hash(wanted, 1)) & (at < len(self.order) - 1)
        return np.where(known, self.order[at], -1)


def _hash(ids: polars.Series, number: int) -> np.ndarray:
    hashes: np.ndarray = ids.hash(number).to_numpy()
    return hashes
