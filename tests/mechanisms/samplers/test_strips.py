"""Tables of strips: every share is given out exactly, and every road to a draw finds the same."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from graphveil.mechanisms.samplers.rounded_normal import (
    DIGITS,
    ENTRY_BITS,
    FURTHER_WORDS,
    draw_of_full_number,
    owed_ends,
    strips_of,
)
from graphveil.mechanisms.samplers.strips_loop import add_decided, add_searched

ALL = 1 << DIGITS


def hill(limit: int, *, end: int) -> list[int]:
    """Shares of 0..limit that fall in uneven steps; the last cell has `end` of 2^512."""
    parts = [3 ** (limit - cell) + 7 for cell in range(limit)]
    whole = 2 * sum(parts) - parts[0]
    half = [part * (ALL - 2 * end) // whole for part in parts]
    return [ALL - 2 * end - 2 * sum(half[1:]), *half[1:], end]


LAWS = [(hill(5, end=1), 0), (hill(40, end=1 << 300), 2), (hill(9, end=12345), 3), ([ALL - 2, 1], 0)]


@pytest.mark.parametrize(("half", "width"), LAWS)
def test_every_cell_gets_exactly_its_share(half: list[int], width: int) -> None:
    table, limit = strips_of(half, width), len(half) - 1
    entries = Counter(table.strips[: table.decided].tolist())
    ends = [table.decided << DIGITS - ENTRY_BITS, *owed_ends(half, width)]
    owed = [end - start for start, end in pairwise(ends)]
    paid = [entries[cell >> width] << DIGITS - ENTRY_BITS - width for cell in range(-limit, limit + 1)]
    assert min(owed) >= 0 and ends[-1] == ALL
    assert [a + b for a, b in zip(owed, paid, strict=True)] == [half[abs(cell)] for cell in range(-limit, limit + 1)]
    assert table.ends.tolist() == [end >> 448 for end in ends[1:-1]]
    assert not (table.strips.flags.writeable or table.ends.flags.writeable or table.starts.flags.writeable)


def test_a_word_is_entry_place_and_rest() -> None:
    table = strips_of(*LAWS[1])
    words = np.array([5 << 17, (5 << 17) + (3 << 15), (table.decided << 17) - 1, table.decided << 17], np.uint32)
    cells, undecided = table.read(words)
    first, last = int(table.strips[5]), int(table.strips[table.decided - 1])
    assert cells[:3].tolist() == [4 * first, 4 * first + 3, 4 * last + 3]
    assert undecided.tolist() == [3]


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("count", [0, 1, 7, 8, 1003])
def test_the_loop_adds_what_words_decide(kind: type[np.generic], count: int) -> None:
    """Eight words at a time and the last ones, for tables with and without places in a strip."""
    words = np.random.default_rng(count).integers(0, 1 << 32, count, dtype=np.uint32)
    for half, width in LAWS:
        table = strips_of(half, width)
        words[1::5] = (table.decided << 17) - 1
        words[3::5] = table.decided << 17
        cells, undecided = table.read(words)
        cells[undecided] = 0
        totals, places = np.full(count, 100, kind), np.full(count, -1, np.int32)
        left = add_decided(words, table.strips, table.decided, width, totals, places)
        assert np.array_equal(totals, 100 + cells)
        assert places[:left].tolist() == undecided.tolist()


@pytest.mark.parametrize(("half", "width"), LAWS[:3])
def test_all_512_bits_decide_where_64_tie(half: list[int], width: int) -> None:
    table, limit, ends = strips_of(half, width), len(half) - 1, list(owed_ends(half, width))
    for cell in (-limit + 1, -1, 0, 2, limit - 1):
        end = ends[cell + limit]
        assert table.search(np.array([end >> 448], np.uint64))[1].tolist() == [0]
        assert draw_of_full_number(end, half, width) > cell
        assert draw_of_full_number(end - 1, half, width) <= cell


@pytest.mark.parametrize(("half", "width"), LAWS)
def test_the_loop_finds_what_the_search_finds(half: list[int], width: int) -> None:
    """Around every end, and at both ends of the rest."""
    table = strips_of(half, width)
    lowest = np.uint64(table.decided) << np.uint64(64 - ENTRY_BITS)
    near = np.concatenate([table.ends - np.uint64(1), table.ends, table.ends + np.uint64(1)])
    numbers = np.append(near[near > lowest], [lowest, np.uint64(2**64 - 1)])
    cells, ties = table.search(numbers)
    words, further = (numbers >> np.uint64(32)).astype(np.uint32), numbers.astype(np.uint32)
    totals, left = np.full(numbers.size, 100.0, np.float32), []
    # A tile each, since each has a number for 64 of its draws.
    for i in range(numbers.size):
        place, ordinal = np.zeros(1, np.int32), np.full(1, -1, np.int32)
        more = np.full(FURTHER_WORDS, further[i])
        own = totals[i : i + 1]
        if add_searched(words[i : i + 1], place, more, table.ends, table.starts, table.width, own, ordinal):
            left.append(i)
            assert (place[0], ordinal[0]) == (0, 0)
    assert left == ties.tolist()
    cells[ties] = 0
    assert np.array_equal(totals, 100 + cells)
