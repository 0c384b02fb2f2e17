"""The compiled loop of `rounded_normal`: words looked up and added on in one pass, without temporaries."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from graphveil.compiled import compiled


@compiled
def add_decided(
    words: npt.NDArray[np.uint32],
    entries: npt.NDArray[np.int32],
    low: int,
    limit: int,
    totals: npt.NDArray[np.float32],
    undecided: npt.NDArray[np.int32],
) -> int:
    """Add to each of `totals` [n] the draw that its word decides, as `_Guide.read` would.

    Args:
        words: uniform 32-bit numbers [n].
        entries, low, limit: of the guide.
        totals: what the draws are added to, in place.
        undecided: room for n places; the first of them are set to those whose word decides nothing.

    Returns:
        How many words decide nothing; their totals are as they were.
    """
    mask, shift, lowest = np.int32((1 << low) - 1), np.int32(low), np.int32(-limit << low)
    count = 0
    for i in range(words.size):
        cell = entries[words[i] >> np.uint32(low)] + (np.int32(words[i]) & mask)
        if (cell & mask == 0) | (cell < lowest):
            undecided[count] = i
            count += 1
        else:
            totals[i] += np.float32(cell >> shift)
    return count
