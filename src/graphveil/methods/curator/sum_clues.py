"""The clues of a pre-trained reader about a node and a class, from public features, labels and noisy sums.

    features    log p(y | x_v), see `feature_evidence`;     shares    log pi_k of the training labels
    counts      the sum of class k less the mean of all classes, in units of its noise
    likeness    (h_v - m) S^-1 (m_k - m) - (m_k - m) S^-1 (m_k - m) / 2: linear discriminant scores

m_k is the mean sum of training nodes of class k, shrunk to the mean m of all by the spread that noise alone would
cause; S is the covariance within classes.  Every number about a class is computed alike for each class, whatever the
features and the number of classes.  All of it is post-processing of a publication.
Source of the scores: Hastie, Tibshirani, Friedman, "The Elements of Statistical Learning", 2009, equation 4.10.
Shapes: own [n, c, OWN], common [n, COMMON], sums H [n, c].
"""

from __future__ import annotations

import math
from typing import Final

from graphveil.methods.curator.evidence import FeatureEvidence
from graphveil.methods.curator.stages.training import NodeData
from graphveil.runtime.late import Tensor, torch

#: Numbers about a node and a class, and about a node.
OWN: Final = 7
COMMON: Final = 7
#: No number is larger: values that a reader has never seen must not dominate it.
MOST: Final = 8.0
#: The share of S that is replaced by an even, uncorrelated spread.
EVEN: Final = 0.1


def sum_clues(people: NodeData, evidence: FeatureEvidence, sums: Tensor, sigma: float) -> tuple[Tensor, Tensor]:
    """Return the clues, own [n, c, OWN] and common [n, COMMON].

    Args:
        people, evidence: labels and training nodes, and the evidence of public features.
        sums, sigma: H [n, c], as published, and the standard deviation of an entry's noise.
    """
    labels, scale = people.labels[people.train], max(sigma, 1.0)
    class_counts = torch.bincount(labels, minlength=people.classes) + 1.0
    log_p, likeness = evidence.log_probabilities, discriminant(sums, labels, people.train, sigma)
    total = sums.sum(dim=1, keepdim=True) / scale
    mean_total = float(total.mean())
    own = [
        centred(log_p),
        centred((class_counts / class_counts.sum()).log().expand_as(sums)),
        torch.asinh(centred(sums) / scale),
        likeness,
        torch.asinh(likeness * total / max(abs(mean_total), 0.1)),
        centred(log_p.exp()) * people.classes / 2,
        centred(torch.softmax(log_p + likeness, dim=1)) * people.classes / 2,
    ]
    entropy = -(log_p.exp() * log_p).sum(dim=1, keepdim=True) / math.log(max(people.classes, 2))
    of_graph = sums.new_tensor(
        [
            math.log(people.classes),
            evidence.explained,
            float(likeness.square().mean().sqrt()),
            math.log(len(labels) / people.classes + 1) / 4,
            mean_total,
        ]
    )
    common = torch.cat([torch.asinh(total), entropy, of_graph.expand(len(sums), -1)], dim=1)
    return torch.stack(own, dim=2).clamp(-MOST, MOST), common.clamp(-MOST, MOST)


def discriminant(sums: Tensor, labels: Tensor, train: Tensor, sigma: float) -> Tensor:
    """Return likeness [n, c], centred over the classes and without class shares.

    Args:
        sums, sigma: H [n, c], and the standard deviation of an entry's noise.
        labels, train: int64 [m], of the training nodes.
    """
    classes, train_sums = sums.shape[1], sums[train]
    one_hot, mean = torch.eye(classes)[labels], train_sums.mean(dim=0)
    counts = one_hot.sum(dim=0).clamp_min(1)
    means = one_hot.T @ (train_sums - mean) / counts[:, None]
    residuals = train_sums - mean - means[labels]
    within = residuals.T @ residuals / len(train_sums)
    variance = float(within.diagonal().mean())
    # Never singular: without noise, messages of the simplex have no spread along one direction.
    within = (1 - EVEN) * within + EVEN * max(variance, sigma**2, 1e-3) * torch.eye(classes)
    # The positive part of James and Stein: means within the spread of noise shrink to 0.
    spread = means.square().mean(dim=1).clamp_min(1e-9)
    means = means * (1 - variance / counts / spread).clamp_min(0)[:, None]
    whitened = torch.linalg.solve(within, means.T)
    return centred((sums - mean) @ whitened - (means * whitened.T).sum(dim=1) / 2)


def centred(scores: Tensor) -> Tensor:
    """Return scores [n, c] minus their mean over the classes."""
    return scores - scores.mean(dim=1, keepdim=True)
