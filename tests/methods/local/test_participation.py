"""Reports of some: methods learn from those who answered, and predict everybody."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch
from torch import Tensor

from graphveil.aggregation.propagation import Adjacency
from graphveil.errors import InputError
from graphveil.graphs import Graph, Split, random_split, social_graph
from graphveil.methods import LPGNN, METHODS, load_method
from graphveil.methods.base.features import features_of
from graphveil.methods.base.released import Answers, LocalReports, Topology, randomize_people, topology_of
from graphveil.methods.local.label_propagation import LabelPropagationCore
from graphveil.methods.local.lpgnn import LPGNNCore
from graphveil.methods.local.trimming import LEAST, agreement, trimmed
from graphveil.privacy import SeededRandomness
from tests.methods import made

SHORT: dict[str, Any] = {"epochs": 3, "hidden": 4, "steps_x": 2, "steps_y": 2}


def lpgnn(**more: Any) -> LPGNNCore:
    return LPGNNCore(epsilon_x=2.0, epsilon_y=2.0, **{**SHORT, **more})


def collected(graph: Graph, split: Split) -> LocalReports:
    return randomize_people(graph, split, lpgnn().privacy, randomness=SeededRandomness(5))


def of_some(reports: LocalReports, who: Tensor) -> LocalReports:
    """The same reports, of which those of all others never arrived."""
    kept = type(reports.features).from_tensors({name: t[who] for name, t in reports.features.to_tensors().items()})
    return replace(reports, features=Answers(who, kept))


@pytest.fixture
def graph() -> Graph:
    return made.graph()


@pytest.fixture
def sent(graph: Graph) -> LocalReports:
    return collected(graph, made.split_of(graph))


def half(graph: Graph) -> Tensor:
    return torch.arange(int(graph.num_nodes)) % 2 == 0


@pytest.mark.parametrize("more", [{}, {"model": "gcn"}, {"denoising": "upgnet"}, {"steps_x": 0}], ids=str)
def test_where_everybody_answered_every_bit_is_the_same(graph: Graph, sent: LocalReports, more: Any) -> None:
    everyone = of_some(sent, torch.ones(int(graph.num_nodes), dtype=torch.bool))
    whole, some = (lpgnn(**more).fit_reports(one, topology_of(graph)).probabilities() for one in (sent, everyone))
    assert torch.equal(whole, some)


@pytest.mark.parametrize("more", [{}, {"model": "gcn"}, {"denoising": "upgnet"}, {"steps_x": 0}], ids=str)
def test_everybody_is_predicted_where_half_answered(graph: Graph, sent: LocalReports, more: Any) -> None:
    core = lpgnn(**more).fit_reports(of_some(sent, half(graph)), topology_of(graph))
    found = core.probabilities()
    assert tuple(found.shape) == (int(graph.num_nodes), len(graph.schema.classes))
    assert bool(torch.isfinite(found).all())
    assert core.guarantee.epsilon == 4.0
    # The reports of half say something else than those of all.
    assert not torch.equal(found, lpgnn(**more).fit_reports(sent, topology_of(graph)).probabilities())


def test_a_missing_report_has_no_row_that_says_anything(graph: Graph, sent: LocalReports) -> None:
    who = half(graph)
    rows, offset = features_of(of_some(sent, who), 0)
    whole, same = features_of(sent, 0)
    assert offset == same
    assert (rows[who.numpy()] != whole[who.numpy()]).nnz == 0 and rows[~who.numpy()].nnz == 0


def test_labels_spread_from_those_who_sent_one(graph: Graph, sent: LocalReports) -> None:
    silent = sent.train & half(graph)
    fewer = replace(sent, train=sent.train & ~silent, labels=torch.where(silent, -1, sent.labels), features=None)
    core = LabelPropagationCore(epsilon_y=2.0)
    found = core.fit_reports(replace(fewer, privacy=core.privacy), topology_of(graph)).probabilities()
    assert len(found) == int(graph.num_nodes) and bool(torch.isfinite(found).all())
    # What was never sent cannot matter, whatever stands at its place.
    other = replace(fewer, labels=torch.where(silent, 0, fewer.labels), privacy=core.privacy)
    again = LabelPropagationCore(epsilon_y=2.0).fit_reports(other, topology_of(graph)).probabilities()
    assert torch.equal(found, again)


# ---- links that count for as much as their ends agree ----


PEOPLE = 240


def people(epsilon_y: float = 2.0) -> tuple[Graph, LocalReports, Topology]:
    """A graph, its people's reports and who is linked to whom."""
    graph = social_graph(PEOPLE, average_degree=10, dimension=20, classes=3, seed=4)
    core = LPGNNCore(epsilon_x=2.0, epsilon_y=epsilon_y)
    reports = randomize_people(graph, random_split(graph, 0), core.privacy, randomness=SeededRandomness(3))
    return graph, reports, topology_of(graph)


def test_ends_that_agree_weigh_the_more() -> None:
    beliefs = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    edges = torch.tensor([[0, 0, 0], [1, 2, 3]])
    assert agreement(beliefs, edges).tolist() == pytest.approx([1.0, LEAST, 0.5])
    assert torch.equal(agreement(beliefs, edges), agreement(beliefs, edges.flip(0)))


def test_without_it_nothing_changes() -> None:
    _, reports, topology = people()
    plain, none, on = (
        LPGNNCore(epsilon_x=2.0, epsilon_y=2.0, epochs=3, **more).fit_reports(reports, topology).probabilities()
        for more in ({}, {"trimming": "none"}, {"trimming": "agreement"})
    )
    assert torch.equal(plain, none) and not torch.equal(plain, on)


def test_it_costs_nothing_and_is_kept_in_a_file(tmp_path: Path) -> None:
    graph, _, _ = people()
    made = LPGNN(epsilon_x=2.0, epsilon_y=2.0, epochs=2, trimming="agreement")
    model = made.fit(graph, randomness=SeededRandomness(1))
    assert model.guarantee.epsilon == 4.0
    model.save(tmp_path / "model")
    again = load_method(tmp_path / "model")
    assert torch.equal(again.predict_proba(), model.predict_proba())
    assert again.get_params()["trimming"] == "agreement"


def test_what_it_cannot_weigh_is_refused() -> None:
    _, reports, topology = people()
    weighed = Topology(topology.edge_index, PEOPLE, torch.ones(topology.edge_index.shape[1]))
    with pytest.raises(InputError, match="edges without weights"):
        trimmed(weighed, reports, seed=0)
    with pytest.raises(InputError, match="'much'"):
        LPGNNCore(epsilon_x=2.0, epsilon_y=2.0, trimming="much")
    with pytest.raises(InputError, match="with upgnet"):
        LPGNNCore(epsilon_x=2.0, epsilon_y=2.0, trimming="agreement", denoising="upgnet")


# ---- a fit puts its edges in order once, and leaves nothing of that behind ----


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


def adjacencies(work: Callable[[], object]) -> int:
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


@pytest.mark.slow  # trainings
@pytest.mark.parametrize("case", FITS)
def test_a_fit_puts_its_edges_in_order_once(case: str) -> None:
    name, settings, times = FITS[case]
    method = METHODS[name](**settings)
    split, topology = random_split(GRAPH, 0), topology_of(GRAPH)
    released = method.core.randomize(GRAPH, split=split, randomness=SeededRandomness(0))
    assert adjacencies(lambda: method.core.fit_reports(released, topology)) == times
    assert vars(method.core.topology).keys() == vars(topology_of(GRAPH)).keys()


def test_matrices_are_those_of_the_edges_themselves() -> None:
    one_way = Topology(GRAPH.edge_index[:, GRAPH.edge_index[0] < GRAPH.edge_index[1]], int(GRAPH.num_nodes))
    weighted = replace(topology_of(GRAPH), weights=torch.full((GRAPH.edge_index.shape[1],), 2.0))
    plain = topology_of(GRAPH).propagation()
    for topology in (topology_of(GRAPH), one_way, weighted):
        found = topology.both_ways.normalised()
        assert torch.equal(found.forward.indices, plain.forward.indices)
        assert torch.equal(found.forward.values, plain.forward.values)
