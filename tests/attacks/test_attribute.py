"""Features read off what a method shows."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from graphveil.attacks import attribute
from graphveil.attacks.result import AttackResult
from graphveil.attacks.service import labels_alone, with_features_of_others
from graphveil.errors import InputError
from graphveil.graphs import random_split
from graphveil.methods import GAP, LPGNN, LabelPropagation
from graphveil.privacy import SeededRandomness
from tests.attacks import made


class Blurts:
    """Shows feature 2 in its confidence."""

    def predict_proba(self, graph: Any) -> Tensor:
        secret = graph.x.to_dense()[:, 2] * 0.2
        noise = torch.rand(len(secret), generator=torch.Generator().manual_seed(1)) * 0.1
        return torch.stack([0.4 + secret + noise, 0.3 - secret / 2 - noise, 0.3 - secret / 2], dim=1)


def test_the_planted_feature_is_found_and_another_is_not() -> None:
    found = attribute(Blurts(), made.graph(), column=2)
    assert found.auc.mean > 0.95 and found.auc.low > 0.8 and found.figures["variance explained beyond the mean"] > 0.5
    other = attribute(Blurts(), made.graph(), column=40)
    assert other.auc.low < 0.65


def test_a_constant_says_what_the_mean_says() -> None:
    for column in (2, None):
        found = attribute(made.Constant(), made.graph(), column=column)
        assert found.auc.low <= 0.5 <= found.auc.high
        assert abs(found.figures["variance explained beyond the mean"]) < 1e-9


def test_reported_features_have_a_limit() -> None:
    method = LPGNN(epsilon_x=1.0, epsilon_y=1.0, epochs=5)
    method.fit(made.graph(), split=random_split(made.graph(), 0), randomness=SeededRandomness(0))
    found = attribute(method, made.graph(), column=2)
    assert found.epsilon == pytest.approx(1.0) and found.limit is not None and not found.beats_limit


@pytest.mark.slow  # noise of node-level training; limits of answers are in test_limits
def test_the_answer_about_a_node_is_outside_joint_privacy() -> None:
    method = GAP(epsilon=8.0, delta=1e-5, unit="node", degree_bound=5, hops=1, hidden=8, passes=1)
    method.fit(made.graph(), split=random_split(made.graph(), 0), randomness=SeededRandomness(0))
    found = attribute(method, made.graph(), column=2)
    assert found.limit is None and "joint privacy" in found.limit_note


def test_refusals() -> None:
    with pytest.raises(InputError, match="column"):
        attribute(made.Constant(), made.graph(), column=100)
    with pytest.raises(InputError, match="known"):
        attribute(made.Constant(), made.graph(), known=1.0)
    with pytest.raises(InputError, match="one a node"):
        attribute(made.Constant(), made.graph(), shown=np.ones((3, 2)))
    flat = made.graph().clone()
    flat.x = torch.zeros(300, 100)
    with pytest.raises(InputError, match="same side"):
        attribute(made.Constant(), flat, column=1)


def test_what_friends_have_in_common_is_not_held_against_the_method() -> None:
    """Labels spread over the edges read no features, so they cannot break a promise about features."""
    method = LabelPropagation(epsilon_y=math.inf)
    method.fit(made.graph(), split=random_split(made.graph(), 0), randomness=SeededRandomness(0))
    found = attribute(method, made.graph(), split=random_split(made.graph(), 0))
    assert found.auc.low > 0.5 and found.baseline == pytest.approx(found.auc.mean)
    assert not found.beats_limit


def test_what_noise_shows_of_the_structure_is_not_held_against_the_method() -> None:
    """Rows that are the same after features were dealt out anew have nothing of one's own features in them."""
    graph = made.graph()
    x, others = (one.x.to_dense() for one in (graph, with_features_of_others(graph, 0)))
    assert not torch.equal(x, others) and torch.equal(x.sum(dim=0), others.sum(dim=0))
    rows = x.numpy()[:, :40] + 0.5
    found = attribute(made.Constant(), graph, shown=rows, dealt=[rows] * 3)
    assert found.auc.mean > 0.6 and found.baseline == pytest.approx(found.auc.mean, abs=0.02)
    assert found.baseline_note == "the same method with other people's features"
    assert found.baseline_high is not None and found.baseline_high == pytest.approx(found.baseline, abs=0.02)
    dealt = [with_features_of_others(graph, seed).x.to_dense().numpy()[:, :40] + 0.5 for seed in range(6)]
    leak = attribute(made.Constant(), graph, shown=rows, dealt=dealt)
    assert leak.baseline_high is not None and leak.baseline_high < leak.auc.low
    assert AttackResult.from_dict(leak.to_dict()) == leak


def test_a_baseline_is_as_strong_where_edges_are_declared_private() -> None:
    private = made.graph().clone()
    private.schema = replace(private.schema, private=("features", "labels", "edges"))
    alone = labels_alone(made.graph(), None, 0)
    assert alone.shape[1] > 1 and np.array_equal(labels_alone(private, None, 0), alone)
