"""What public features say: held-out rows, the share they explain, and what unlabelled nodes send because of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from graphveil.methods.curator.feature_evidence import FOLDS, FeatureEvidence, feature_evidence
from graphveil.methods.curator.messages import LEAST_EXPLAINED, corners, messages
from graphveil.methods.curator.training import NodeData
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


@pytest.mark.parametrize("count", [1, 2, FOLDS - 1])
def test_few_training_nodes_are_enough(count: int) -> None:
    some = people(0.5)
    few = replace(some, train=some.train[:count])
    assert bool(feature_evidence(few, corners(C)).log_probabilities.isfinite().all())


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
