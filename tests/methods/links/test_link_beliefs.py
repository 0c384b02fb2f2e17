"""Link beliefs, list sums, the network beside them, and when lists are used."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.graphs import Split
from graphveil.mechanisms import AdjacencyRR
from graphveil.methods import LinkBeliefs, load_method
from graphveil.methods.base.network.features import labels_of
from graphveil.methods.base.network.network import Labels
from graphveil.methods.links.collection import pairs_of
from graphveil.methods.links.entries import READINGS
from graphveil.methods.links.opinions import inputs_of, list_columns, train_with_columns, two_steps, with_labels
from graphveil.methods.links.readings import LINKS_UNUSED, LINKS_USED, Opinion, judged_labels, read_lists, worth_pooling
from graphveil.models import NamedPairs
from graphveil.models.blocks.list_sums import unbiased_labels
from graphveil.models.labels.label_prior import Channel
from graphveil.privacy import SeededRandomness
from tests.methods import links_made, made


@pytest.mark.slow  # trainings
def test_planted_blocks_are_asked_for_kept_in_a_file_and_cost_nothing(tmp_path: Path) -> None:
    graph, made_with = links_made.communities(), {"epsilon_x": None, "epsilon_a": 4.0, "epsilon_y": 2.0}
    plain, full, few = (
        LinkBeliefs(**made_with, **more).fit(graph, split=half(graph), randomness=SeededRandomness(1))
        for more in ({}, {"blocks": "full"}, {"blocks": "planted"})
    )
    assert torch.equal(plain.predict_proba(), full.predict_proba())
    assert not torch.equal(plain.predict_proba(), few.predict_proba())
    assert few.guarantee == plain.guarantee
    few.save(tmp_path / "model")
    assert load_method(tmp_path / "model").get_params()["blocks"] == "planted"


def tenth(graph: Any) -> Split:
    """One in ten trains, another one validates."""
    numbers = torch.arange(graph.num_nodes) % 10
    return Split(numbers == 0, numbers == 1, numbers > 1)


def half(graph: Any) -> Split:
    """Half trains, a quarter validates."""
    numbers = torch.arange(graph.num_nodes) % 4
    return Split(numbers > 1, numbers == 1, numbers == 0)


@pytest.mark.parametrize(
    ("mode", "y", "reading"),
    [
        pytest.param("lower", math.inf, "all", marks=pytest.mark.slow),
        ("both", 2.0, "beliefs"),
        ("directed", math.inf, "beliefs"),
    ],
)
def test_lists_that_tell_something_are_used_and_help(mode: str, y: float, reading: str) -> None:
    """Random features; half of the reported links are false, yet far more classes are met than without lists."""
    graph = links_made.communities(directed=mode == "directed")
    split = tenth(graph) if math.isinf(y) else half(graph)
    bit = 2.5 if mode == "both" else 4.0
    method = LinkBeliefs(epsilon_x=None, epsilon_a=bit, epsilon_y=y, mode=mode, reading=reading)
    method.fit(graph, split=split, randomness=SeededRandomness(1))
    assert method.variant == LINKS_USED
    assert method.score(graph, split.test) > 0.7
    alone = read_lists(method.released, "all", rounds=1, seed=0, leave_lists=True).scores
    assert float((alone.argmax(dim=1) == graph.y)[split.test].float().mean()) < 0.5


def test_lists_that_mislead_are_left_out() -> None:
    """Links that follow another partition: what comes out is just what the control without links gives."""
    graph, shuffled = links_made.communities(), torch.randperm(600, generator=torch.Generator().manual_seed(1))
    edges = shuffled[graph.edge_index]
    graph.edge_index = edges[:, torch.argsort(edges[0] * 600 + edges[1])]
    method = LinkBeliefs(epsilon_x=math.inf, epsilon_a=6.0, reading="all", rounds=2)
    method.fit(graph, split=made.split_of(graph), randomness=SeededRandomness(2))
    assert method.variant == LINKS_UNUSED
    alone = read_lists(method.released, "all", rounds=1, seed=0, leave_lists=True).scores
    assert torch.equal(method.predict_proba(), torch.softmax(alone, dim=1))


def test_a_network_joins_the_regression_only_where_held_out_labels_are_likelier() -> None:
    """200 labels judge; a network that is sure at random never joins, one that knows more than the regression does."""
    drawn = torch.Generator().manual_seed(1)
    true = torch.arange(200) % 2
    training = torch.ones(200, dtype=torch.bool)
    labels = Labels(true, ~training, training, Channel(2))
    evidence = torch.eye(2).log().clamp_min(-20.0)[true]

    def opinion(right: float, sure: float, first: float) -> Opinion:
        guess = torch.where(torch.rand(200, generator=drawn) < right, true, 1 - true)
        scores = sure * torch.nn.functional.one_hot(guess, 2).float()
        return Opinion(scores, scores, first)

    regression = opinion(0.7, 1.0, 0.5)
    assert [each.first for each in worth_pooling([regression, opinion(0.5, 9.0, 0.1)], labels, evidence)[0]] == [1.0]
    assert len(worth_pooling([regression, opinion(0.9, 2.0, 0.1)], labels, evidence)[0]) == 2
    assert worth_pooling([regression], labels, evidence)[0] == [replace(regression, first=1.0)]


# ---- readings ----


def released(**settings: Any) -> Any:
    graph = links_made.graph()
    method = LinkBeliefs(**{"epsilon_x": math.inf, "epsilon_a": 6.0, **settings})
    return method.randomize(graph, split=made.split_of(graph), randomness=SeededRandomness(1))


def test_where_nobody_validates_a_third_of_those_who_train_judges() -> None:
    labels = labels_of(released().people)
    nobody = replace(labels, val=torch.zeros_like(labels.val))
    first, second = judged_labels(nobody, "cpu"), judged_labels(nobody, "cpu")
    assert int(first.val.sum()) == int(labels.train.sum()) // 3
    assert not bool((first.val & first.train).any())
    assert torch.equal(first.val | first.train, labels.train)
    assert torch.equal(first.val, second.val)
    assert judged_labels(labels, "cpu").val.equal(labels.val)


def test_the_same_people_under_another_name_are_told_of_the_name() -> None:
    graph = links_made.communities()
    model = LinkBeliefs(epsilon_x=None, epsilon_a=4.0, epsilon_y=2.0, rounds=1)
    model.fit(graph, split=half(graph), randomness=SeededRandomness(1))
    moved, fewer = copy(graph), links_made.communities(60)
    moved["schema"] = graph.schema.derived(name="moved")
    with pytest.raises(InputError, match=f"if these are .* call their graph {graph.schema.name!r}"):
        model.predict_proba(moved)
    with pytest.raises(InputError, match="collect their reports and fit again"):
        model.predict_proba(fewer)


def test_own_labels_count_for_those_who_sent_one_alone() -> None:
    labels = labels_of(released(epsilon_y=2.0).people)
    heard = labels.channel.logs
    evidence = with_labels(torch.zeros(made.NODES, 3), labels, heard)
    labelled = labels.train | labels.val
    assert torch.allclose(evidence[labelled], heard[:, labels.values[labelled]].T)
    assert not evidence[~labelled].any()


@pytest.mark.parametrize("reading", READINGS)
def test_reports_without_training_labels_are_refused(reading: str) -> None:
    sent = released()
    nobody = torch.zeros(made.NODES, dtype=torch.bool)
    empty = replace(sent, people=replace(sent.people, train=nobody, val=nobody))
    with pytest.raises(InputError, match="no training node carries a label; give the split some training nodes"):
        read_lists(empty, reading, rounds=2, seed=0)


# ---- the network beside noisy counts ----


PEOPLE = made.NODES


def pairs(mode: str = "lower", epsilon: float = 3.0) -> NamedPairs:
    mechanism = AdjacencyRR(epsilon=epsilon, nodes=PEOPLE, mode=mode)
    edges = links_made.graph(directed=mode == "directed").edge_index
    return pairs_of(mechanism, mechanism.randomize(edges, randomness=SeededRandomness(1)))


def shares() -> Tensor:
    """Public labels of two people in three."""
    return unbiased_labels(links_made.graph().y, torch.arange(PEOPLE) % 3 > 0, Channel(3))


def test_public_features_are_given_as_they_are_and_private_ones_standardised() -> None:
    weight = torch.randn(20, 4, generator=torch.Generator().manual_seed(1))
    graph = links_made.graph()
    public = inputs_of(released().people, "cpu")
    assert torch.allclose(public.linear(weight), graph.x.to_dense() @ weight, atol=1e-5)
    private = inputs_of(released(epsilon_x=1.0).people, "cpu")
    estimates = private.linear(torch.eye(20))
    assert torch.allclose(estimates.mean(dim=0), torch.zeros(20), atol=1e-5)
    assert 0.7 < float(estimates.square().mean()) < 1.4


def trained(reports: Labels, *, seed: int = 0) -> Any:
    return train_with_columns(inputs_of(released().people, "cpu"), list_columns(pairs(), shares()), reports, seed=seed)


def test_validation_labels_take_no_part_in_what_they_judge() -> None:
    """Beyond the epoch: with as many of them right at each epoch as before, the judged network is the same."""
    labels = labels_of(released().people)
    nobody = replace(labels, val=torch.zeros_like(labels.val))
    scrambled = replace(labels, values=torch.where(labels.val, (labels.values + 1) % 3, labels.values), val=nobody.val)
    assert torch.equal(trained(nobody).judged, trained(scrambled).judged)


@pytest.mark.parametrize(("mode", "columns"), [("lower", 12), ("both", 12), ("directed", 24)])
def test_columns_of_both_steps_have_one_scale(mode: str, columns: int) -> None:
    z = two_steps(pairs(mode), shares())
    assert z.shape == (PEOPLE, columns)
    assert torch.allclose(z[:, : columns // 2], list_columns(pairs(mode), shares()))
    assert torch.allclose(z.mean(dim=0), torch.zeros(columns), atol=1e-5)
    assert torch.allclose(z.std(dim=0, correction=0), torch.ones(columns), atol=1e-3)
