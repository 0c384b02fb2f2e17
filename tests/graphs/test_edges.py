"""Edge lists in their one form: against plain sets, whatever order, direction and repetition they came in."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphveil.errors import DataError
from graphveil.graphs.value.edges import edge_keys, is_normalised, merge_edges

NODES = 6
listed = st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)), max_size=25)


def ends(edges: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    """Both columns of a list of edges."""
    columns = np.array(edges, dtype=np.int64).reshape(-1, 2)
    return columns[:, 0], columns[:, 1]


@settings(max_examples=150, deadline=None)
@given(listed, st.booleans())
def test_what_is_stored_is_the_set_of_edges_in_order(edges: list[tuple[int, int]], directed: bool) -> None:
    distinct = {(a, b) for a, b in edges if a != b}
    wanted = sorted(distinct if directed else distinct | {(b, a) for a, b in distinct})
    merged, notes = merge_edges(*ends(edges), NODES, directed=directed)
    assert [tuple(column) for column in merged.T.tolist()] == wanted
    assert merged.dtype == np.int64
    assert is_normalised(merged, directed=directed)
    assert is_normalised(merged, directed=True)  # nothing asks a directed list for its mirror
    stored = len(wanted) if directed else len(wanted) // 2
    assert f"{stored:,}" in notes[-1]


@settings(max_examples=150, deadline=None)
@given(listed, st.booleans())
def test_the_notes_account_for_every_line(edges: list[tuple[int, int]], directed: bool) -> None:
    """Lines listed = self-loops + repeated lines + edges listed both ways + edges kept."""
    _, notes = merge_edges(*ends(edges), NODES, directed=directed)

    def counted(word: str) -> int:
        return sum(
            int(part) for note in notes if word in note for part in note.replace(",", "").split() if part.isdigit()
        )

    assert counted("self-loop") == sum(a == b for a, b in edges)
    assert counted("self-loop") + counted("merged") + counted("stored in both") + counted("kept") == len(edges)
    assert directed == (notes[-1].startswith("kept")) == (not notes[-1].startswith("made undirected"))


@settings(max_examples=150, deadline=None)
@given(listed, st.booleans())
def test_a_list_is_normalised_exactly_when_merging_changes_nothing(
    edges: list[tuple[int, int]], directed: bool
) -> None:
    raw = np.stack(ends(edges))
    assert is_normalised(raw, directed=directed) == np.array_equal(raw, merge_edges(*raw, NODES, directed=directed)[0])


@settings(max_examples=100, deadline=None)
@given(listed, listed)
def test_equal_keys_are_equal_edges(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> None:
    for directed in (False, True):
        a, b = (edge_keys(*ends(each), NODES, directed=directed) for each in (first, second))
        for key, edge in zip(a.tolist(), first, strict=True):
            for other_key, other in zip(b.tolist(), second, strict=True):
                same = edge == other if directed else sorted(edge) == sorted(other)
                assert (key == other_key) == same
    last = np.array([70_000], dtype=np.int32)  # keys of large graphs do not overflow small integers
    assert edge_keys(last, last - 1, 70_001, directed=True).tolist() == [70_000 * 70_001 + 69_999]


@pytest.mark.parametrize(
    ("source", "target"), [([0], [NODES]), ([2**32], [0]), ([0.0], [1.0]), ([0, 1], [1]), ([[0, 1]], [[1, 0]])]
)
def test_what_joins_no_two_nodes_is_refused(source: list[object], target: list[object]) -> None:
    """2^32 would become node 0 in 32 bits."""
    with pytest.raises(DataError, match=r"names a node that does not exist.*0 to 5|two lists, equally long"):
        merge_edges(np.array(source), np.array(target), NODES, directed=False)


def test_the_highest_node_numbers_keep_all_their_bits() -> None:
    """A pair takes one word: 32 bits for each end, and no sign."""
    last = 2**32 - 1
    merged, notes = merge_edges(np.array([last, 3, last]), np.array([3, last, last - 1]), 2**32, directed=False)
    assert merged.tolist() == [[3, last - 1, last, last], [last, last, 3, last - 1]]
    assert notes[0] == "merged 1 edge listed in both directions"
    assert is_normalised(merged, directed=False)
    assert not is_normalised(merged[:, 1:], directed=False)
    with pytest.raises(DataError, match=r"4,294,967,297 nodes .*at most 4,294,967,296|at most 4,294,967,296"):
        merge_edges(np.array([0]), np.array([1]), 2**32 + 1, directed=False)


@pytest.mark.parametrize("directed", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_list_of_several_steps_is_merged_as_one_sorted_whole(directed: bool) -> None:
    source, target = np.random.default_rng(5).integers(0, 700, (2, 700_000))
    merged, notes = merge_edges(source, target, 700, directed=directed)
    keys = (source * 700 + target)[source != target]
    both = np.concatenate([keys, keys % 700 * 700 + keys // 700])
    assert np.array_equal(merged[0] * 700 + merged[1], np.unique(keys if directed else both))
    assert notes[:2] == (
        f"removed {700_000 - len(keys):,} self-loops",
        f"merged {len(keys) - len(np.unique(keys)):,} duplicate edges",
    )
