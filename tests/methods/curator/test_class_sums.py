"""Class sums and what features say: what one edge may change, what is free. Numbers are of the checklist."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from graphveil.aggregation import CountedSum
from graphveil.methods.curator.evidence import (
    LEAST_EXPLAINED,
    FeatureEvidence,
    corners,
    feature_evidence,
    messages,
    named_classes,
)
from graphveil.methods.curator.family import CURATOR
from graphveil.methods.curator.stages.training import NodeData, read_people
from graphveil.methods.curator.sum_clues import discriminant, sum_clues
from graphveil.methods.registry import plan
from graphveil.privacy import SeededRandomness
from tests.methods import curator_made as cm


@pytest.mark.slow  # trainings
@pytest.mark.parametrize("unit", ["edge", "directed-edge"])
@pytest.mark.parametrize("pair", [(0, 1), (10, 33)])
def test_replay_of_counts_on_a_neighbour_changes_nothing_but_them(
    unit: str, pair: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Items 2, 3, 4, as it is by default: an edge moves the counts of its ends by a message each, of L1 length 1."""
    replay = cm.Replay(monkeypatch, CountedSum)
    start = cm.graph()
    first = cm.fit("class-sums", start, unit=unit)
    before = replay.again()
    second = cm.fit("class-sums", cm.toggled(start, {pair}), unit=unit)
    assert torch.equal(first.predict_proba(), second.predict_proba())
    assert (first.history, first.ledger, first.guarantee) == (second.history, second.ledger, second.guarantee)
    ((sums, rows, x, _),), ((sums2, rows2, x2, _),) = before, replay.calls
    assert sums == sums2 and torch.equal(x, x2)
    plain = replace(sums, epsilon=math.inf)
    replay.replaying = False
    exact = [plain.perturb(edges, x, SeededRandomness(0)) for edges in (rows, rows2)]
    moved = float((exact[0] - exact[1]).abs().sum())
    assert moved == pytest.approx(float(x[list(pair)].sum()), abs=0.1)
    assert 0.0 < moved <= 2.0
    if unit == "edge":
        assert moved <= sums.change


def test_named_classes_are_shares_of_length_one() -> None:
    """A label is one class; who has none sends what features expect of it, where they explain something."""
    start = cm.graph()
    people = read_people(start, cm.split_of(start))
    names = named_classes(people, feature_evidence(people, corners(people.classes)))
    labelled = people.labels >= 0
    assert torch.equal(names[labelled].argmax(dim=1), people.labels[labelled])
    assert float(names.abs().sum(dim=1).max()) <= 1 + 1e-6


# ---- what is computed ----


@pytest.mark.parametrize("classes", [1, 2, 3, 7])
def test_corners_are_unit_rows_as_far_apart_as_can_be(classes: int) -> None:
    points = corners(classes)
    assert torch.allclose(points.norm(dim=1), torch.ones(classes))
    if classes > 1:
        apart = torch.cdist(points, points)[~torch.eye(classes, dtype=torch.bool)]
        assert torch.allclose(apart, torch.tensor(math.sqrt(2 * classes / (classes - 1))), atol=1e-3)


def test_exact_sums_count_neighbours_by_class() -> None:
    start = cm.graph()
    split = cm.split_of(start)
    labels = torch.where(split.train | split.val, start.y, -1)
    for law, names in (("geometric", torch.eye(3)), ("normal", corners(3))):
        method, expected = cm.fit("class-sums", epsilon=math.inf, noise=law), torch.zeros(60, 3)
        for sender, receiver in start.edge_index.T.tolist():
            if labels[sender] >= 0:
                expected[receiver] += names[labels[sender]]
        assert torch.allclose(method.published.sums, expected, atol=0.02)


def test_a_plan_and_the_control_read_no_edge() -> None:
    start = cm.graph()
    promised = plan("class-sums", cm.Edgeless(start), {"epsilon": 2.0})
    method = cm.fit("class-sums")
    CURATOR.controls(method, cm.Edgeless(start), cm.split_of(start), randomness=SeededRandomness(1))["no-edges"]()
    assert promised.figures is not None and promised.figures.noise == method.published.noise
    assert promised.guarantee.epsilon == method.guarantee.epsilon == 2.0
    assert promised.guarantee.unit == method.guarantee.unit


# ---- what public features say ----


N, C = 240, 3


def noisy_people(noise: float, *, validate: bool = True) -> NodeData:
    """Nodes whose features are the corner of their class and normal noise; half train, a quarter validates."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(N) % C
    features = (corners(C)[labels] + noise * torch.randn(N, C, generator=generator)).clamp(-4, 4)
    order = torch.randperm(N, generator=generator)
    train, val = order[: N // 2], order[N // 2 : N // 2 + N // 4] if validate else order[:0]
    labelled = torch.full((N,), -1)
    labelled[train], labelled[val] = labels[train], labels[val]
    return NodeData(features, labelled, train, val, cm.graph().schema, "key")


def test_no_label_of_a_training_node_is_in_its_own_row() -> None:
    """Another label changes the rows of others, never its own; a row that was fitted to it would move with it."""
    before = noisy_people(1.0)
    node = before.train[0]
    labels = before.labels.clone()
    labels[node] = (labels[node] + 1) % C
    first, second = (feature_evidence(inputs, corners(C)) for inputs in (before, replace(before, labels=labels)))
    assert torch.allclose(first.log_probabilities[node], second.log_probabilities[node], atol=5e-3)
    outside = before.val[0]
    assert not torch.allclose(first.log_probabilities[outside], second.log_probabilities[outside], atol=1e-6)


@pytest.mark.parametrize("explained", [LEAST_EXPLAINED, LEAST_EXPLAINED - 1e-9])
def test_messages_are_labels_and_what_features_expect_and_never_longer_than_one(explained: float) -> None:
    some = noisy_people(0.5)
    evidence = feature_evidence(some, corners(C))
    sent = messages(some, FeatureEvidence(evidence.log_probabilities, explained))
    labelled = some.labels >= 0
    assert torch.equal(sent[labelled], corners(C)[some.labels[labelled]])
    expected = evidence.log_probabilities.exp() @ corners(C) if explained >= LEAST_EXPLAINED else torch.zeros(N, C)
    assert torch.allclose(sent[~labelled], expected[~labelled])
    assert float(sent.norm(dim=1).max()) <= 1 + 1e-6


# ---- what a reader is told of a publication ----


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def test_classes_renamed_are_clues_renamed() -> None:
    people = read_people(cm.graph(), cm.split_of(cm.graph()))
    evidence, sums = feature_evidence(people, corners(people.classes)), 4 * normal(people.nodes, people.classes)
    order = torch.tensor([2, 0, 1])
    place = torch.argsort(order)
    other = replace(people, labels=torch.where(people.labels < 0, -1, place[people.labels.clamp_min(0)]))
    renamed = FeatureEvidence(evidence.log_probabilities[:, order], evidence.explained)
    own, common = sum_clues(people, evidence, sums, 2.0)
    own2, common2 = sum_clues(other, renamed, sums[:, order], 2.0)
    assert torch.allclose(own2, own[:, order], atol=1e-4)
    assert torch.allclose(common2, common, atol=1e-4)


def test_likeness_is_the_log_ratio_of_normal_laws_up_to_a_constant() -> None:
    """Two classes at -1 and 1 on one axis, spread 1: the log ratio is 2 x, whichever nodes trained."""
    n = 40_000
    labels = torch.arange(n) % 2
    sums = normal(n, 2)
    sums[:, 0] += 2.0 * labels - 1
    scores = discriminant(sums, labels, torch.arange(n), 1.0)
    ratio = scores[:, 1] - scores[:, 0]
    assert torch.allclose(ratio, 2 * sums[:, 0], atol=0.25)
