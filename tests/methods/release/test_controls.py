"""Controls of released graphs: what made edges are compared with, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from graphveil.errors import InputError
from graphveil.methods import LPGNN, HeteroRR, LabelPropagation
from graphveil.methods.registry import METHODS, require_trainable
from graphveil.methods.release.controls import (
    random_in_place,
    release_controls_of,
    release_notes,
)
from graphveil.methods.release.report import kept_structure, pairs_of, with_statistics
from graphveil.methods.runs import experiment
from graphveil.methods.runs.search import Search
from graphveil.privacy import SecureRandomness, SeededRandomness
from tests.methods import made, released_made
from tests.methods.local.test_controls import OnlyTestLabels

OPEN = {"epsilon_x": math.inf, "epsilon_y": math.inf}


def released(**settings: Any) -> Any:
    method = HeteroRR(**{"epsilon_x": 2.0, "epsilon_a": 3.0, **settings})
    return method.release(released_made.graph(), randomness=SeededRandomness(1))


def trained(graph: Any, **settings: Any) -> LPGNN:
    method = LPGNN(**{**OPEN, **settings}, **released_made.QUICK)
    return method.fit(graph, split=made.split_of(graph), randomness=SeededRandomness(1))


def test_a_network_on_a_release_has_its_guarantee_and_ledger() -> None:
    graph = released(epsilon_y=1.0)
    for settings in ({}, {"epsilon_x": 1.0}, {"epsilon_y": 1.0}):
        method = trained(graph, **settings)
        assert method.guarantee == graph.release.guarantee
        assert method.ledger == graph.release.ledger
        twice = "protects nothing more" in " ".join(release_notes(method, graph))
        assert twice == bool(settings)


def test_the_channel_of_the_release_is_inverted_and_two_channels_are_one(tmp_path: Any) -> None:
    graph = released(epsilon_y=1.0)
    once, twice = trained(graph).released, trained(graph, epsilon_y=2.0).released
    assert once is not None and twice is not None
    keep, flip = graph.release.keep, graph.release.flip
    assert once.channel == pytest.approx((keep, flip))
    second = math.exp(2) / (math.exp(2) + 2)
    both = keep * second + 2 * flip * (1 - second) / 2
    assert twice.channel == pytest.approx((both, (1 - both) / 2))
    loaded = LPGNN.load(trained(graph).save(tmp_path))
    assert loaded.guarantee == graph.release.guarantee
    assert loaded.ledger == graph.release.ledger
    labels = LabelPropagation(epsilon_y=math.inf).fit(graph, randomness=SeededRandomness(1))
    assert LabelPropagation.load(labels.save(tmp_path / "labels")).guarantee == graph.release.guarantee


@pytest.mark.slow  # trainings
@pytest.mark.parametrize("epsilon_y", [math.inf, 1.0])
def test_controls_read_the_release_and_test_labels_alone(epsilon_y: float) -> None:
    graph = released_made.graph()
    split = made.split_of(graph)
    method = HeteroRR(epsilon_x=2.0, epsilon_a=3.0, epsilon_y=epsilon_y, **released_made.QUICK)
    method.fit(graph, split=split, randomness=SeededRandomness(1))
    open_, sealed = (release_controls_of(method, g, split) for g in (graph, OnlyTestLabels(graph, split.test)))
    names = {"public-edges", "random-edges", "public-only", "no-edges", "random-features", "label-propagation"}
    names |= {"majority", "label-pool"}
    assert set(open_) == set(sealed) == names
    for control in names:
        found = open_[control]()
        assert np.array_equal(found, sealed[control]()), control
        if control == "public-only" and epsilon_y < math.inf:
            assert found.tolist() == [1 / 3] * int(split.test.sum())


def test_random_edges_are_as_many_and_lie_in_the_protected_pairs() -> None:
    graph = released()
    edge_index = random_in_place(graph, seed=3)
    assert edge_index.shape == graph.edge_index.shape
    count = torch.unique(edge_index[0] * made.NODES + edge_index[1]).numel()
    assert count == edge_index.shape[1]
    known = graph.edge_index[:, graph.public_edges]
    keys = {tuple(pair) for pair in edge_index.T.tolist()}
    assert {tuple(pair) for pair in known.T.tolist()} <= keys
    assert not torch.equal(edge_index, random_in_place(graph, seed=4))


@pytest.mark.parametrize("name", ["gap", "solitude", "heterorr"])
def test_what_would_protect_again_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"the graph is a release: {name} would protect data that is already public"):
        experiment.run(name, released(), settings={}, randomness=SecureRandomness())
    require_trainable(METHODS["gcn"], released())


def test_what_a_release_keeps_is_public_and_its_distance_to_the_truth_is_not() -> None:
    graph, out = released_made.graph(), released(edges="edge-rand", epsilon_a=30.0)
    kept = kept_structure(graph, out)
    assert kept is not None
    assert kept.curator["overlap"]["common"] == kept.curator["overlap"]["true"]
    assert kept.curator["distance_of_released"]["edges"] == 0
    told = with_statistics(out, kept).release.statistics
    assert told["released"]["edges"] == pairs_of(out, known=True).shape[1] + pairs_of(out, known=False).shape[1]
    assert "truth" not in told and "overlap" not in told
    assert kept_structure(graph, released(epsilon_a=math.inf)) is None


def test_settings_are_chosen_on_one_release() -> None:
    search = Search({"hidden": (2, 4), "steps_x": (1, 2)})
    run = {"randomness": SecureRandomness(), "controls": False, "search": search}
    found = experiment.run("heterorr", released_made.graph(), settings={"epochs": 2}, **run)
    assert found.privacy.ledger.total("edges")[0] == 1.0
    assert found.privacy.ledger.total("features")[0] == 1.0
    assert "4 trials: this costs no privacy" in found.notes[0]
    with pytest.raises(InputError, match="edges must be fixed before people report"):
        Search({"edges": ("mcmc",)}).require("heterorr", {})
