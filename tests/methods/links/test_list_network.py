"""The network beside noisy counts: what it is given, and which labels may judge it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from graphveil.mechanisms import AdjacencyRR
from graphveil.methods import LinkBeliefs
from graphveil.methods.base.features import labels_of
from graphveil.methods.base.network import Labels
from graphveil.methods.links.collection import pairs_of
from graphveil.methods.links.list_counts import two_steps
from graphveil.methods.links.list_network import beside, inputs_of, train_beside
from graphveil.models import NamedPairs
from graphveil.models.list_sums import unbiased_labels
from graphveil.privacy import SeededRandomness
from tests.methods import links_made, made

PEOPLE = made.NODES


def pairs(mode: str = "lower", epsilon: float = 3.0) -> NamedPairs:
    mechanism = AdjacencyRR(epsilon=epsilon, nodes=PEOPLE, mode=mode)
    edges = links_made.graph(directed=mode == "directed").edge_index
    return pairs_of(mechanism, mechanism.randomize(edges, randomness=SeededRandomness(1)))


def shares() -> Tensor:
    """Public labels of two people in three."""
    return unbiased_labels(links_made.graph().y, torch.arange(PEOPLE) % 3 > 0, 3, 1.0, 0.0)


def released(**settings: Any) -> Any:
    graph = links_made.graph()
    method = LinkBeliefs(**{"epsilon_x": math.inf, "epsilon_a": 4.0, **settings})
    return method.randomize(graph, split=made.split_of(graph), randomness=SeededRandomness(1))


def test_public_features_are_given_as_they_are_and_private_ones_standardised() -> None:
    weight = torch.randn(20, 4, generator=torch.Generator().manual_seed(1))
    graph = links_made.graph()
    public = inputs_of(released().people, "cpu")
    assert torch.allclose(public.linear(weight), graph.x.to_dense() @ weight, atol=1e-5)
    private = inputs_of(released(epsilon_x=1.0).people, "cpu")
    estimates = private.linear(torch.eye(20))
    assert torch.allclose(estimates.mean(dim=0), torch.zeros(20), atol=1e-5)
    assert 0.7 < float(estimates.square().mean()) < 1.4


def labels() -> Labels:
    return labels_of(released().people)


def trained(told: Labels, *, seed: int = 0) -> Any:
    return train_beside(inputs_of(released().people, "cpu"), beside(pairs(), shares()), told, seed=seed)


def test_validation_labels_take_no_part_in_what_they_judge() -> None:
    """Beyond the epoch: with as many of them right at each epoch as before, the judged network is the same."""
    told = labels()
    nobody = replace(told, val=torch.zeros_like(told.val))
    scrambled = replace(told, values=torch.where(told.val, (told.values + 1) % 3, told.values), val=nobody.val)
    assert torch.equal(trained(nobody).judged, trained(scrambled).judged)


# ---- the regression on counts ----


@pytest.mark.parametrize(("mode", "columns"), [("lower", 12), ("both", 12), ("directed", 24)])
def test_columns_of_both_steps_have_one_scale(mode: str, columns: int) -> None:
    z = two_steps(pairs(mode), shares())
    assert z.shape == (PEOPLE, columns)
    assert torch.allclose(z[:, : columns // 2], beside(pairs(mode), shares()))
    assert torch.allclose(z.mean(dim=0), torch.zeros(columns), atol=1e-5)
    assert torch.allclose(z.std(dim=0, correction=0), torch.ones(columns), atol=1e-3)
