"""The compiled loops of `rounded_normal.Strips`: look up and add words in one pass, and search for the few others."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from graphveil.mechanisms.samplers.bits import ENTRY_BITS, FURTHER_WORDS, REST_BITS, TILE
from graphveil.runtime.compiled import add_looked_up, compiled, lowest_bit


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
        undecided: room for n indices; the first entries are set to those of the words that decide nothing.
    """
    count, vectorized = 0, words.size // 64 * 64
    for first in range(0, vectorized, 64):
        mask = 0
        for eight in range(0, 64, 8):
            mask |= add_looked_up(words, strips, totals, first + eight, REST_BITS, width, decided, 8) << eight
        # 64 words at a time: with few words the processor would often mispredict how many are left.
        while mask:
            undecided[count] = first + lowest_bit(mask)
            count += 1
            mask &= mask - 1
    for place in range(vectorized, words.size):
        undecided[count] = place
        count += add_looked_up(words, strips, totals, place, REST_BITS, width, decided, 1)
    return count


@compiled
def add_searched(
    words: npt.NDArray[np.uint32],
    places: npt.NDArray[np.int32],
    further: npt.NDArray[np.uint32],
    ends: npt.NDArray[np.uint64],
    starts: npt.NDArray[np.int32],
    width: int,
    totals: np.ndarray,
    ordinals: npt.NDArray[np.int32],
) -> int:
    """Add to `totals` at some places the draws of their words, as `Strips.search` would. Returns how many are left:
    whose numbers equal an end, or that come after `FURTHER_WORDS` in their tile. Their places come first in `places`,
    and their totals are as they were.

    Args:
        words: uniform 32-bit numbers [n].
        places: those whose word decides nothing, rising [m]; overwritten.
        further: uniform 32-bit numbers that continue words, `FURTHER_WORDS` for each tile of them.
        ends, starts, width: of the table.
        totals: what the draws are added to, in place [n].
        ordinals: room for m; of those left, which of their tile they are.
    """
    limit, shift = ends.size >> 1, np.uint64(64 - ENTRY_BITS - width)
    first = (1 << (ENTRY_BITS + width)) - starts.size + 1
    left = 0
    tile, ordinal = -1, 0
    for i in range(places.size):
        place = places[i]
        ordinal = ordinal + 1 if place // TILE == tile else 0
        tile = place // TILE
        number = (np.uint64(words[place]) << np.uint64(32)) | np.uint64(
            further[tile * FURTHER_WORDS + ordinal % FURTHER_WORDS]
        )
        start = np.int64(number >> shift) - first
        low, high = starts[start], starts[start + 1]
        while low < high:
            middle = (low + high) >> 1
            if ends[middle] < number:
                low = middle + 1
            else:
                high = middle
        if ordinal >= FURTHER_WORDS or (low < ends.size and ends[low] == number):
            places[left], ordinals[left] = place, ordinal
            left += 1
        else:
            totals[place] += totals.dtype.type(low - limit)
    return left


@compiled
def add_draws(
    words: npt.NDArray[np.uint32],
    further: npt.NDArray[np.uint32],
    strips: npt.NDArray[np.int16],
    decided: int,
    width: int,
    ends: npt.NDArray[np.uint64],
    starts: npt.NDArray[np.int32],
    totals: np.ndarray,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Add to `totals` the draws that 64 bits decide. Returns the indices of the rest, and their ranks among the
    undecided draws of a tile. One function for both steps: a return to Python in between would wait for other threads.

    Args:
        words, further: as for `add_searched`.
        strips, decided, width, ends, starts: of the table.
        totals: what the draws are added to, in place [n].
    """
    places = np.empty(words.size, np.int32)
    places = places[: add_decided(words, strips, decided, width, totals, places)]
    ordinals = np.empty_like(places)
    left = add_searched(words, places, further, ends, starts, width, totals, ordinals)
    return places[:left], ordinals[:left]
