"""What public features and labels say of every node's class, without any edge: read before anything is summed.

    log p(y | x_v)     multinomial logistic regression on rows of length 1; C by validation labels
    held out           a training node's own label takes no part in its row: FOLDS regressions, each without one fold
    explained          R^2 = 1 - sum |c_y - p C|^2 / sum |c_y - pi C|^2 over validation nodes; C: corners of a simplex

Out-of-fold rows (Wolpert, "Stacked Generalization", Neural Networks 1992) look alike for training and other nodes, so
what is learned on top of them holds for both.  No edge is read here: where edges are the unit, all of it is free.
Shapes: log p [n, c].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from graphveil.methods.base.network.features import unit_rows
from graphveil.methods.curator.stages.training import NodeData
from graphveil.models.labels.label_prior import log_channel
from graphveil.models.labels.logistic import choose_logistic, fit_logistic
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor

FOLDS: Final = 4


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
        people: features, public labels, and who trains and validates.
        corners: [c, c], one row a class; the distances in which `explained` is measured.
    """
    heard = log_channel(people.classes, 1.0, 0.0)
    features, labels, train = unit_rows(people.features, "cpu"), people.labels, people.train
    judges = people.val if len(people.val) else train
    fitted, strength = choose_logistic(features, labels, train, judges, heard)
    log_p = fitted.log_probabilities(features)
    fold = torch.randperm(len(train), generator=torch.Generator().manual_seed(len(train))) % FOLDS
    for number in range(min(FOLDS, len(train)) if len(train) > 1 else 0):
        without_fold = fit_logistic(features, labels, train[fold != number], heard, strength, fitted)
        own = train[fold == number]
        log_p[own] = without_fold.log_probabilities(features)[own]
    return FeatureEvidence(log_p, _explained(log_p, people, corners))


def _explained(log_p: Tensor, people: NodeData, corners: Tensor) -> float:
    """Return R^2 of the classes' corners on validation nodes, held against the mean of training labels."""
    if not len(people.val):
        return 0.0
    true = corners[people.labels[people.val]]
    usual = corners[people.labels[people.train]].mean(dim=0)
    spread = float((true - usual).square().sum())
    return 1 - float((true - log_p[people.val].exp() @ corners).square().sum()) / spread if spread > 0 else 0.0
