"""What a reader that was trained elsewhere is told of a node and a class: public features, labels and noisy sums.

    features    log p(y | x_v), see `feature_evidence`;     shares    log pi_k of the training labels
    counts      the sum of class k less the mean of all classes, in units of its noise
    likeness    (h_v - m) S^-1 (m_k - m) - (m_k - m) S^-1 (m_k - m) / 2: linear discriminant scores

m_k is the mean sum of training nodes of class k, drawn to the mean m of all by what noise alone would spread them; S is
the spread within classes.  Every number about a class is made the same way for each of them, whatever the features and
however many classes.  All of it is post-processing of what was published.
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
#: No number is larger: what a reader has never seen must not run away with it.
MOST: Final = 8.0
#: Part of the spread within classes that is taken to be the same for all of them and uncorrelated.
EVEN: Final = 0.1


def sum_clues(people: NodeData, evidence: FeatureEvidence, sums: Tensor, sigma: float) -> tuple[Tensor, Tensor]:
    """Return what a reader is told, own [n, c, OWN] and common [n, COMMON].

    Args:
        people, evidence: labels and who trains, and what public features say.
        sums, sigma: H [n, c], as published, and the deviation of an entry's noise.
    """
    labels, scale = people.labels[people.train], max(sigma, 1.0)
    shares = torch.bincount(labels, minlength=people.classes) + 1.0
    log_p, likeness = evidence.log_probabilities, discriminant(sums, labels, people.train, sigma)
    total = sums.sum(dim=1, keepdim=True) / scale
    usual = float(total.mean())
    own = [
        centred(log_p),
        centred((shares / shares.sum()).log().expand_as(sums)),
        torch.asinh(centred(sums) / scale),
        likeness,
        torch.asinh(likeness * total / max(abs(usual), 0.1)),
        centred(log_p.exp()) * people.classes / 2,
        centred(torch.softmax(log_p + likeness, dim=1)) * people.classes / 2,
    ]
    doubt = -(log_p.exp() * log_p).sum(dim=1, keepdim=True) / math.log(max(people.classes, 2))
    of_graph = sums.new_tensor(
        [
            math.log(people.classes),
            evidence.explained,
            float(likeness.square().mean().sqrt()),
            math.log(len(labels) / people.classes + 1) / 4,
            usual,
        ]
    )
    common = torch.cat([torch.asinh(total), doubt, of_graph.expand(len(sums), -1)], dim=1)
    return torch.stack(own, dim=2).clamp(-MOST, MOST), common.clamp(-MOST, MOST)


def discriminant(sums: Tensor, labels: Tensor, train: Tensor, sigma: float) -> Tensor:
    """Return likeness [n, c], centred over the classes and without class shares.

    Args:
        sums, sigma: H [n, c], and the deviation of an entry's noise.
        labels, train: int64 [m], of the training nodes.
    """
    classes, seen = sums.shape[1], sums[train]
    one_hot, mean = torch.eye(classes)[labels], seen.mean(dim=0)
    number = one_hot.sum(dim=0).clamp_min(1)
    means = one_hot.T @ (seen - mean) / number[:, None]
    left = seen - mean - means[labels]
    within = left.T @ left / len(seen)
    usual = float(within.diagonal().mean())
    # Never singular: without noise, messages of the simplex leave no spread along one direction.
    within = (1 - EVEN) * within + EVEN * max(usual, sigma**2, 1e-3) * torch.eye(classes)
    # The positive part, as of James and Stein: means that noise alone could have spread so far say nothing.
    spread = means.square().mean(dim=1).clamp_min(1e-9)
    means = means * (1 - usual / number / spread).clamp_min(0)[:, None]
    whitened = torch.linalg.solve(within, means.T)
    return centred((sums - mean) @ whitened - (means * whitened.T).sum(dim=1) / 2)


def centred(scores: Tensor) -> Tensor:
    """Return scores [n, c] less their mean over the classes."""
    return scores - scores.mean(dim=1, keepdim=True)
