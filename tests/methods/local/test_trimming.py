"""Links that count for as much as their ends agree: off by default, bit for bit, and what fakes say reaches fewer."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from graphveil.attacks.forged_reports import Truth, with_fakes
from graphveil.errors import InputError
from graphveil.graphs import Graph, random_split, social_graph
from graphveil.methods import LPGNN, load_method
from graphveil.methods.base.released import LocalReports, Topology, randomize_people, topology_of
from graphveil.methods.local.lpgnn import LPGNNCore
from graphveil.methods.local.trimming import LEAST, agreement, trimmed
from graphveil.privacy import SeededRandomness

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


def test_links_of_fakes_weigh_less_than_those_of_people() -> None:
    graph, reports, topology = people()
    bent, grown = with_fakes(reports, topology, 24, Truth.of(graph.x, graph.y, 3), 1)
    made = trimmed(grown, bent, seed=0)
    assert made.weights is not None
    fake = (grown.edge_index >= PEOPLE).any(dim=0)
    assert made.weights[fake].mean() < 0.9 * made.weights[~fake].mean()


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
