"""LPGNN: its settings, its training, and UPGNet, which reads the same reports through other layers."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pytest
import torch

from graphveil.errors import InputError
from graphveil.graphs import Split
from graphveil.methods import LPGNN
from graphveil.privacy import SeededRandomness
from tests.methods import made
from tests.sizes import LargestTensor

SHORT: dict[str, Any] = {"epochs": 3, "hidden": 4, "steps_x": 2, "steps_y": 2}


def short(**settings: Any) -> LPGNN:
    return LPGNN(**{"epsilon_x": 1.0, "epsilon_y": 1.0, **SHORT, **settings})


# ---- settings ----


def test_hops_left_open_are_those_that_each_part_needs() -> None:
    """Noise is averaged out over neighbours; what is public needs no averaging."""
    for epsilon_x, epsilon_y, hops in ((1.0, 1.0, (8, 4)), (math.inf, 1.0, (0, 4)), (1.0, math.inf, (8, 0))):
        for left_open in ({}, {"steps_x": None, "steps_y": None}):
            found = LPGNN(epsilon_x=epsilon_x, epsilon_y=epsilon_y, **left_open).settings
            assert (found.steps_x, found.steps_y) == hops
    assert LPGNN(epsilon_x=math.inf, epsilon_y=1.0, steps_x=3).settings.steps_x == 3


def test_the_default_split_comes_from_the_seed_and_without_labels() -> None:
    graph = made.graph()
    first, again, other = (short(seed=s).fit(graph, randomness=SeededRandomness(1)).released for s in (0, 0, 1))
    assert torch.equal(first.train, again.train)
    assert not torch.equal(first.train, other.train)
    assert not bool(first.labelled[made.UNKNOWN])


# ---- training ----


def test_nothing_of_size_n_times_d_is_built_where_features_stay_sparse() -> None:
    """From collection to prediction; the server holds one number a person."""
    from graphveil.graphs import social_graph

    n, d = 1_500, 6_000
    graph = social_graph(n, 6, d, 3, apps=5, seed=1)
    method = LPGNN(epsilon_x=1.0, epsilon_y=1.0, epochs=2, steps_x=2, steps_y=2)
    with LargestTensor() as watch:
        method.fit(graph, randomness=SeededRandomness(1)).predict()
    assert watch.numbers < n * d / 20


def test_a_split_without_training_nodes_is_refused() -> None:
    graph = made.graph()
    none = torch.zeros(made.NODES, dtype=torch.bool)
    with pytest.raises(InputError, match="no training node carries a label"):
        short().fit(graph, split=Split(none, graph.y >= 0, none), randomness=SeededRandomness(1))


def test_labels_that_reach_no_training_node_are_a_clear_error() -> None:
    graph = made.graph()
    graph.edge_index = torch.zeros(2, 0, dtype=torch.int64)
    with pytest.raises(
        InputError, match=r"no label reaches a training node in 2 hops: too few edges; .* --set steps_y=0"
    ):
        short().fit(graph, randomness=SeededRandomness(1))


@pytest.mark.parametrize("selection", ["robust", "published"])
def test_without_validation_nodes_the_last_epoch_is_kept(selection: str) -> None:
    """Nothing says that the first, untrained one is best."""
    graph = made.graph()
    nobody = torch.zeros(made.NODES, dtype=torch.bool)
    split = Split(graph.y >= 0, nobody, nobody)
    fitted = [
        short(selection=name, epochs=5).fit(graph, split=split, randomness=SeededRandomness(1)).predict_proba()
        for name in (selection, "last")
    ]
    assert torch.equal(*fitted)


# ---- UPGNet ----


UPGNET = partial(LPGNN, denoising="upgnet", epsilon_x=4.0, epsilon_y=1.0, **SHORT)


def predicted(**settings: Any) -> torch.Tensor:
    graph = made.graph()
    method = LPGNN(**{"epsilon_x": 4.0, "epsilon_y": 1.0, **SHORT, **settings})
    answer: torch.Tensor = method.fit(graph, split=made.split_of(graph), randomness=SeededRandomness(1)).predict_proba()
    return answer


def test_the_same_reports_are_read_through_other_layers() -> None:
    plain, upgnet = LPGNN(epsilon_x=4.0, epsilon_y=1.0), UPGNET()
    graph, split = made.graph(), made.split_of(made.graph())
    sent = [one.randomize(graph, split=split, randomness=SeededRandomness(1)).digest for one in (plain, upgnet)]
    assert sent[0] == sent[1]
    assert not torch.equal(predicted(), predicted(denoising="upgnet"))


@pytest.mark.parametrize("epsilon_x", [math.inf, None])
def test_what_holds_no_noise_is_left_as_lpgnn_reads_it(epsilon_x: float | None) -> None:
    assert torch.equal(predicted(epsilon_x=epsilon_x), predicted(epsilon_x=epsilon_x, denoising="upgnet"))


def test_the_units_of_features_change_nothing() -> None:
    """The threshold is one for features in [0, 1]: declared in other units, features give the same network."""
    graph = made.graph(20)
    wide = made.changed(graph, x=16 * made.dense(graph.x), low=16 * graph.schema.low, high=16 * graph.schema.high)
    found = [
        UPGNET(seed=0).fit(one, split=made.split_of(one), randomness=SeededRandomness(1)).predict_proba()
        for one in (graph, wide)
    ]
    assert torch.allclose(found[0], found[1], atol=1e-4)
