"""Entries made by one sort: the set of their pairs in order, read by rows and by columns."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from graphveil.aggregation.entries import Entries
from graphveil.aggregation.propagation import Adjacency
from graphveil.errors import InputError


def test_pairs_out_of_order_between_two_parts_are_sorted() -> None:
    """The check reads 65,536 pairs at once: what is wrong at the seam of two parts has to be seen."""
    rows = np.arange(1 << 17)
    rows[[(1 << 16) - 1, 1 << 16]] = rows[[1 << 16, (1 << 16) - 1]]
    assert np.array_equal(Entries.of(rows, rows, 1 << 17).columns, np.arange(1 << 17))
    twin = np.arange(1 << 17)
    twin[1 << 16] = twin[(1 << 16) - 1]
    assert len(Entries.of(twin, twin, 1 << 17).columns) == (1 << 17) - 1


def test_weights_move_with_their_pairs_and_zeros_leave() -> None:
    weights = np.array([0.5, 0.25, 0.0, 0.125], np.float32)
    found = Entries.of(np.array([2, 0, 1, 2]), np.array([1, 2, 0, 0]), 3, weights)
    assert found.starts.tolist() == [0, 1, 1, 3]
    assert found.columns.tolist() == [2, 0, 1]
    assert found.weights is not None and found.weights.tolist() == [0.25, 0.125, 0.5]
    twice, none = np.array([1, 1]), np.zeros(0, np.int64)
    with pytest.raises(InputError, match="a weighted edge is listed twice"):
        Entries.of(twice, twice, 2, np.array([0.5, 0.0], np.float32))
    with pytest.raises(InputError, match=r"2147483648 rows; allowed: below 2\^31"):
        Entries.of(none, none, 2**31)
    pair = torch.tensor([[0, 1], [1, 0]])
    assert Adjacency.of(pair, 2, weights=torch.tensor([0.5, 0.5])).symmetric
    assert not Adjacency.of(pair, 2, weights=torch.tensor([0.5, 0.25])).symmetric


@pytest.mark.parametrize("nodes", [1, 2, 17, 300])
def test_entries_are_the_set_of_their_pairs(nodes: int) -> None:
    """Whatever the order of the list: as given, from its end, sorted."""
    rows, columns = np.random.default_rng(nodes).integers(0, nodes, (2, 4 * nodes))
    expected = sorted(set(zip(rows.tolist(), columns.tolist(), strict=True)))
    by_columns, by_rows = np.lexsort((rows, columns)), np.lexsort((columns, rows))
    for order in (slice(None), slice(None, None, -1), by_columns, by_rows):
        found = Entries.of(rows[order], columns[order], nodes)
        listed = np.repeat(np.arange(nodes), found.counts)
        assert list(zip(listed.tolist(), found.columns.tolist(), strict=True)) == expected


def test_the_largest_node_number_keeps_its_place() -> None:
    """A key has its row above 32 bits of column: the largest column may not reach into the row."""
    last = 2**20
    found = Entries.of(np.array([last, 0, last]), np.array([last, last, 0]), last + 1)
    assert found.columns.tolist() == [last, 0, last]
    assert np.flatnonzero(found.counts).tolist() == [0, last]


def some(nodes: int = 20_000) -> Entries:
    """Rows of several parts, some of them empty and one of them long."""
    rows, columns = np.random.default_rng(1).integers(0, nodes, (2, 5 * nodes))
    rows[::9] = 77
    rows[rows % 5 == 1] = 3
    return Entries.of(rows, columns, nodes)


def test_rows_are_read_from_their_ends_and_tables_at_rows_and_at_columns() -> None:
    entries = some()
    backwards = entries.backwards(entries.columns)
    for row in (0, 1, 3, 77, 8_191, 8_192, 19_999):
        part = slice(entries.starts[row], entries.starts[row + 1])
        assert backwards[part].tolist() == entries.columns[part].tolist()[::-1]
    table = np.random.default_rng(2).random(len(entries.counts)).astype(np.float32)
    assert np.array_equal(entries.at_columns(table), table[entries.columns])
    assert np.array_equal(entries.at_rows(table), table[np.repeat(np.arange(len(table)), entries.counts)])
