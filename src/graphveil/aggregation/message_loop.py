"""The compiled loop of `exact_sum`: messages of 16-bit whole numbers added up, each row read once and half as wide."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from graphveil.runtime.compiled import compiled, prefetch

#: So many messages ahead, rows are asked for: memory answers as late as they are added up.
_AHEAD: Final = 8
#: 16-bit numbers in a line of the cache.
_LINE: Final = 32


@compiled
def add_messages(
    starts: npt.NDArray[np.int64],
    senders: npt.NDArray[np.int32],
    weights: npt.NDArray[np.float32] | None,
    values: npt.NDArray[np.int16],
    piece: int,
    found: npt.NDArray[np.float32],
    totals: npt.NDArray[np.int64],
) -> None:
    """Add up what each receiver is sent, exactly.

    Args:
        starts: receiver u hears `senders[starts[u]:starts[u + 1]]` [rows + 1].
        senders: rows of `values`.
        weights: whole numbers, one a sender, or None where all are 1.
        values: what every node sends [n, c].
        piece: so many messages add up to at most 2^24.
        found: set to the sums [rows, c], and to 0 for receivers of more messages than a piece.
        totals: all zero; set to the sums of those receivers, one after the other [long rows, c].
    """
    columns, last, long = values.shape[1], senders.size - 1, 0
    part = np.empty(columns, np.int32)
    for u in range(found.shape[0]):
        begin, stop = starts[u], starts[u + 1]
        several = stop - begin > piece
        # Once also where there is no message: a row is set whatever it receives.
        while True:
            end = min(begin + piece, stop)
            for k in range(columns):
                part[k] = 0
            for j in range(begin, end):
                soon = senders[min(j + _AHEAD, last)]
                for k in range(0, columns, _LINE):
                    prefetch(values, soon, k)
                sender = np.uint32(senders[j])
                if weights is None:
                    for k in range(columns):
                        part[k] += values[sender, k]
                else:
                    weight = np.int32(weights[j])
                    for k in range(columns):
                        part[k] += weight * np.int32(values[sender, k])
            if several:
                for k in range(columns):
                    found[u, k] = 0.0
                    totals[long, k] += part[k]
            else:
                for k in range(columns):
                    found[u, k] = part[k]
            begin = end
            if begin >= stop:
                break
        long += several
