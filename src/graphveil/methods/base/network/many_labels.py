"""Several labels a node, all of them public: one logistic loss a label, and micro-averaged F1.

    loss = mean over training nodes and labels of  log(1 + e^z) - y z
    F1   = 2 TP / (2 TP + FP + FN),  TP, FP, FN counted over all test nodes and labels together

Randomized response reports one label of c and has no form for several here: private labels of this kind are refused.
Shapes: logits z [n, c], labels [n, c] 0/1, masks [n].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor


SEVERAL = "several labels a node: every figure is micro-averaged F1, not a share of nodes"


@dataclass(frozen=True)
class ManyLabels:
    """The objective for `training.train`; build it with :func:`many_labels`.  Accuracies are micro-averaged F1."""

    nodes: Tensor
    labels: Tensor
    val_nodes: Tensor
    val_labels: Tensor
    ideal: float = 1.0

    def loss(self, logits: Tensor) -> Tensor:
        """Return the mean logistic loss over training nodes and labels."""
        return torch.nn.functional.binary_cross_entropy_with_logits(logits[self.nodes], self.labels)

    def train_accuracy(self, logits: Tensor) -> float:
        """Return the training nodes' F1."""
        return micro_f1(logits[self.nodes] > 0, self.labels)

    def validate(self, logits: Tensor) -> tuple[float, float, float]:
        """Return (loss, F1, F1) on the validation nodes."""
        if self.val_nodes.numel() == 0:
            return 0.0, 0.0, 0.0
        here = logits[self.val_nodes]
        f1 = micro_f1(here > 0, self.val_labels)
        return float(torch.nn.functional.binary_cross_entropy_with_logits(here, self.val_labels)), f1, f1


def many_labels(labels: Tensor, train: Tensor, val: Tensor) -> ManyLabels:
    """Return the objective for public `labels` [n, c] on masks `train` and `val` [n]."""
    nodes, val_nodes = (mask.nonzero().squeeze(1) for mask in (train, val))
    return ManyLabels(nodes, labels[nodes].float(), val_nodes, labels[val_nodes].float())


def micro_f1(predicted: Tensor, labels: Tensor) -> float:
    """Return the micro-averaged F1 of found labels (bool [m, c]); 0 where nothing is found and nothing was there."""
    return float(f1_shares(predicted, labels).mean()) if len(labels) else 0.0


def f1_shares(predicted: Tensor, labels: Tensor) -> np.ndarray:
    """Return one number a node [m] with the micro-averaged F1 as mean: 2 TP_v / mean over nodes of (2 TP + FP + FN)."""
    there = labels > 0
    hit = (predicted & there).sum(dim=1).double()
    both = (predicted.sum(dim=1) + there.sum(dim=1)).double()
    # Shares with this denominator average to the micro F1, so its interval follows from the nodes as for accuracy.
    total = float(both.mean())
    shares: np.ndarray = (2 * hit / total if total else torch.zeros_like(hit)).cpu().numpy()
    return shares


def f1_by_label(predicted: Tensor, labels: Tensor) -> np.ndarray:
    """Return the F1 of every label [c]; 0 for a label that is neither found nor there."""
    there = labels > 0
    hit = (predicted & there).sum(dim=0).double()
    both = (predicted.sum(dim=0) + there.sum(dim=0)).double()
    each: np.ndarray = torch.where(both > 0, 2 * hit / both.clamp_min(1), 0.0).numpy()
    return each
