"""Controls see what the method's server saw, and nothing else."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from graphveil.methods import LPGNN, LabelPropagation
from graphveil.methods.local.controls import ceiling_of, controls_of, hits, network_settings
from graphveil.privacy import SeededRandomness
from tests.methods import made

METHODS = {
    "private": {"epsilon_x": 1.0, "epsilon_y": 1.0},
    "private features": {"epsilon_x": 1.0, "epsilon_y": math.inf},
    "no features": {"epsilon_x": None, "epsilon_y": 1.0},
    "public": {"epsilon_x": math.inf, "epsilon_y": math.inf},
}


@pytest.mark.slow  # trainings
@pytest.mark.parametrize("name", METHODS)
def test_controls_read_no_features_and_no_labels_but_those_of_test_nodes(name: str) -> None:
    """The accuracy of each is the same when everything that was not released is out of reach."""
    graph = made.graph()
    split = made.split_of(graph)
    method = LPGNN(**METHODS[name], epochs=3, hidden=4, steps_x=2, steps_y=2)
    method.fit(graph, split=split, randomness=SeededRandomness(1))
    open_, sealed = (controls_of(method, g, split) for g in (graph, made.Sealed(graph, split.test)))
    assert set(open_) == set(sealed)
    for control in open_:
        assert np.array_equal(open_[control](), sealed[control]()), control


def test_each_method_is_compared_with_what_it_is_not() -> None:
    """Where no features are collected random numbers stand in for them: a control without edges would be the method."""
    common, graph = {"public-only", "majority"}, made.graph()
    for method, controls in (
        (LPGNN(epsilon_x=None, epsilon_y=1.0, epochs=1), {"label-propagation", "label-pool"}),
        (LabelPropagation(epsilon_y=1.0, rule="pool"), {"label-propagation", "random-features"}),
        (LabelPropagation(epsilon_y=1.0), set()),
    ):
        method.fit(graph, split=made.split_of(graph), randomness=SeededRandomness(1))
        assert set(controls_of(method, graph, made.split_of(graph))) == common | controls


def test_the_ceiling_is_one_whatever_the_noise() -> None:
    """It reads the truth, so neither epsilon nor the draw of noise reaches it."""
    graph = made.graph()
    split = made.split_of(graph)
    found = []
    for epsilon, seed in ((0.1, 1), (3.0, 2)):
        method = LPGNN(epsilon_x=epsilon, epsilon_y=epsilon, epochs=3, hidden=4)
        method.fit(graph, split=split, randomness=SeededRandomness(seed))
        found.append(ceiling_of(network_settings(method), graph, split))
    assert np.array_equal(*found)


def test_hits_are_counted_on_test_nodes_alone() -> None:
    graph = made.graph()
    split = made.split_of(graph)
    right = torch.nn.functional.one_hot(graph.y.clamp_min(0), 3).float()
    assert hits(right, graph, split).tolist() == [1.0] * int(split.test.sum())
    right[~split.test] = 0
    assert hits(right, graph, split).tolist() == [1.0] * int(split.test.sum())
    assert hits(1 - right, graph, split).sum() == 0


def test_the_majority_is_the_class_that_most_released_labels_name() -> None:
    graph = made.graph()
    split = made.split_of(graph)
    method = LPGNN(epsilon_x=1.0, epsilon_y=0.5, epochs=2, hidden=4, steps_x=2, steps_y=2)
    method.fit(graph, split=split, randomness=SeededRandomness(1))
    released = method.released.labels[split.train | split.val]
    most = int(torch.bincount(released, minlength=3).argmax())
    expected = (graph.y[split.test] == most).numpy().astype(float)
    assert np.array_equal(controls_of(method, graph, split)["majority"](), expected)


def test_the_pool_beside_a_network_is_the_method_of_that_name_on_the_same_labels() -> None:
    graph = made.graph()
    split = made.split_of(graph)
    settings: dict[str, Any] = {"epochs": 2, "hidden": 4, "steps_x": 2, "steps_y": 2}
    method = LPGNN(epsilon_x=None, epsilon_y=1.0, **settings)
    method.fit(graph, split=split, randomness=SeededRandomness(1))
    pool = LabelPropagation(epsilon_y=1.0, rule="pool").fit(graph, split=split, randomness=SeededRandomness(1))
    assert torch.equal(method.released.labels, pool.released.labels)
    expected = hits(pool.predict_proba(), graph, split)
    assert np.array_equal(controls_of(method, graph, split)["label-pool"](), expected)
