"""Membership: was this node's label used in training?  By confidence, and with shadow models (LiRA).

    confidence   score = log( p_y / (1 - p_y) ),  p_y the probability that the method gives to the true class
    LiRA         score = log N(phi; m_in, s_in) - log N(phi; m_out, s_out),  phi as above, the moments from shadows that
                 had the node among their training nodes, and that had not

Source: Carlini, Chien, Nasr, Song, Terzis, Tramer, "Membership inference attacks from first principles", IEEE S&P 2022
(arXiv 2112.03570), section V; for nodes: Olatunji, Nejdl, Khosla, arXiv 2101.06570. The adversary knows the graph, the
features and the label in question, and asks for the node's own answer.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from graphveil.attacks.limits import Limit, caveat_of, limit_of, no_limit
from graphveil.attacks.result import AttackResult, auc_of, judge
from graphveil.attacks.service import Answering, shown_answers
from graphveil.graphs import Graph, Split
from graphveil.runtime.checks import require_whole

Train = Callable[[Split, int], Answering]
_LEAST = 0.1  # no spread of few shadows is trusted below this


def membership(method: Answering, graph: Graph, *, split: Split, seed: int = 0) -> AttackResult:
    """Return how well confidence tells nodes that trained from test nodes, by `split`.

    Args:
        split: who trained the method.
    """
    phi = confidence(method, graph)
    return judge(
        "membership",
        "whether a node's label trained the model, by confidence",
        phi[split.train.numpy()],
        # Against test nodes and not validation: those chose the model, so its confidence in them is no stranger's.
        phi[split.test.numpy()],
        limit=_limit(method),
        seed=seed,
        baseline=0.5,
        baseline_note="who trains was drawn at random",
    )


def lira(
    method: Answering, graph: Graph, *, split: Split, train: Train, shadows: int = 16, seed: int = 0
) -> AttackResult:
    """Return how well shadow models tell nodes that trained from test nodes; InputError for fewer than four shadows.

    Args:
        split: who trained the method; only who trains and who tests is redrawn for the shadows.
        train: (split, seed) -> a fitted shadow, the adversary's best guess of how the method was trained.
        shadows: how many; each has its own share of the nodes.
    """
    require_whole(4, None, "lira", shadows=shadows)
    judged = (split.train | split.test).numpy()
    inside = _halves(judged, shadows, float(split.train.numpy()[judged].mean()), seed)
    seen = []
    for number, row in enumerate(inside, start=1):
        redrawn = Split(torch.from_numpy(row), split.val, torch.from_numpy(judged & ~row))
        seen.append(confidence(train(redrawn, seed + number), graph))
    phi = confidence(method, graph)
    # The control attacks a shadow as if it were the target, and is scored by others: a fit finds its own members.
    scores, control = _ratio(phi, np.stack(seen), inside), _ratio(seen[0], np.stack(seen[1:]), inside[1:])
    trained, tested = split.train.numpy(), split.test.numpy()
    return judge(
        "lira",
        f"whether a node's label trained the model, by {shadows} shadow models",
        scores[trained],
        scores[tested],
        limit=_limit(method),
        seed=seed,
        baseline=auc_of(control[trained], control[tested]),
        baseline_note="the same scores of a shadow that was trained on other nodes",
        figures={"auc of confidence alone": auc_of(phi[trained], phi[tested])},
    )


def confidence(method: Answering, graph: Graph) -> np.ndarray:
    """Return log( p_y / (1 - p_y) ) [n] of the true class, or the mean over all true ones; 0 without a label.

    Args:
        method: fitted; asked for its own people only.
        graph: holds the true labels, which this adversary knows.
    """
    chances, y = shown_answers(method, graph, edges=True), graph.y
    tiny = 1e-12
    if y.dim() == 2:
        right = np.where(y.numpy() > 0, chances, 1 - chances)
        return np.asarray((np.log(np.maximum(right, tiny)) - np.log(np.maximum(1 - right, tiny))).mean(axis=1))
    # Nodes without a label have -1; picking column 0 for them is harmless, the result is masked below.
    labelled = y.numpy() >= 0
    picked = chances[np.arange(len(chances)), np.where(labelled, y.numpy(), 0)]
    # Not 1 - p: in floating point the probabilities of all classes need not add up to 1.
    rest = chances.sum(axis=1) - picked
    return np.where(labelled, np.log(np.maximum(picked, tiny)) - np.log(np.maximum(rest, tiny)), 0.0)


def _limit(method: object) -> Limit:
    """Membership is bounded where whole nodes come and go; hiding a label does not hide that one was sent."""
    if getattr(getattr(method, "privacy", None), "unit", None) == "node":
        return limit_of(method, "node")
    guarantee = getattr(method, "guarantee", None)
    if guarantee is None:
        return no_limit("the method states no guarantee")
    protects = "nothing" if guarantee.unprotected else f"{guarantee.unit.text}{caveat_of(guarantee)}"
    return no_limit(f"who trains is public to this method; it protects {protects}")


def _halves(judged: np.ndarray, shadows: int, share: float, seed: int) -> np.ndarray:
    """Return who trains each shadow [shadows, n], the share of the real training."""
    rng = np.random.default_rng([seed, 0x5AD0])
    nodes = np.flatnonzero(judged)
    inside = np.zeros((shadows, len(judged)), dtype=bool)
    for row in inside:
        # As many as trained the target: a shadow trained on fewer would be less sure of its members.
        row[rng.choice(nodes, max(1, round(share * len(nodes))), replace=False)] = True
    return inside


def _ratio(phi: np.ndarray, seen: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """Return the log likelihood ratio [n]; a node that was never in (or out) takes the moments of all nodes."""
    logs = []
    for side in (inside, ~inside):
        counts = side.sum(axis=0)
        # A node that is in all shadows, or in none, has no moments of its own on one side.
        everybody = float(seen[side].mean()), float(seen[side].std())
        mean = np.divide((seen * side).sum(axis=0), counts, out=np.full(len(phi), everybody[0]), where=counts > 0)
        # One deviation for all nodes: few shadows give no reliable one for each.
        pooled = max(float(np.sqrt((((seen - mean) ** 2) * side).sum() / max(1, side.sum() - len(phi)))), _LEAST)
        logs.append(-0.5 * ((phi - mean) / pooled) ** 2 - np.log(pooled))
    return np.asarray(logs[0] - logs[1])
