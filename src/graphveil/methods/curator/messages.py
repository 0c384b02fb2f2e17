"""What nodes send where labels are public: their class, as a corner of a simplex or as shares of the classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from graphveil import models
from graphveil.methods.curator.feature_evidence import FeatureEvidence
from graphveil.methods.curator.privacy import Noise
from graphveil.methods.curator.stages.training import NodeData
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor

#: Nodes without a label send what their features expect where features explain this share of the classes' spread.
LEAST_EXPLAINED: Final = 0.3


def corners(classes: int) -> Tensor:
    """Return the corners of a regular simplex around 0, unit rows [c, c]; for one class the row is 1."""
    if classes == 1:
        return torch.ones(1, 1)
    # Centred rows drop the common part of all messages: that part would tell the degree alone, and cost as much.
    centred: Tensor = torch.eye(classes) - 1 / classes
    return torch.nn.functional.normalize(centred, dim=1)


def messages(people: NodeData, evidence: FeatureEvidence) -> Tensor:
    """Return M [n, c]: the corner of every public label; elsewhere the mean corner that features expect, or 0.

    A mean of corners is no longer than a corner, so it costs what a label costs.  Where features explain little of the
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
        labels: int64 [n], -1 where none.
        expected: [n, c], read of those without a label.
    """
    own = torch.eye(expected.shape[1], device=expected.device)[labels.clamp_min(0)]
    return torch.where((labels >= 0)[:, None], own, expected)


def beside(sums: Tensor, noise: Noise) -> Tensor:
    """Return z [n, 2 c] standardised over the nodes: how much of each class, and in which proportion."""
    if sums.shape[1] == 0:
        return sums
    return models.beside([sums], noise.sigmas[0])
