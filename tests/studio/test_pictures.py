"""Which people of a run's picture the page is given, where edges are private; and what its figures mean."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphveil.reports.base.words import lift_sentence, measured_with
from graphveil.reports.runs.picture import LINKED, Picture
from graphveil.studio.results import FinishedWork, _drawing
from graphveil.studio.root import Root
from tests.reports import made

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
    graph = _drawing(picture(total, edges), private)
    assert len(graph.nodes) == count and bool(graph.edges) == (bool(edges) and "edges" not in private)
    assert count or "follows from private edges" in graph.left_out[0]


def test_the_page_says_of_a_lift_what_the_report_says(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    record, work = made.record(), FinishedWork(Root(tmp_path), "run", "run")
    file = tmp_path / "run" / "result.json"
    file.write_text(json.dumps(record.to_dict()))
    facts = work.facts()
    # Of labels alone "do not collect them" would be wrong beside a control that reads the same labels.
    assert facts["lift_sentence"] == lift_sentence(record) and facts["measured_with"] == measured_with(record)
    file.write_text(json.dumps({"accuracy": 1}))
    assert work.facts() == {"accuracy": 1}
