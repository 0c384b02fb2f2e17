"""Smoothed public labels, against the same sums by dense matrices."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphveil.aggregation import normalised
from graphveil.methods.base.smooth_labels import smooth_labels

CLASSES = 3


def mask(n: int, *nodes: int) -> torch.Tensor:
    return torch.isin(torch.arange(n), torch.tensor(nodes, dtype=torch.int64))


def drawn(n: int, seed: int) -> tuple[np.ndarray, torch.Tensor, torch.Tensor, torch.Tensor]:
    """A random graph's edges, labels, and which nodes train and which validate."""
    rng = np.random.default_rng(seed)
    above = np.triu(rng.random((n, n)) < 0.3, 1)
    edges = np.stack(np.nonzero(above | above.T))
    part = torch.from_numpy(rng.integers(0, 3, n))
    part[0] = 0
    return edges, torch.from_numpy(rng.integers(0, CLASSES, n)), part == 0, part == 1


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 15), st.integers(0, 4), st.integers(0, 999))
def test_targets_are_the_training_labels_spread_over_the_hops(n: int, hops: int, seed: int) -> None:
    edges, labels, train, val = drawn(n, seed)
    found = smooth_labels(labels, train, val, normalised(torch.from_numpy(edges), n), hops, classes=CLASSES)
    a = np.zeros((n, n))
    a[edges[1], edges[0]] = 1
    degree = np.maximum(a.sum(axis=1), 1)
    p = a / np.sqrt(degree)[:, None] / np.sqrt(degree)
    own = np.eye(CLASSES)[labels.numpy()] * train.numpy()[:, None]
    spread = np.linalg.matrix_power(p, hops) @ own
    for node, target in zip(found.nodes.tolist(), found.targets.numpy(), strict=True):
        total = spread[node].sum()
        assert target == pytest.approx(spread[node] / total if total > 0 else own[node], abs=1e-5)
    assert found.nodes.tolist() == train.nonzero().squeeze(1).tolist()


def test_labels_outside_the_training_nodes_change_nothing() -> None:
    """Checklist item 12: what validates or tests never reaches a target."""
    edges, labels, train, val = drawn(12, 5)
    p = normalised(torch.from_numpy(edges), 12)
    changed = torch.where(train, labels, (labels + 1) % CLASSES)
    one, other = (smooth_labels(each, train, val, p, 2, classes=CLASSES) for each in (labels, changed))
    assert torch.equal(one.targets, other.targets)
    assert not torch.equal(one.val_labels, other.val_labels)


def test_the_loss_is_the_cross_entropy_and_least_at_the_targets() -> None:
    edges, labels, train, val = drawn(10, 8)
    found = smooth_labels(labels, train, val, normalised(torch.from_numpy(edges), 10), 1, classes=CLASSES)
    logits = torch.randn(10, CLASSES, generator=torch.Generator().manual_seed(0))
    by_hand = -(found.targets * torch.softmax(logits[found.nodes], 1).log()).sum(dim=1).mean()
    assert float(found.loss(logits)) == pytest.approx(float(by_hand), rel=1e-5)
    best = torch.zeros(10, CLASSES)
    best[found.nodes] = found.targets.clamp_min(1e-9).log()
    assert float(found.loss(best)) <= float(found.loss(best + 0.1 * logits))


def test_without_validation_nodes_nothing_is_said() -> None:
    labels, p = torch.tensor([0, 1]), normalised(torch.zeros(2, 0, dtype=torch.int64), 2)
    found = smooth_labels(labels, mask(2, 0, 1), mask(2), p, 3, classes=2)
    assert found.validate(torch.zeros(2, 2)) == (0.0, 0.0, 0.0)
    assert found.targets.tolist() == [[1.0, 0.0], [0.0, 1.0]], "a node that nothing reaches keeps its own label"
