"""Label smoothing of public labels: learn the classes that a training node's surroundings carry.

    Y^l = P^l Y (rows scaled to sum to 1),       loss = mean over training nodes of - sum_k Y^l_vk log p(k | v)

A training node that no label reaches keeps its own.  Source: Lin, Li, Wang, "Towards Private Learning on Decentralized
Graphs With Local Differential Privacy" (Solitude), IEEE TIFS 17, 2022, equations 12 and 13.
Shapes: labels [n] int64, masks [n], logits [n, c].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphveil.aggregation import SparseMatrix, propagate
from graphveil.methods.base.network.drop import label_matrix
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class SmoothLabels:
    """The objective for `training.train`; build it with :func:`smooth_labels`."""

    nodes: Tensor
    targets: Tensor
    labels: Tensor
    val_nodes: Tensor
    val_labels: Tensor
    ideal: float = 1.0

    def loss(self, logits: Tensor) -> Tensor:
        """Return the mean cross entropy against the smoothed labels."""
        return -(self.targets * torch.nn.functional.log_softmax(logits[self.nodes], dim=1)).sum() / len(self.nodes)

    def train_accuracy(self, logits: Tensor) -> Tensor:
        """Return the share of training nodes whose most likely class is their own label."""
        return (logits[self.nodes].argmax(dim=1) == self.labels).float().mean()

    def validate(self, logits: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return (loss, accuracy, accuracy) on the validation nodes' own labels."""
        if self.val_nodes.numel() == 0:
            none = logits.new_zeros(())
            return none, none, none
        here = logits[self.val_nodes]
        share = (here.argmax(dim=1) == self.val_labels).float().mean()
        loss = torch.nn.functional.nll_loss(torch.nn.functional.log_softmax(here, dim=1), self.val_labels)
        return loss, share, share


def smooth_labels(
    labels: Tensor, train: Tensor, val: Tensor, p: SparseMatrix | None, hops: int, *, classes: int
) -> SmoothLabels:
    """Return the objective for public `labels` [n] on masks `train` and `val` [n], smoothed over `hops` rounds of P.

    Args:
        p: the propagation matrix [n, n]; None where hops is 0.
        hops: l.
    """
    nodes, val_nodes = train.nonzero().squeeze(1), val.nonzero().squeeze(1)
    own = label_matrix(labels, train, classes)
    spread = (own if p is None else propagate(p, own, hops))[nodes]
    total = spread.sum(dim=1, keepdim=True)
    # Equation 12 divides by a sum that is 0 where no label is in reach.
    targets = torch.where(total > 0, spread / total.clamp_min(1e-30), own[nodes])
    return SmoothLabels(nodes, targets, labels[nodes], val_nodes, labels[val_nodes])
