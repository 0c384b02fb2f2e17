"""Label inference in a federation: which training nodes have the same label, read off what arrives of them.

    score of a pair = mean over rounds of the cosine of two gradient rows; see `matched_pairs` for which are judged

dL/dz of a training node points away from its class: rows of one class are alike, in whatever basis.  The names of the
classes stay hidden; groups are found by k-means and named as well as can be (Hungarian matching).
What features tell of labels is no leak: where they alone find a share t at 1% of false alarms, epsilon_y allows
min( e^eps t, 1 - e^-eps (1 - t) ), since it bounds the likelihood ratio whatever else is known.
Source of the leak: measured on Chen et al., IJCAI 2022; for split networks in general: Li et al., "Label Leakage and
Protection in Two-party Split Learning", ICLR 2022, arXiv 2102.08504.  Shapes: gradient rows [m, h], m training nodes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from torch import Tensor
from torch.nn import functional

from graphveil.attacks.federation.views import Recorded, View
from graphveil.attacks.limits import Limit, no_limit
from graphveil.attacks.result import FALSE_ALARMS, AttackResult, judge
from graphveil.errors import InputError
from graphveil.federation.modes.propagation import transition_matrix
from graphveil.mechanisms.base.values import Values
from graphveil.runtime.words import count_of

Pairs = tuple[np.ndarray, np.ndarray]
#: In which messages gradients reach the server or a holder, or labels themselves.
_TELLING = ("hidden-gradient", "embedding-gradient", "gradient-share", "training-labels")


def label_inference(view: View, recorded: Recorded, *, nodes: int = 500, seed: int = 0) -> AttackResult:
    """Return how well a party tells pairs of training nodes of one label from other pairs.

    Args:
        view: what the party has; it is taken to know who trains.
        recorded: the truth, which scores the attack.
        nodes: how many training nodes' pairs are judged.

    Raises:
        InputError: fewer than four training nodes, or all of one label.
    """
    train = torch.nonzero(recorded.train).squeeze(1)
    rng = np.random.default_rng([seed, 0x1AB])
    places = np.sort(rng.permutation(len(train))[:nodes])
    labels = recorded.labels[train[places]].numpy()
    if len(places) < 4 or len(set(labels.tolist())) in (1, len(places)):
        problem = f"{count_of(len(places), 'training node')} of {count_of(len(set(labels.tolist())), 'label')}"
        raise InputError(problem, where="label-inference", allowed="four or more of two labels or more, some alike")
    bodies = [body for kind in _TELLING for body in view.received(kind)]
    bodies = [body[recorded.train] if len(body) == view.nodes else body for body in bodies]
    gradients = unit_rows(bodies, len(train))[places]
    before = unit_rows(_without_gradients(view, train), len(train))[places]
    alike, unlike = matched_pairs(labels, rng)
    products, control = ([(rows @ rows.T).numpy()[pairs] for pairs in (alike, unlike)] for rows in (gradients, before))
    classes = recorded.setting.classes
    figures = {
        "labels right up to names": matched(groups(gradients, classes, seed), labels),
        "right without gradients": matched(groups(before, classes, seed), labels),
        "share of the largest class": float(np.bincount(labels).max() / len(labels)),
    }
    limit, target = limit_of_labels(view), f"which training nodes have the same label, by {view.party}"
    # The control is judged like the attack: what the party knew before any gradient came is no leak of the labels.
    without = judge("control", target, *control, limit=limit, seed=seed)
    sent = "labelled-rows" in view.setting.mode.sent
    announced = ("all parties are sent who trains and who validates",) if sent else ()
    result = judge(
        "label-inference",
        target,
        *products,
        limit=limit,
        seed=seed,
        baseline=without.auc.mean,
        baseline_note="embeddings of the first round" if view.is_server else "own features and edges",
        figures=figures,
        notes=("pairs share nodes: intervals are somewhat too narrow", *announced),
    )
    # epsilon bounds a likelihood ratio: applied to what the control finds already, since features speak of labels too.
    return replace(result, limit=limit.tpr(max(FALSE_ALARMS, without.tpr_at_1_fpr.mean)))


def matched_pairs(labels: np.ndarray, rng: np.random.Generator) -> tuple[Pairs, Pairs]:
    """Return pairs of one label, and pairs of two, whose first ends have labels in the same shares. So each pair of the
    ones stands beside pairs where one label has been exchanged, which is what epsilon_y speaks of: large classes, of
    which pairs of one label are full, would tell them apart whatever is sent.

    Args:
        labels: of the nodes, int64 [m].
    """
    first, second = (ends.astype(np.int64) for ends in np.triu_indices(len(labels), 1))
    # Which end comes first is drawn: in the order of places, first ends would be early nodes and their classes.
    turned = rng.random(len(first)) < 0.5
    first, second = np.where(turned, second, first), np.where(turned, first, second)
    alike = labels[first] == labels[second]
    classes = np.unique(labels[first[alike]])
    # Alike and unlike pairs of each class.
    sides = [[np.flatnonzero(rows & (labels[first] == label)) for rows in (alike, ~alike)] for label in classes]
    # The same share of every class, or the size of a class would tell pairs apart without any gradient.
    share = min(len(unlike) / len(same) for same, unlike in sides)
    drawn = [rng.permutation(unlike)[: round(share * len(same))] for same, unlike in sides]
    same_pairs, unlike_pairs = np.concatenate([same for same, _ in sides]), np.concatenate(drawn)
    return (first[same_pairs], second[same_pairs]), (first[unlike_pairs], second[unlike_pairs])


def _without_gradients(view: View, train: Tensor) -> list[Tensor]:
    """Return what a party knows of training nodes, float64 [t, .], before any label was used."""
    if not view.is_server:
        return [torch.cat(own_rows(view), dim=1)[train]]
    if view.setting.mode.opens_sum:
        # A is 0 in the first round.
        return view.projections()[:1]
    first = [body for name in view.setting.names for body in view.trained("embeddings", name)[:1]]
    return [torch.cat(first, dim=1)] if first else []


def own_rows(view: View) -> list[Tensor]:
    """Return a holder's own features, and the same averaged over its own edges, K hops; float64 [n, d] each."""
    holding = view.holding
    if holding is None:
        return []
    x = as_dense(holding.features)
    walk, spread = transition_matrix(holding.edge_index, view.nodes), x.numpy()
    for _ in range(view.setting.model.hops):
        spread = walk @ spread
    return [x, torch.from_numpy(spread)]


def as_dense(features: Values) -> Tensor:
    """Return features, dense or scipy CSR, as float64 [n, d]."""
    matrix = features if isinstance(features, Tensor | np.ndarray) else features.toarray()
    return torch.as_tensor(matrix).double()


def unit_rows(parts: Sequence[Tensor], rows: int) -> Tensor:
    """Return rows of all parts side by side, each of length 1 in every part; inner products are mean cosines.

    Args:
        parts: float64 [n, .] each.
    """
    if not parts:
        return torch.zeros(rows, 1, dtype=torch.float64)
    # Cosines and not lengths: gradients shrink as training goes on, and late rounds would not count.
    return torch.cat([functional.normalize(part.double(), dim=1) for part in parts], dim=1) / math.sqrt(len(parts))


def groups(rows: Tensor, classes: int, seed: int = 0) -> np.ndarray:
    """Return the group of every row by k-means, the best of 8 starts, int64 [m].

    Args:
        rows: float [m, .].
    """
    different = len(torch.unique(rows, dim=0))
    # Never more groups than different rows: k-means would fill the rest with empty ones and warn.
    return np.asarray(KMeans(min(classes, different), n_init=8, random_state=seed).fit_predict(rows.numpy()))


def matched(groups: np.ndarray, labels: np.ndarray) -> float:
    """Return the share of rows whose group names their label, each group named after one label as well as can be.

    Args:
        groups: the group of every row, int64 [m].
        labels: the truth, int64 [m].
    """
    table = np.zeros((groups.max() + 1, labels.max() + 1))
    np.add.at(table, (groups, labels), 1)
    return float(table[linear_sum_assignment(-table)].sum() / len(labels))


def limit_of_labels(view: View) -> Limit:
    """Return what one label costs: epsilon_y, once, whoever looks."""
    epsilon = view.setting.privacy.epsilon_y
    if math.isfinite(epsilon):
        return Limit(epsilon, 0.0, "epsilon of one label, randomized once, beyond what the control finds")
    mode = view.setting.mode
    if mode.opens_hidden or (mode.opens_sum and not view.is_server):
        return no_limit("what is made of gradients reaches holders as shares, which no epsilon bounds")
    return no_limit("epsilon_y is inf: labels are not protected")
