"""Which people of a run's picture the page is given, where edges are private."""

from __future__ import annotations

import pytest

from graphveil.reports.runs.picture import LINKED, Picture
from graphveil.studio.results import _drawn

EDGES = {LINKED: ((0, 1),)}


def picture(total: int, edges: dict[str, tuple[tuple[int, int], ...]]) -> Picture:
    return Picture(caption=(), total=total, classes=("a", "b"), places=((0, 0), (1, 1)), predicted=(0, 1), edges=edges)


@pytest.mark.parametrize(
    ("total", "edges", "private", "count"),
    [
        (3, EDGES, ["edges"], 0),  # chosen along private edges
        (2, EDGES, ["edges"], 2),  # everybody
        (3, {}, ["edges"], 2),  # chosen without an edge
        (3, EDGES, ["labels"], 2),
    ],
)
def test_a_sample_that_follows_private_edges_is_left_out(
    total: int, edges: dict[str, tuple[tuple[int, int], ...]], private: list[str], count: int
) -> None:
    graph = _drawn(picture(total, edges), private)
    assert len(graph.nodes) == count and bool(graph.edges) == (bool(edges) and "edges" not in private)
    assert count or "follows from private edges" in graph.left_out[0]
