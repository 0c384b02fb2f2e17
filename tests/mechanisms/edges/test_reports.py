"""Reports about relationships: what comes out is well formed, what does not fit is refused in one clear line."""

from __future__ import annotations

import itertools
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from graphveil.errors import InputError
from graphveil.mechanisms import (
    AdjacencyRR,
    DegreePreservingReports,
    DegreePreservingRR,
    DegreeReports,
    EdgeReports,
    NoisyDegree,
)
from graphveil.privacy import SeededRandomness
from tests.mechanisms import tiny_graphs
from tests.mechanisms.made import Untouched
from tests.mechanisms.tiny_graphs import MODES

MECHANISMS = (AdjacencyRR, DegreePreservingRR)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, str, Tensor]:
    """A number of users, a mode and a graph that fits both."""
    nodes, mode = draw(st.integers(1, 40)), draw(st.sampled_from(MODES))
    units = tiny_graphs.units(mode, nodes)
    present = draw(st.lists(st.sampled_from(units), max_size=60)) if units else []
    return nodes, mode, tiny_graphs.edge_index(present, mode)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@settings(max_examples=25, deadline=None, derandomize=True)
@given(graph=graphs(), epsilon=st.floats(0.01, 60.0), seed=st.integers(0, 1000))
def test_lists_are_sorted_in_domain_and_without_self_loops(
    mechanism: type, graph: tuple[int, str, Tensor], epsilon: float, seed: int
) -> None:
    """In what order the graph is given, how often and in what form changes nothing."""
    nodes, mode, edge_index = graph
    built = mechanism(epsilon=epsilon, nodes=nodes, mode=mode)
    reports = built.randomize(edge_index, randomness=SeededRandomness(seed))
    users, named = reports.to_edge_index()
    assert len(reports) == nodes
    assert bool(((named >= 0) & (named < nodes) & (named != users)).all())
    assert mode != "lower" or bool((named > users).all())
    keys = users * nodes + named
    assert bool((keys[1:] > keys[:-1]).all())
    shuffled = torch.cat([edge_index.flip(1), edge_index], 1)
    for again in (
        type(reports).from_tensors(reports.to_tensors()),
        *(built.randomize(form, randomness=SeededRandomness(seed)) for form in (shuffled, shuffled.numpy())),
    ):
        assert torch.equal(again.to_edge_index(), reports.to_edge_index())
    assert bool(torch.isfinite(built.log_likelihood(reports, edge_index)).all())
    collected = built.collected(reports)
    mirrored = {tuple(pair) for pair in collected.flip(0).T.tolist()}
    assert mode == "directed" or mirrored == {tuple(pair) for pair in collected.T.tolist()}


BAD_GRAPHS = {
    r"^edge_index, column 2: a user names itself; remove self-loops first$": torch.tensor([[0, 1, 2], [1, 0, 2]]),
    "an id is not a declared user": torch.tensor([[0, 1, 5], [1, 0, 0]]),
    "an id is not a declared user; allowed: 0 to 3": torch.tensor([[0, -1], [-1, 0]]),
    'one direction only.*use mode="directed"': torch.tensor([[0, 1, 2], [1, 0, 3]]),
    "float32": torch.zeros(2, 3),
    r"shape \(3, 2\)": torch.zeros(3, 2, dtype=torch.int64),
    r"shape \(4,\)": torch.zeros(4, dtype=torch.int64),
}


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_malformed_graphs_are_refused_before_any_draw(mechanism: type) -> None:
    for mode, (why, graph) in itertools.product(("lower", "both"), BAD_GRAPHS.items()):
        with pytest.raises(InputError, match=why) as refusal:
            mechanism(epsilon=1.0, nodes=4, mode=mode).randomize(graph, randomness=Untouched())
        assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("starts", "columns", "why"),
    [
        ([0, 2, 1, 3], [0, 1, 2], "do not divide"),
        ([0, 2], [0, 1, 2], "do not divide 3 ids"),
        ([], [], "do not divide 0 ids"),
        ([0, 3, 3], [0, 2, 1], "out of order"),
        ([0, 0, 2], [0, 0], "or twice"),
    ],
)
def test_malformed_reports_are_refused(starts: list[int], columns: list[int], why: str) -> None:
    with pytest.raises(InputError, match=f"^reports: .*{why}"):
        EdgeReports(torch.tensor(starts, dtype=torch.int64), torch.tensor(columns, dtype=torch.int32))


def test_reports_of_lists_and_degrees_belong_together() -> None:
    edges = tiny_graphs.reports_of([[1, 2], [], [0]])
    assert len(edges) == 3, "lists may begin below where the one before ended"
    both = DegreePreservingReports(DegreeReports(torch.zeros(3, dtype=torch.int32)), edges).to_tensors()
    for foreign in ({}, both | {"more": both["columns"]}, both | {"columns": both["columns"].float()}):
        with pytest.raises(InputError, match="reports"):
            DegreePreservingReports.from_tensors(foreign)
    with pytest.raises(InputError, match="2 degrees with 3 lists"):
        DegreePreservingReports(DegreeReports(torch.zeros(2, dtype=torch.int32)), edges)


@pytest.mark.parametrize(
    ("mode", "lists"),
    [
        *(("both", lists) for lists in ([[0], [], []], [[3], [], []])),
        *(("directed", lists) for lists in ([[], [1], []], [[], [], [-1]])),
        *(("lower", lists) for lists in ([[], [0], []], [[], [], [2]])),
    ],
)
def test_reports_that_no_device_sends_are_refused(mode: str, lists: list[list[int]]) -> None:
    mechanism, forged = AdjacencyRR(epsilon=1.0, nodes=3, mode=mode), tiny_graphs.reports_of(lists)
    likelihood = partial(mechanism.log_likelihood, edge_index=torch.zeros(2, 0, dtype=torch.int64))
    for use in (mechanism.evidence, mechanism.estimate, mechanism.collected, likelihood):
        with pytest.raises(InputError, match="does not report"):
            use(forged)
    with pytest.raises(InputError, match="reports of 2 users; allowed: 3"):
        mechanism.evidence(tiny_graphs.reports_of([[], []]))


def test_degrees_that_no_list_has_are_refused() -> None:
    noisy = NoisyDegree(epsilon=1.0, nodes=3)
    for degrees, why in (
        ([3, 0, 0], "row 0"),
        ([2, 1, 1], "row 2"),
        ([0, -1, 0], "row 1"),
        ([0, 0], "3 integers"),
        ([0.0, 0.0, 0.0], "3 integers"),
    ):
        with pytest.raises(InputError, match=why):
            noisy.randomize(torch.tensor(degrees), randomness=SeededRandomness(1))
