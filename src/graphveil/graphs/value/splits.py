"""Train, validation and test nodes."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass

import numpy as np

from graphveil.errors import InputError
from graphveil.graphs.value.checks import require_graph
from graphveil.graphs.value.parts import MASKS, Graph
from graphveil.runtime.checks import is_number, require_trained
from graphveil.runtime.late import Tensor, torch

MORE_LABELS = "label more people, or declare in graph.toml who trains and tests (--split declared)"


@dataclass(frozen=True)
class Split:
    """Three disjoint bool masks [n]: nodes that train, choose, and test."""

    train: Tensor
    val: Tensor
    test: Tensor


def require_taught(train: Tensor) -> None:
    """Refuse with InputError a mask [n] of training nodes that has none."""
    require_trained(int(train.sum()))


def require_split(split: Split, nodes: int) -> None:
    """Refuse with InputError what is no split of n nodes: another type, masks of another type or shape, or a node in
    two parts, which would be counted twice where each part has its own budget.
    """
    if not isinstance(split, Split):
        allowed = "a graphveil.graphs.Split, as random_split makes"
        raise InputError(f"is a {type(split).__name__}", where="split", allowed=allowed)
    masks = {"train": split.train, "val": split.val, "test": split.test}
    for name, mask in masks.items():
        if not isinstance(mask, torch.Tensor) or mask.dtype != torch.bool or tuple(mask.shape) != (nodes,):
            form = f"{mask.dtype} {list(mask.shape)}" if isinstance(mask, torch.Tensor) else type(mask).__name__
            raise InputError(f"{name} is {form}", where="split", allowed=f"a torch tensor of bool [{nodes}]")
    if bool((split.train & split.val | split.train & split.test | split.val & split.test).any()):
        raise InputError("a node is in two parts", where="split", allowed="masks that share no node")


def known_labels(graph: Graph) -> Tensor:
    """Return which nodes have a known label, bool [n]. Who reported a label is public, the label is not."""
    y = graph.y
    return y >= 0 if y.dim() == 1 else torch.ones(len(y), dtype=torch.bool)


def random_split(graph: Graph, seed: int, fractions: tuple[float, float, float] = (0.5, 0.25, 0.25)) -> Split:
    """Split the nodes with a known label at random, without looking at the labels.

    Args:
        graph: which of its nodes have a label is public.
        seed: fixes the split; it never fixes privacy noise.
        fractions: shares of train, validation and test nodes; what is left over is in none of them.

    Raises:
        InputError: fractions that are negative or add up to more than 1, or leave no training node.
    """
    require_graph(graph, "random_split")
    shares = fractions if isinstance(fractions, tuple | list) and all(map(is_number, fractions)) else ()
    if len(shares) != 3 or min(shares) < 0 or not 0 < sum(shares) <= 1 + 1e-9:
        allowed = "three shares of 0 or more, at most 1 in all"
        raise InputError(f"fractions are {fractions}", where="random_split", allowed=allowed)
    # Who has a label is public; the label itself plays no part in the draw, so a split reveals nothing about it.
    labelled = known_labels(graph).nonzero().flatten().numpy()
    try:
        shuffled = np.random.default_rng(seed).permutation(labelled)
    except (TypeError, ValueError) as error:
        raise InputError(f"seed is {seed!r}", where="random_split", allowed="a whole number of at least 0") from error
    # Cumulated before rounding, so that the parts always add up.
    cuts = [round(len(shuffled) * float(share)) for share in np.cumsum(fractions)]
    if cuts[0] == 0:
        what = f"{len(shuffled)} labelled nodes leave none to train on"
        raise InputError(what, where=graph.schema.name, remedy=MORE_LABELS)
    parts = (shuffled[: cuts[0]], shuffled[cuts[0] : cuts[1]], shuffled[cuts[1] : cuts[2]])
    return Split(*(_mask(part, graph.num_nodes) for part in parts))


def fold_split(graph: Graph, folds: int, number: int) -> Split:
    """Return one split of a cross-validation: one fold tests, the next validates, all others train.

    Args:
        graph: nodes without a known label are in no fold.
        folds: how many, at least 3; InputError for fewer, or where a fold has no nodes.
        number: the fold that tests; from `folds` on the nodes are drawn anew, `folds` numbers a drawing.
    """
    labelled = known_labels(graph).nonzero().flatten().numpy()
    if not 3 <= folds <= len(labelled):
        raise InputError(f"{folds} folds", where="split", allowed=f"3 to {len(labelled)}, the nodes with a label")
    parts = np.array_split(np.random.default_rng(number // folds).permutation(labelled), folds)
    test_fold, validation_fold = number % folds, (number + 1) % folds
    train_parts = [part for fold, part in enumerate(parts) if fold not in (test_fold, validation_fold)]
    masks = (np.concatenate(train_parts), parts[validation_fold], parts[test_fold])
    return Split(*(_mask(part, graph.num_nodes) for part in masks))


def has_two_parts(kind: str) -> bool:
    """Whether a kind of split, such as "80/20", has no validation nodes; its parts are separated by
    `separate_test_nodes`.
    """
    return kind.count("/") == 1


def shares_of(text: str) -> tuple[float, float, float]:
    """Read the shares of train, validation and test nodes from percentages, such as 75/10/15, for `random_split`.

    Two percentages are those of training and test nodes. InputError for any other text, and for two percentages that do
    not add up to 100.
    """
    try:
        train, val, test = (
            float(part) / 100 for part in (text.replace("/", "/0/") if has_two_parts(text) else text).split("/")
        )
    except ValueError:
        allowed = "random, declared, 5-fold, 80/20, or three shares in % such as 75/10/15"
        raise InputError(f"split {text!r} is not known", allowed=allowed) from None
    if has_two_parts(text) and not math.isclose(train + test, 1):
        allowed = "training and test nodes, 100% together, such as 80/20, or three shares such as 75/10/15"
        raise InputError(f"split {text!r}: two shares make {train + test:.0%}", allowed=allowed)
    return train, val, test


def separate_test_nodes(graph: Graph, split: Split) -> Graph:
    """Return the graph without the edges between test nodes and all other nodes: two separate graphs.

    Whether an edge stays depends only on its own ends and the public masks, so a guarantee for the edges of the result
    holds for the edges of the graph.

    Args:
        graph: not changed.
    """
    source, target = graph.edge_index
    inside = split.test[source] == split.test[target]
    reduced = copy(graph)
    reduced["edge_index"] = graph.edge_index[:, inside]
    public = graph.get("public_edges")
    if public is not None:
        reduced["public_edges"] = public[inside]
    return reduced


def _mask(nodes: np.ndarray, count: int) -> Tensor:
    mask = torch.zeros(count, dtype=torch.bool)
    mask[torch.from_numpy(nodes)] = True
    return mask


def published_split(graph: Graph) -> Split | None:
    """Return the split that was published with the data, without the nodes whose label is unknown, or None."""
    train, val, test = (graph.get(name) for name in MASKS)
    if train is None or val is None or test is None:
        return None
    # A declared split may name people whose label is unknown: they can neither train nor test.
    has_label = known_labels(graph)
    return Split(train & has_label, val & has_label, test & has_label)
