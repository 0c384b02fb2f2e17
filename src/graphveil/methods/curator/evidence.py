"""Evidence of every node's class from public features and labels, without any edge, and messages from it.

    log p(y | x_v)     multinomial logistic regression on rows of length 1; C by validation labels
    held out           a training node's own label has no part in its row: FOLDS regressions, each without one fold
    explained          R^2 = 1 - sum |c_y - p C|^2 / sum |c_y - pi C|^2 over validation nodes; C: corners of a simplex
    messages           a public label's corner, or its class as shares; elsewhere what p expects, or 0

Out-of-fold rows (Wolpert, "Stacked Generalization", Neural Networks 1992) look alike for training and other nodes, so
what is learned on top of them holds for both.  No edge is read: where edges are the unit, all of this is free.
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
#: Nodes without a label send what their features lead to expect if features explain this share of the classes' spread.
LEAST_EXPLAINED: Final = 0.3


@dataclass(frozen=True)
class FeatureEvidence:
    """The evidence of features alone.

    Attributes:
        log_probabilities: [n, c]; a training node's row does not depend on its label, and none is fitted to validation
            labels.
        explained: the share of the classes' spread that they explain on validation nodes, at most 1; 0 without any.
    """

    log_probabilities: Tensor
    explained: float


def feature_evidence(people: NodeData, corners: Tensor) -> FeatureEvidence:
    """Return the evidence of features about every node's class.

    Args:
        corners: [c, c], one row a class; the distances in which `explained` is measured.
    """
    log_channel = Channel(people.classes).logs
    features, labels, train = unit_rows(people.features, "cpu"), people.labels, people.train
    judges = people.val if len(people.val) else train
    fitted, strength = choose_logistic(features, labels, train, judges, log_channel)
    log_p = fitted.log_probabilities(features)
    fold = torch.randperm(len(train), generator=torch.Generator().manual_seed(len(train))) % FOLDS
    for number in range(min(FOLDS, len(train)) if len(train) > 1 else 0):
        without_fold = fit_logistic(features, labels, train[fold != number], log_channel, strength, fitted)
        in_fold = train[fold == number]
        log_p[in_fold] = without_fold.log_probabilities(features)[in_fold]
    true, mean = corners[labels[people.val]], corners[labels[train]].mean(dim=0)
    spread = float((true - mean).square().sum())
    # R^2 of the classes' corners on validation nodes, against the mean of training labels.
    rest = float((true - log_p[people.val].exp() @ corners).square().sum())
    return FeatureEvidence(log_p, 1 - rest / spread if spread > 0 else 0.0)


def corners(classes: int) -> Tensor:
    """Return the corners of a regular simplex around 0, unit rows [c, c]; for one class the row is 1."""
    if classes == 1:
        return torch.ones(1, 1)
    # Centred: the common part of all messages would add up to the degree alone, at the same price.
    centred: Tensor = torch.eye(classes) - 1 / classes
    return torch.nn.functional.normalize(centred, dim=1)


def messages(people: NodeData, evidence: FeatureEvidence) -> Tensor:
    """Return M [n, c]: the corner of every public label; elsewhere the mean corner that features lead to expect, or 0.
    A mean of corners is no longer than a corner, so it costs what a label costs.  If features explain little of the
    classes, such means would carry features rather than classes: then nodes without a label send nothing.
    """
    return named_classes(people, evidence) @ corners(people.classes)


def named_classes(people: NodeData, evidence: FeatureEvidence) -> Tensor:
    """Return the `messages` as shares of the classes [n, c], of L1 length 1, for geometric noise."""
    soft = evidence.explained >= LEAST_EXPLAINED
    expected = evidence.log_probabilities.exp() if soft else torch.zeros(people.nodes, people.classes)
    return class_shares(people.labels, expected)


def class_shares(labels: Tensor, expected: Tensor) -> Tensor:
    """Return every node's share of each class [n, c]: 1 for the class of its label, else what is expected.

    Args:
        labels, expected: int64 [n], -1 where none; [n, c], for nodes without a label.
    """
    one_hot = torch.eye(expected.shape[1], device=expected.device)[labels.clamp_min(0)]
    return torch.where((labels >= 0)[:, None], one_hot, expected)


def sum_inputs(sums: Tensor, noise: Noise) -> Tensor:
    """Return z [n, 2 c] standardised over the nodes: the size and the direction of each sum."""
    if sums.shape[1] == 0:
        return sums
    return models.beside([sums], noise.sigmas[0])
