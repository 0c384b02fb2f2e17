"""A fit puts its edges in order once, and leaves nothing of that behind."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from types import FrameType

import pytest
import torch

from graphveil.aggregation.propagation import Adjacency
from graphveil.graphs import random_split, social_graph
from graphveil.methods import METHODS
from graphveil.methods.base.released import Topology, topology_of
from graphveil.privacy import SeededRandomness

GRAPH = social_graph(200, average_degree=8, dimension=20, classes=3, seed=1)
LABELS = {"epsilon_y": 2.0}
BOTH = {**LABELS, "epsilon_x": 1.0, "epochs": 1}
FITS: dict[str, tuple[str, dict[str, object], int]] = {
    "lpgnn": ("lpgnn", {**BOTH, "model": "sage"}, 1),
    "lpgnn, gcn": ("lpgnn", {**BOTH, "model": "gcn"}, 2),  # with everybody's own value beside that of the friends
    "lpgnn, no edges": ("lpgnn", {**BOTH, "model": "mlp", "steps_x": 0, "steps_y": 0}, 0),
    "upgnet": ("upgnet", {**BOTH, "model": "sage"}, 1),
    "label-propagation": ("label-propagation", LABELS, 1),
    "label-pool": ("label-pool", LABELS, 1),
    "answer-pool": ("answer-pool", {**LABELS, "epsilon_x": 1.0, "question": "0>=0.5"}, 1),
}


def made(work: Callable[[], object]) -> int:
    """How often an adjacency is made of a list of edges."""
    calls = []

    def look(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is Adjacency.of.__code__:
            calls.append(frame)

    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(None)
    return len(calls)


@pytest.mark.parametrize("case", FITS)
def test_a_fit_puts_its_edges_in_order_once(case: str) -> None:
    name, settings, times = FITS[case]
    method = METHODS[name](**settings)
    split, topology = random_split(GRAPH, 0), topology_of(GRAPH)
    released = method.core.randomize(GRAPH, split=split, randomness=SeededRandomness(0))
    assert made(lambda: method.core.fit_reports(released, topology)) == times
    assert vars(method.core.topology).keys() == vars(topology_of(GRAPH)).keys()


def test_the_count_sees_each_time_that_edges_are_put_in_order() -> None:
    topology = topology_of(GRAPH)
    assert made(lambda: [topology.propagation(), topology.structure("sage"), topology.both_ways]) == 1
    assert made(lambda: [topology.apart().propagation() for _ in range(2)]) == 2


def test_matrices_are_those_of_the_edges_themselves() -> None:
    one_way = Topology(GRAPH.edge_index[:, GRAPH.edge_index[0] < GRAPH.edge_index[1]], int(GRAPH.num_nodes))
    weighted = replace(topology_of(GRAPH), weights=torch.full((GRAPH.edge_index.shape[1],), 2.0))
    plain = topology_of(GRAPH).propagation()
    for topology in (topology_of(GRAPH), one_way, weighted):
        found = topology.both_ways.normalised()
        assert torch.equal(found.forward.indices, plain.forward.indices)
        assert torch.equal(found.forward.values, plain.forward.values)
