"""The compiled sums of 16-bit messages, against numpy row by row."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest

from graphveil.aggregation.message_loop import add_messages

NODES = 50

Counts = npt.NDArray[np.int64]


def expected(starts: Counts, senders: Counts, weights: Counts, values: Counts) -> Counts:
    """The sums in 64-bit integers, by numpy."""
    messages = weights[:, None] * values[senders]
    return np.stack([messages[first:stop].sum(axis=0) for first, stop in pairwise(starts)])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("piece", "columns"), [(1, 1), (1, 64), (3, 31), (3, 100), (1000, 31), (1000, 64)])
def test_each_receiver_gets_all_its_messages(piece: int, columns: int, weighted: bool) -> None:
    """Receivers of none, of one piece and of several; rows of less than a line of the cache and of more."""
    drawn = np.random.default_rng(columns)
    lengths = drawn.integers(0, 8, NODES)
    lengths[[0, 20, -1]] = 0
    starts = np.append(0, np.cumsum(lengths))
    senders = drawn.integers(0, NODES, starts[-1])
    values = drawn.integers(-(2**14), 2**14, (NODES, columns))
    weights = drawn.integers(0, 200, len(senders)) if weighted else np.ones_like(senders)
    long = lengths > piece
    # What is there before is written over, as rooms of results are not zeroed.
    found = np.full((NODES, columns), np.nan, np.float32)
    totals = np.zeros((long.sum(), columns), np.int64)
    given = weights.astype(np.float32) if weighted else None
    add_messages(starts, senders.astype(np.int32), given, values.astype(np.int16), piece, found, totals)
    sums = expected(starts, senders, weights, values)
    assert np.array_equal(found[~long], sums[~long])
    assert not found[long].any()
    assert np.array_equal(totals, sums[long])


def test_nobody_sends_anything() -> None:
    found = np.full((3, 2), np.nan, np.float32)
    nothing = np.zeros(0, np.int32), None, np.ones((3, 2), np.int16)
    add_messages(np.zeros(4, np.int64), *nothing, 5, found, np.zeros((0, 2), np.int64))
    assert not found.any()
