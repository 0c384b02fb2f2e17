"""Solitude, and the denoisers in its place."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from graphveil.errors import InputError
from graphveil.graphs import Split
from graphveil.methods import Solitude
from graphveil.methods.base.people.local_privacy import LocalPrivacy
from graphveil.methods.links.collection import LinkReports, randomize_graph
from graphveil.methods.links.denoisers import SoftTopology, denoise, label_evidence
from graphveil.methods.links.entries import DENOISERS
from graphveil.methods.links.privacy import LinkPrivacy
from graphveil.privacy import SeededRandomness
from tests.methods import links_made, made

SHORT: dict[str, Any] = {"epochs": 3, "hidden": 4}


def short(**settings: Any) -> Solitude:
    return Solitude(**{"epsilon_x": 1.0, "epsilon_a": 4.0, **SHORT, **settings})


# ---- settings ----


def test_hops_left_open_are_those_that_each_part_needs() -> None:
    for x, y, denoiser, hops in (
        (1.0, math.inf, "calibration", (4, 0)),
        (math.inf, 1.0, "calibration", (0, 4)),
        (None, 1.0, "none", (0, 4)),
        (1.0, 1.0, "blink-soft", (0, 0)),
    ):
        for left_open in ({}, {"steps_x": None, "steps_y": None}):
            settings = Solitude(epsilon_x=x, epsilon_a=4.0, epsilon_y=y, denoiser=denoiser, **left_open).settings
            assert (settings.steps_x, settings.steps_y) == hops


@pytest.mark.parametrize("mode", ["lower", "both", "directed"])
def test_a_mode_that_does_not_fit_the_links_is_refused_before_they_are_read(mode: str) -> None:
    whole = links_made.graph(directed=mode != "directed")
    graph, method = links_made.Sealed(whole), short(mode=mode)
    with pytest.raises(InputError, match=f"mode {mode} for a graph whose links are"):
        method.randomize(graph, split=made.split_of(whole), randomness=SeededRandomness(1))  # type: ignore[arg-type]
    assert method.ledger.spends == ()


@pytest.mark.parametrize(("mode", "tied"), [("lower", True), ("both", False), ("directed", False)])
def test_calibration_weighs_the_reported_links_and_no_others(mode: str, tied: bool) -> None:
    """The two entries of a pair that one end reported move as one; where each end reports, each has its own weight."""
    graph = links_made.graph(directed=mode == "directed")
    method = short(mode=mode, epochs=20, learning_rate_a=0.05, selection="last")
    method.fit(graph, split=made.split_of(graph), randomness=SeededRandomness(1))
    topology, released = method.topology, method.released
    assert topology is not None and released is not None and topology.weights is not None  # type: ignore[union-attr]
    lists = released.lists["lists"].to_edge_index()
    codes = {(int(i), int(j)) for i, j in lists.T}
    entries = [(int(i), int(j)) for i, j in topology.edge_index.T]  # type: ignore[union-attr]
    expected = codes if mode == "directed" else {(j, i) for i, j in codes}
    assert set(entries) == (expected | codes if mode == "lower" else expected)
    weights = dict(zip(entries, topology.weights.tolist(), strict=True))  # type: ignore[union-attr]
    assert 0 <= min(weights.values()) < 0.9
    assert max(weights.values()) <= 1
    pairs = [(w, weights[j, i]) for (i, j), w in weights.items() if (j, i) in weights]
    assert all(first == second for first, second in pairs) == tied


# ---- from noisy lists to the graph that a network is trained on ----


PUBLIC = LocalPrivacy(math.inf, math.inf)


def released(graph: Any, denoiser: str, epsilon: float, mode: str, people: LocalPrivacy = PUBLIC) -> LinkReports:
    links = LinkPrivacy(epsilon, mode, DENOISERS[denoiser], 0.2)
    half = torch.arange(graph.num_nodes) % 2 == 0
    split = Split(half, torch.zeros_like(half), ~half)
    noise = SeededRandomness(1)
    return randomize_graph(graph, split, people, links, randomness=noise)


@pytest.mark.parametrize("mode", ["lower", "both", "directed"])
@pytest.mark.parametrize("denoiser", DENOISERS)
def test_every_denoiser_gives_a_graph_of_these_people(denoiser: str, mode: str) -> None:
    """Known nodes only, nobody linked to itself, nothing twice, weights in (0, 1]; undirected posteriors both ways."""
    sent = released(links_made.graph(directed=mode == "directed"), denoiser, 4.0, mode)
    denoised = denoise(sent, denoiser, 0)
    assert denoised.num_nodes == made.NODES
    assert denoised.propagation().shape == (made.NODES, made.NODES)
    if isinstance(denoised, SoftTopology):
        assert denoiser == "blink-soft"
        return
    edges = [tuple(pair) for pair in denoised.edge_index.T.tolist()]
    assert len(set(edges)) == len(edges)
    assert all(i != j and min(i, j) >= 0 and max(i, j) < made.NODES for i, j in edges)
    if denoised.weights is not None:
        assert len(denoised.weights) == len(edges)
        assert float(denoised.weights.min()) > 0 and float(denoised.weights.max()) <= 1
    if mode == "lower" or (mode == "both" and denoiser.startswith(("blink", "beliefs"))):
        assert {(j, i) for i, j in edges} == set(edges)


@pytest.mark.parametrize("denoiser", DENOISERS)
@pytest.mark.parametrize("other", ["none", "degree-preserving", "blink-hard"])
def test_lists_collected_for_another_denoiser_are_refused(denoiser: str, other: str) -> None:
    if DENOISERS[denoiser] == DENOISERS[other]:
        return
    with pytest.raises(InputError, match=f"denoiser {denoiser} cannot read lists collected by {DENOISERS[other]}"):
        denoise(released(links_made.graph(), other, 4.0, "both"), denoiser, 0)


@pytest.mark.parametrize("denoiser", DENOISERS)
def test_public_links_need_no_denoising(denoiser: str) -> None:
    graph = links_made.graph()
    denoised = denoise(released(graph, denoiser, math.inf, "lower"), denoiser, 0)
    assert torch.equal(denoised.edge_index, graph.edge_index)  # type: ignore[union-attr]


def test_label_evidence_is_prior_and_likelihood() -> None:
    """Nobody's report: the class shares; a report of class k: the channel's column k on top."""
    graph = links_made.communities()
    sent = released(graph, "none", 4.0, "lower", LocalPrivacy(math.inf, 2.0))
    evidence = label_evidence(sent)
    labels = sent.people.labels
    silent, heard = evidence[labels < 0], evidence[labels >= 0]
    assert torch.equal(silent, silent[:1].expand_as(silent))
    assert torch.allclose(silent[0].exp(), torch.full((3,), 1 / 3), atol=0.1)
    keep = math.exp(2) / (math.exp(2) + 2)
    ratio = (heard - silent[0]).exp()
    mine = ratio[torch.arange(len(heard)), labels[labels >= 0]]
    assert torch.allclose(mine, torch.full_like(mine, keep), atol=1e-4)
    assert torch.allclose(ratio.sum(dim=1), torch.ones(len(heard)), atol=1e-4)
