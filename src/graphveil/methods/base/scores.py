"""What predictions are worth: the share of right ones, and for several labels a node the micro-averaged F1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphveil.graphs import Graph
from graphveil.graphs.value.splits import known_labels
from graphveil.methods.base.network.many_labels import micro_f1

if TYPE_CHECKING:
    from torch import Tensor


def true_score(predicted: Tensor, graph: Graph, mask: Tensor | None = None) -> float:
    """Return the accuracy against the true labels of `graph`, or the micro-averaged F1 of several labels a node.

    Args:
        predicted: classes [n], or 0/1 [n, c].
        graph: has the true labels `y`.
        mask: bool [n], the nodes that count; those without a label never do.
    """
    labelled = known_labels(graph) if mask is None else mask & known_labels(graph)
    labels, true = predicted[labelled], graph.y[labelled]
    return micro_f1(labels > 0, true) if labels.dim() == 2 else float((labels == true).float().mean())
