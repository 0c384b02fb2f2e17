"""What a network on labels minimises, as objectives for `training.train`, and what its predictions are worth.

Drop: learning from noisy labels with propagation.

    y~ = argmax P^K Y'            target of a training node, Y' the one-hot noisy labels (zero rows where none)
    p(y~|x) = softmax( P^K softmax(z) T )  =  softmax( (p - q) P^K softmax(z) )      for K > 0
    loss = mean over training nodes of -log p(y~|x)[y~]

T = q 1 1^T + (p - q) I is the channel of randomized response.  P^K times its constant part is the same for every class
and a softmax ignores it, so forward correction is a temperature.  For K = 0 the loss is plain forward correction,
-log (softmax(z) T)[y'].  A training node with no labelled mass in reach is left out of the loss.  Source: Sajadmanesh
and Gatica-Perez, "Locally Private Graph Neural Networks", CCS 2021 (arXiv 2006.05535), section 3.4; the simplification
is ours.

Smoothed public labels: learn the classes that a training node's surroundings carry; one that no label reaches keeps its
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
    """Noisy labels; without `corrected` they are taken for true ones: plain cross-entropy, hops 0."""

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
        here = spread[self.fit_nodes].T.contiguous()
        return torch.nn.functional.nll_loss(torch.nn.functional.log_softmax(here, dim=0).T, self.train_targets)

    def reported(self, clean: Tensor) -> Tensor:
        """Return p(y'|x) = p(y|x) T, never below the smallest positive float; without correction p(y|x)."""
        if not self.corrected:
            return clean.clamp_min(1e-30)
        # With public labels q = 0, and a class of probability 0 would make the loss infinite.
        return (clean * self.channel.lean + self.channel.flip).clamp_min(1e-30)

    def train_accuracy(self, logits: Tensor) -> Tensor:
        return _share(logits[self.train_nodes], self.train_labels)

    def validate(self, logits: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return (loss of p(y'|x), accuracy on noisy labels, estimated accuracy on true labels)."""
        if self.val_nodes.numel() == 0:
            none = logits.new_zeros(())
            return none, none, none
        here = logits[self.val_nodes]
        loss = torch.nn.functional.nll_loss(self.reported(class_softmax(here)).log(), self.val_labels)
        share = _share(here, self.val_labels)
        # The inverse of q + (p - q) acc: unbiased, and from labels that were released already.
        return loss, share, (share.double() - self.channel.flip) / self.channel.lean


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
        channel: what the labels went through.
        corrected: whether the loss knows of it; without, K is 0.
        spread: mask [n] of the labels that are propagated; None: those of `train` and `val`.
    """
    train_nodes, val_nodes = (mask.nonzero().squeeze(1) for mask in (train, val))
    if p is None or hops == 0:
        fit_nodes, targets = train_nodes, labels[train_nodes]
    else:
        mass = propagate(
            p, label_matrix(labels, train | val if spread is None else spread, channel.classes), hops, engine=engine
        )[train_nodes]
        # Class 0 would otherwise be the target of every node that no label reaches: argmax of a row of zeros.
        reached = mass.sum(dim=1) > 0
        fit_nodes, targets = train_nodes[reached], mass[reached].argmax(dim=1)
    nodes = (train_nodes, targets, labels[train_nodes], fit_nodes, val_nodes, labels[val_nodes])
    return Drop(channel, p, hops, *nodes, corrected)


def label_matrix(labels: Tensor, mask: Tensor, classes: int) -> Tensor:
    """Return one-hot labels [n, c] float32 with zero rows outside `mask`."""
    rows = torch.nn.functional.one_hot(labels.clamp_min(0), classes).float()
    return torch.where(mask[:, None], rows, torch.zeros(()).to(rows))


def _share(logits: Tensor, labels: Tensor) -> Tensor:
    return (logits.argmax(dim=1) == labels).float().mean() if labels.numel() else logits.new_zeros(())


SEVERAL = "several labels a node: every figure is micro-averaged F1, not a share of nodes"


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


def true_score(
    predict: Callable[[], Tensor], graph: Graph, mask: Tensor | None = None, *, classes: Sequence[str] | None = None
) -> float:
    """Return the accuracy against the true labels of `graph`, or the micro-averaged F1 of several labels a node. Raises
    InputError for anything but a mask, such as labels, as scikit-learn's `score` takes them; or no label to judge by.

    Args:
        predict: gives classes [n], or 0/1 [n, c]; since it may cost, it is called last.
        mask: bool [n], the nodes that count; those without a label never do.
        classes: of the predictions, in order: another graph's numbers would stand for others. None: the graph's.
    """
    if classes is not None and graph.schema.classes != classes:
        what, allowed = (", ".join(names[:8]) for names in (graph.schema.classes, classes))
        raise InputError(f"classes are {what}", where="score", allowed=f"{allowed}, in this order, as in training")
    labelled = known_labels(graph)
    counted = labelled if mask is None else torch.as_tensor(mask)
    if counted.dtype != torch.bool or counted.shape != labelled.shape:
        what = f"mask: {str(counted.dtype).removeprefix('torch.')} {list(counted.shape)}"
        allowed = f"bool [{len(labelled)}], the nodes that count; true labels are read from the graph"
        raise InputError(what, where="score", allowed=allowed)
    counted = counted & labelled
    if not counted.any():
        raise InputError("no node that counts has a label", where="score", allowed="a graph with true labels")
    labels, true = predict()[counted], graph.y[counted]
    return micro_f1(labels > 0, true) if labels.dim() == 2 else float((labels == true).float().mean())
