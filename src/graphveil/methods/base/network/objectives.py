"""The objectives of a network on labels, for `training.train`, and the scores of its predictions.

Drop: learning from noisy labels with propagation.

    y~ = argmax P^K Y'            target of a training node, Y' the one-hot noisy labels (zero rows where none)
    p(y~|x) = softmax( P^K softmax(z) T )  =  softmax( (p - q) P^K softmax(z) )      for K > 0
    loss = mean over training nodes of -log p(y~|x)[y~]

T = q 1 1^T + (p - q) I is the channel of randomized response.  P^K times its constant part is the same for every class
and a softmax ignores it, so forward correction is a temperature.  For K = 0 the loss is plain forward correction,
-log (softmax(z) T)[y'].  Training nodes that no label reaches are left out of the loss.  Source: Sajadmanesh
and Gatica-Perez, "Locally Private Graph Neural Networks", CCS 2021 (arXiv 2006.05535), section 3.4; the simplification
is ours.

Smoothed public labels: the targets of a training node are the classes around it; a node that no label reaches keeps its
own.  Source: Lin, Li, Wang, "Towards Private Learning on Decentralized Graphs With Local Differential Privacy"
(Solitude), IEEE TIFS 17, 2022, equations 12 and 13.

    Y^l = P^l Y (rows scaled to sum to 1),       loss = mean over training nodes of - sum_k Y^l_vk log p(k | v)

Several labels a node, all of them public (randomized response has no form for several): micro-averaged F1.

    loss = mean over training nodes and labels of  log(1 + e^z) - y z
    F1   = 2 TP / (2 TP + FP + FN),  TP, FP, FN counted over all test nodes and labels together

Shapes: logits z [n, c], labels [n] with -1 for none or [n, c] 0/1, masks [n].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from graphveil.aggregation import SparseMatrix, propagate
from graphveil.engine import LOCAL, Engine
from graphveil.errors import InputError
from graphveil.graphs import Graph
from graphveil.graphs.value.splits import known_labels
from graphveil.models.labels.label_prior import Channel, class_softmax
from graphveil.runtime.late import Tensor, torch


@dataclass(frozen=True)
class Drop:
    """Noisy labels; if not `corrected` they are taken for true ones: plain cross-entropy, hops 0."""

    channel: Channel
    p: SparseMatrix | None
    hops: int
    train_nodes: Tensor
    train_targets: Tensor
    train_labels: Tensor
    fit_nodes: Tensor
    val_nodes: Tensor
    val_labels: Tensor
    corrected: bool = True

    @property
    def ideal(self) -> float:
        """Accuracy of a perfect model against the noisy labels: the diagonal of T."""
        return self.channel.keep

    def loss(self, logits: Tensor) -> Tensor:
        if self.p is None or self.hops == 0:
            clean = class_softmax(logits[self.fit_nodes])
            return torch.nn.functional.nll_loss(self.reported(clean).log(), self.train_targets)
        spread = propagate(self.p, class_softmax(logits) * self.channel.lean, self.hops)
        scores = spread[self.fit_nodes].T.contiguous()
        return torch.nn.functional.nll_loss(torch.nn.functional.log_softmax(scores, dim=0).T, self.train_targets)

    def reported(self, clean: Tensor) -> Tensor:
        """Return p(y'|x) = p(y|x) T, never below the smallest positive float; without correction p(y|x)."""
        if not self.corrected:
            return clean.clamp_min(1e-30)
        # With public labels q = 0: a class of probability 0 would make the loss infinite.
        return (clean * self.channel.lean + self.channel.flip).clamp_min(1e-30)

    def train_accuracy(self, logits: Tensor) -> Tensor:
        return _accuracy(logits[self.train_nodes], self.train_labels)

    def validate(self, logits: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return (loss of p(y'|x), accuracy on noisy labels, estimated accuracy on true labels)."""
        if self.val_nodes.numel() == 0:
            zero = logits.new_zeros(())
            return zero, zero, zero
        val_logits = logits[self.val_nodes]
        loss = torch.nn.functional.nll_loss(self.reported(class_softmax(val_logits)).log(), self.val_labels)
        accuracy = _accuracy(val_logits, self.val_labels)
        # The inverse of q + (p - q) acc: unbiased, and from labels that were released already.
        return loss, accuracy, (accuracy.double() - self.channel.flip) / self.channel.lean


def drop_objective(
    labels: Tensor,
    train: Tensor,
    val: Tensor,
    p: SparseMatrix | None,
    hops: int,
    channel: Channel,
    *,
    corrected: bool = True,
    spread: Tensor | None = None,
    engine: Engine = LOCAL,
) -> Drop:
    """Return the objective for noisy `labels` [n] (-1 where none) on masks `train` and `val` [n].

    Args:
        p: the propagation matrix [n, n], None where hops is 0.
        hops: K.
        channel: the noise of the labels.
        corrected: whether the loss corrects for it; if not, K is 0.
        spread: mask [n] of the labels that are propagated; None: those in `train` and `val`.
    """
    train_nodes, val_nodes = (mask.nonzero().squeeze(1) for mask in (train, val))
    if p is None or hops == 0:
        fit_nodes, targets = train_nodes, labels[train_nodes]
    else:
        matrix = label_matrix(labels, train | val if spread is None else spread, channel.classes)
        mass = propagate(p, matrix, hops, engine=engine)[train_nodes]
        # The argmax of a row of zeros is class 0, which would be the target of every node that no label reaches.
        reached = mass.sum(dim=1) > 0
        fit_nodes, targets = train_nodes[reached], mass[reached].argmax(dim=1)
    nodes = (train_nodes, targets, labels[train_nodes], fit_nodes, val_nodes, labels[val_nodes])
    return Drop(channel, p, hops, *nodes, corrected)


def label_matrix(labels: Tensor, mask: Tensor, classes: int) -> Tensor:
    """Return one-hot labels [n, c] float32 with zero rows outside `mask`."""
    rows = torch.nn.functional.one_hot(labels.clamp_min(0), classes).float()
    return torch.where(mask[:, None], rows, torch.zeros(()).to(rows))


def _accuracy(logits: Tensor, labels: Tensor) -> Tensor:
    return (logits.argmax(dim=1) == labels).float().mean() if labels.numel() else logits.new_zeros(())


SEVERAL_LABELS = "several labels a node: every figure is micro-averaged F1, not a share of nodes"


@dataclass(frozen=True)
class ManyLabels:
    """Several public labels a node; accuracies are micro-averaged F1."""

    nodes: Tensor
    labels: Tensor
    val_nodes: Tensor
    val_labels: Tensor
    ideal: float = 1.0

    def loss(self, logits: Tensor) -> Tensor:
        return torch.nn.functional.binary_cross_entropy_with_logits(logits[self.nodes], self.labels)

    def train_accuracy(self, logits: Tensor) -> float:
        return micro_f1(logits[self.nodes] > 0, self.labels)

    def validate(self, logits: Tensor) -> tuple[float, float, float]:
        if self.val_nodes.numel() == 0:
            return 0.0, 0.0, 0.0
        val_logits = logits[self.val_nodes]
        f1 = micro_f1(val_logits > 0, self.val_labels)
        return float(torch.nn.functional.binary_cross_entropy_with_logits(val_logits, self.val_labels)), f1, f1


def many_labels(labels: Tensor, train: Tensor, val: Tensor) -> ManyLabels:
    """Return the objective for public `labels` [n, c] on masks `train` and `val` [n]."""
    nodes, val_nodes = (mask.nonzero().squeeze(1) for mask in (train, val))
    return ManyLabels(nodes, labels[nodes].float(), val_nodes, labels[val_nodes].float())


def micro_f1(predicted: Tensor, labels: Tensor) -> float:
    """Return the micro-averaged F1 of predicted labels (bool [m, c]); 0 without any predictions and labels."""
    return float(f1_shares(predicted, labels).mean()) if len(labels) else 0.0


def f1_shares(predicted: Tensor, labels: Tensor) -> np.ndarray:
    """Return numbers [m] whose mean is the micro-averaged F1: 2 TP_v / mean over nodes of (2 TP + FP + FN)."""
    true = labels > 0
    hits = (predicted & true).sum(dim=1).double()
    sizes = (predicted.sum(dim=1) + true.sum(dim=1)).double()
    # Shares with this denominator average to the micro F1, so its interval follows from the nodes as for accuracy.
    mean_size = float(sizes.mean())
    shares: np.ndarray = (2 * hits / mean_size if mean_size else torch.zeros_like(hits)).cpu().numpy()
    return shares


@dataclass(frozen=True)
class SmoothLabels:
    """Public labels, smoothed."""

    nodes: Tensor
    targets: Tensor
    labels: Tensor
    val_nodes: Tensor
    val_labels: Tensor
    ideal: float = 1.0

    def loss(self, logits: Tensor) -> Tensor:
        return -(self.targets * torch.nn.functional.log_softmax(logits[self.nodes], dim=1)).sum() / len(self.nodes)

    def train_accuracy(self, logits: Tensor) -> Tensor:
        return (logits[self.nodes].argmax(dim=1) == self.labels).float().mean()

    def validate(self, logits: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        if self.val_nodes.numel() == 0:
            zero = logits.new_zeros(())
            return zero, zero, zero
        val_logits = logits[self.val_nodes]
        accuracy = (val_logits.argmax(dim=1) == self.val_labels).float().mean()
        loss = torch.nn.functional.nll_loss(torch.nn.functional.log_softmax(val_logits, dim=1), self.val_labels)
        return loss, accuracy, accuracy


def smooth_labels(
    labels: Tensor, train: Tensor, val: Tensor, p: SparseMatrix | None, hops: int, *, classes: int
) -> SmoothLabels:
    """Return the objective for public `labels` [n] on masks `train` and `val` [n], smoothed over `hops` rounds of P.

    Args:
        p: the propagation matrix [n, n]; None where hops is 0.
        hops: l.
    """
    nodes, val_nodes = train.nonzero().squeeze(1), val.nonzero().squeeze(1)
    one_hot = label_matrix(labels, train, classes)
    spread = (one_hot if p is None else propagate(p, one_hot, hops))[nodes]
    total = spread.sum(dim=1, keepdim=True)
    # Equation 12 divides by a sum that is 0 where no label is in reach.
    targets = torch.where(total > 0, spread / total.clamp_min(1e-30), one_hot[nodes])
    return SmoothLabels(nodes, targets, labels[nodes], val_nodes, labels[val_nodes])


def true_score(
    predict: Callable[[], Tensor], graph: Graph, mask: Tensor | None = None, *, classes: Sequence[str] | None = None
) -> float:
    """Return the accuracy against the true labels of `graph`, or the micro-averaged F1 of several labels a node. Raises
    InputError for anything but a mask (scikit-learn's `score` takes labels there), or if no node that counts has a
    label.

    Args:
        predict: returns classes [n], or 0/1 [n, c]; since it may cost, it is called last.
        mask: bool [n], the nodes that count; nodes without a label never do.
        classes: the names of the predicted classes in order, which must be those of the graph; None: not checked.
    """
    if classes is not None and graph.schema.classes != classes:
        what, allowed = (", ".join(names[:8]) for names in (graph.schema.classes, classes))
        raise InputError(f"classes are {what}", where="score", allowed=f"{allowed}, in this order, as in training")
    labelled = known_labels(graph)
    counting = labelled if mask is None else torch.as_tensor(mask)
    if counting.dtype != torch.bool or counting.shape != labelled.shape:
        what = f"mask: {str(counting.dtype).removeprefix('torch.')} {list(counting.shape)}"
        allowed = f"bool [{len(labelled)}], the nodes that count; true labels are read from the graph"
        raise InputError(what, where="score", allowed=allowed)
    counting = counting & labelled
    if not counting.any():
        raise InputError("no node that counts has a label", where="score", allowed="a graph with true labels")
    labels, true = predict()[counting], graph.y[counting]
    return micro_f1(labels > 0, true) if labels.dim() == 2 else float((labels == true).float().mean())
