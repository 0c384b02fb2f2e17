"""What public features say: held-out rows, the share they explain, and what unlabelled nodes send because of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from graphveil.methods.curator.feature_evidence import FeatureEvidence, feature_evidence
from graphveil.methods.curator.messages import LEAST_EXPLAINED, corners, messages
from graphveil.methods.curator.sum_clues import COMMON, MOST, OWN, discriminant, sum_clues
from graphveil.methods.curator.training import NodeData, read_people
from tests.methods import curator_made as cm

N, C = 240, 3


def people(noise: float, *, validate: bool = True) -> NodeData:
    """Nodes whose features are the corner of their class and normal noise; half train, a quarter validates."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(N) % C
    features = (corners(C)[labels] + noise * torch.randn(N, C, generator=generator)).clamp(-4, 4)
    order = torch.randperm(N, generator=generator)
    train, val = order[: N // 2], order[N // 2 : N // 2 + N // 4] if validate else order[:0]
    known = torch.full((N,), -1)
    known[train], known[val] = labels[train], labels[val]
    return NodeData(features, known, train, val, cm.graph().schema, "key")


def test_features_that_tell_classes_explain_them_and_noise_does_not() -> None:
    """R^2 is 0 for noise within 6 deviations of 1/sqrt(60): false alarm below 1e-8; a copy without pi would say 0.3."""
    clear, blurred, nothing = (feature_evidence(people(noise), corners(C)).explained for noise in (0.1, 1.0, 1e6))
    assert clear > 0.9 > blurred > 0.1
    assert abs(nothing) < 6 * 0.13 and nothing < LEAST_EXPLAINED


def test_no_label_of_a_training_node_is_in_its_own_row() -> None:
    """Another label changes the rows of others, never its own; a row that was fitted to it would move with it."""
    before = people(1.0)
    node = before.train[0]
    labels = before.labels.clone()
    labels[node] = (labels[node] + 1) % C
    first, second = (feature_evidence(one, corners(C)) for one in (before, replace(before, labels=labels)))
    assert torch.allclose(first.log_probabilities[node], second.log_probabilities[node], atol=5e-3)
    outside = before.val[0]
    assert not torch.allclose(first.log_probabilities[outside], second.log_probabilities[outside], atol=1e-6)


@pytest.mark.parametrize("explained", [LEAST_EXPLAINED, LEAST_EXPLAINED - 1e-9])
def test_messages_are_labels_and_what_features_expect_and_never_longer_than_one(explained: float) -> None:
    some = people(0.5)
    found = feature_evidence(some, corners(C))
    sent = messages(some, FeatureEvidence(found.log_probabilities, explained))
    known = some.labels >= 0
    assert torch.equal(sent[known], corners(C)[some.labels[known]])
    expected = found.log_probabilities.exp() @ corners(C) if explained >= LEAST_EXPLAINED else torch.zeros(N, C)
    assert torch.allclose(sent[~known], expected[~known])
    assert float(sent.norm(dim=1).max()) <= 1 + 1e-6


# ---- what a reader is told of a publication ----


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(scope="module")
def people_of_sum_clues() -> NodeData:
    start = cm.graph()
    return read_people(start, cm.split_of(start))


def test_classes_renamed_are_clues_renamed(people_of_sum_clues: NodeData) -> None:
    evidence, sums = (
        feature_evidence(people_of_sum_clues, corners(people_of_sum_clues.classes)),
        4 * drawn(people_of_sum_clues.nodes, people_of_sum_clues.classes),
    )
    order = torch.tensor([2, 0, 1])
    place = torch.argsort(order)
    other = replace(
        people_of_sum_clues,
        labels=torch.where(people_of_sum_clues.labels < 0, -1, place[people_of_sum_clues.labels.clamp_min(0)]),
    )
    renamed = FeatureEvidence(evidence.log_probabilities[:, order], evidence.explained)
    own, common = sum_clues(people_of_sum_clues, evidence, sums, 2.0)
    own2, common2 = sum_clues(other, renamed, sums[:, order], 2.0)
    assert torch.allclose(own2, own[:, order], atol=1e-4)
    assert torch.allclose(common2, common, atol=1e-4)


@pytest.mark.parametrize("scale", [0.0, 1.0, 1e6])
def test_clues_are_bounded_numbers_whatever_the_sums(people_of_sum_clues: NodeData, scale: float) -> None:
    evidence = feature_evidence(people_of_sum_clues, corners(people_of_sum_clues.classes))
    own, common = sum_clues(
        people_of_sum_clues, evidence, scale * drawn(people_of_sum_clues.nodes, people_of_sum_clues.classes), scale
    )
    assert own.shape == (people_of_sum_clues.nodes, people_of_sum_clues.classes, OWN)
    assert common.shape == (people_of_sum_clues.nodes, COMMON)
    for clues in (own, common):
        assert bool(clues.isfinite().all())
        assert float(clues.abs().max()) <= MOST


def test_likeness_is_the_log_ratio_of_normal_laws_up_to_a_constant() -> None:
    """Two classes at -1 and 1 on one axis, spread 1: the log ratio is 2 x, whichever nodes trained."""
    n = 40_000
    labels = torch.arange(n) % 2
    sums = drawn(n, 2)
    sums[:, 0] += 2.0 * labels - 1
    found = discriminant(sums, labels, torch.arange(n), 1.0)
    ratio = found[:, 1] - found[:, 0]
    assert torch.allclose(ratio, 2 * sums[:, 0], atol=0.25)
