"""The compiled loops of `strips`: words looked up and added on in one pass, and the few others searched for."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from graphveil.mechanisms.samplers.bits import AFTER, ENTRY_BITS
from graphveil.runtime.compiled import compiled


@compiled
def add_decided(
    words: npt.NDArray[np.uint32],
    strips: npt.NDArray[np.int16],
    decided: int,
    width: int,
    totals: np.ndarray,
    undecided: npt.NDArray[np.int32],
) -> int:
    """Add to each of `totals` [n] the draw that its word decides, as `Strips.read` would.
    Returns how many words decide nothing; their totals are as they were.

    Args:
        words: uniform 32-bit numbers [n].
        strips, decided, width: of the table.
        totals: what the draws are added to, in place.
        undecided: room for n places; the first of them are set to those whose word decides nothing.
    """
    place, mask = np.uint32(AFTER - width), np.uint32((1 << width) - 1)
    count = 0
    for i in range(words.size):
        entry = words[i] >> np.uint32(AFTER)
        if entry < decided:
            cell = (np.int32(strips[entry]) << np.int32(width)) | np.int32((words[i] >> place) & mask)
            totals[i] += totals.dtype.type(cell)
        else:
            undecided[count] = i
            count += 1
    return count


@compiled
def add_searched(
    words: npt.NDArray[np.uint32],
    places: npt.NDArray[np.int32],
    more: npt.NDArray[np.uint64],
    ends: npt.NDArray[np.uint64],
    starts: npt.NDArray[np.int32],
    width: int,
    totals: np.ndarray,
) -> int:
    """Add to `totals` at some places the draws of their words, as `Strips.search` would. Returns how many numbers equal
    an end; their places and 64 bits come first in `places` and `more`, and their totals are as they were.

    Args:
        words: uniform 32-bit numbers [n].
        places: those whose word decides nothing [m]; overwritten.
        more: uniform 64-bit numbers [m], of which the first half continues a word; overwritten.
        ends, starts, width: of the table.
        totals: what the draws are added to, in place [n].
    """
    limit, shift = ends.size >> 1, np.uint64(64 - ENTRY_BITS - width)
    first = (1 << (ENTRY_BITS + width)) - starts.size + 1
    ties = 0
    for i in range(places.size):
        number = (np.uint64(words[places[i]]) << np.uint64(32)) | (more[i] >> np.uint64(32))
        start = np.int64(number >> shift) - first
        low, high = starts[start], starts[start + 1]
        while low < high:
            middle = (low + high) >> 1
            if ends[middle] < number:
                low = middle + 1
            else:
                high = middle
        if low < ends.size and ends[low] == number:
            places[ties], more[ties] = places[i], number
            ties += 1
        else:
            totals[places[i]] += totals.dtype.type(low - limit)
    return ties
