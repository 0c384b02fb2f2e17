"""What public features and labels say of every node's class without any edge, and the messages that are made of it.

    log p(y | x_v)     multinomial logistic regression on rows of length 1; C by validation labels
    held out           a training node's own label takes no part in its row: FOLDS regressions, each without one fold
    explained          R^2 = 1 - sum |c_y - p C|^2 / sum |c_y - pi C|^2 over validation nodes; C: corners of a simplex
    messages           a public label's corner, or its class as shares; elsewhere what p expects, or 0

Out-of-fold rows (Wolpert, "Stacked Generalization", Neural Networks 1992) look alike for training and other nodes, so
what is learned on top of them holds for both.  No edge is read here: where edges are the unit, all of it is free.
Shapes: log p and messages [n, c].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from graphveil import models
from graphveil.methods.base.network.features import unit_rows
from graphveil.methods.curator.privacy import Noise
from graphveil.methods.curator.stages.training import NodeData
from graphveil.models.labels.label_prior import Channel
from graphveil.models.labels.logistic import choose_logistic, fit_logistic
from graphveil.runtime.late import Tensor, torch

FOLDS: Final = 4
#: Nodes without a label send what their features expect where features explain this share of the classes' spread.
LEAST_EXPLAINED: Final = 0.3


@dataclass(frozen=True)
class FeatureEvidence:
    """What features alone say.

    Attributes:
        log_probabilities: [n, c]; no training node's row has seen its own label, no validation label was fitted to.
        explained: the share of the classes' spread that they explain on validation nodes, at most 1; 0 without any.
    """

    log_probabilities: Tensor
    explained: float


def feature_evidence(people: NodeData, corners: Tensor) -> FeatureEvidence:
    """Return what features say of every node's class.

    Args:
        corners: [c, c], one row a class; the distances in which `explained` is measured.
    """
    heard = Channel(people.classes).logs
    features, labels, train = unit_rows(people.features, "cpu"), people.labels, people.train
    judges = people.val if len(people.val) else train
    fitted, strength = choose_logistic(features, labels, train, judges, heard)
    log_p = fitted.log_probabilities(features)
    fold = torch.randperm(len(train), generator=torch.Generator().manual_seed(len(train))) % FOLDS
    for number in range(min(FOLDS, len(train)) if len(train) > 1 else 0):
        without_fold = fit_logistic(features, labels, train[fold != number], heard, strength, fitted)
        own = train[fold == number]
        log_p[own] = without_fold.log_probabilities(features)[own]
    true, usual = corners[labels[people.val]], corners[labels[train]].mean(dim=0)
    spread = float((true - usual).square().sum())
    # R^2 of the classes' corners on validation nodes, held against the mean of training labels.
    rest = float((true - log_p[people.val].exp() @ corners).square().sum())
    return FeatureEvidence(log_p, 1 - rest / spread if spread > 0 else 0.0)


def corners(classes: int) -> Tensor:
    """Return the corners of a regular simplex around 0, unit rows [c, c]; for one class the row is 1."""
    if classes == 1:
        return torch.ones(1, 1)
    # Centred rows drop the common part of all messages: that part would tell the degree alone, and cost as much.
    centred: Tensor = torch.eye(classes) - 1 / classes
    return torch.nn.functional.normalize(centred, dim=1)


def messages(people: NodeData, evidence: FeatureEvidence) -> Tensor:
    """Return M [n, c]: the corner of every public label; elsewhere the mean corner that features expect, or 0. A mean
    of corners is no longer than a corner, so it costs what a label costs.  Where features explain little of the
    classes, their means would tell of features rather than of classes: then nodes without a label send nothing.
    """
    return named_classes(people, evidence) @ corners(people.classes)


def named_classes(people: NodeData, evidence: FeatureEvidence) -> Tensor:
    """Return messages [n, c] for geometric noise, of L1 length 1: what `messages` says, as shares of the classes."""
    soft = evidence.explained >= LEAST_EXPLAINED
    expected = evidence.log_probabilities.exp() if soft else torch.zeros(people.nodes, people.classes)
    return class_shares(people.labels, expected)


def class_shares(labels: Tensor, expected: Tensor) -> Tensor:
    """Return everybody's share of each class [n, c]: all of it in a label's, else what is expected.

    Args:
        labels, expected: int64 [n], -1 where none; [n, c], read of those without a label.
    """
    own = torch.eye(expected.shape[1], device=expected.device)[labels.clamp_min(0)]
    return torch.where((labels >= 0)[:, None], own, expected)


def beside(sums: Tensor, noise: Noise) -> Tensor:
    """Return z [n, 2 c] standardised over the nodes: how much of each class, and in which proportion."""
    if sums.shape[1] == 0:
        return sums
    return models.beside([sums], noise.sigmas[0])
