"""Link stealing: linked nodes get similar answers, so similar answers betray links; no query beyond the answers.

    attack 0   score of a pair = similarity of the two rows of probabilities
    attack 3   a classifier learns from the pairs of nodes whose links the adversary knows (a share of the graph)
    attack 1   the classifier learns from a shadow: a graph and a method on it that are the adversary's own

Source: He, Jia, Backes, Gong, Zhang, "Stealing Links from Graph Neural Networks", USENIX Security 2021 (arXiv
2005.02131), sections 4.2 and 4.3.  Friends are alike without any link between them: the same attack on the answers of a
perceptron that never saw an edge is the baseline, and only what lies above it was leaked by the use of edges.
"""

from __future__ import annotations

import copy
from typing import cast

import numpy as np
import torch
from scipy.spatial.distance import pdist
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import QuantileTransformer

from graphveil.attacks.influence import BELIEFS
from graphveil.attacks.limits import limit_of, require_truth
from graphveil.attacks.pairs import Pairs, belief_figures, pairs_of, too_few
from graphveil.attacks.result import AttackResult, auc_of, judge
from graphveil.attacks.service import Answering, known_answers, shown_answers
from graphveil.errors import InputError
from graphveil.graphs import Graph, Split, random_split
from graphveil.methods.baselines.network import baseline
from graphveil.privacy import SeededRandomness
from graphveil.runtime.checks import require_choice, require_number

DISTANCES = ("correlation", "cosine", "euclidean", "sqeuclidean", "cityblock", "chebyshev", "braycurtis", "canberra")
_OTHERS_FOR_ONE = 20  # pairs without a link for each with one that the classifier learns from


def link_stealing(
    method: Answering,
    graph: Graph,
    *,
    similarity: str = "correlation",
    known_share: float = 0.0,
    shadow: tuple[Answering, Graph] | None = None,
    without_edges: Answering | None = None,
    without: str = "a perceptron that saw no edge: friends are alike",
    split: Split | None = None,
    targets: int = 500,
    seed: int = 0,
) -> AttackResult:
    """Return how well similar answers tell edges from other pairs among `targets` random nodes.

    Args:
        method: fitted; only the answers that it gives of its own people are used.
        graph: with its true edges, which score the attack.
        similarity: one of DISTANCES, where nothing is learned.
        known_share: of the nodes under attack, those whose links with each other the adversary knows; the pairs of the
            rest are judged.
        shadow: (a fitted method, its graph), the adversary's own.
        without_edges: a fitted method that read no secret edges, for the baseline; default: a plain perceptron.
        without: what the baseline is, in words.
        split: who trained it, for the default of `without_edges`.

    Raises:
        InputError: an unknown similarity, a share outside [0, 1), or both a share and a shadow.
    """
    require_choice(DISTANCES, similarity=similarity)
    require_number("[0, 1)", "link stealing", known_share=known_share)
    if known_share and shadow is not None:
        raise InputError(f"known_share is {known_share!r} beside a shadow", where="link stealing", allowed="0")
    answers = shown_answers(method, graph, edges=False)
    control = known_answers(without_edges or perceptron(graph, split=split, seed=seed), graph)
    require_truth(graph, "edge", "link-stealing")
    pairs = pairs_of(graph, targets=targets, seed=seed)
    # Nodes are split, not pairs: a pair that shares a node with a lesson would make the exam easier.
    lesson, exam = _parts(pairs, known_share, int(graph.num_nodes), seed)
    basis = f"{similarity} of answers"
    if lesson is not None:
        basis = f"learned from the links of {known_share:.0%} of the nodes"
        scores, plain = (
            _learned(_table(observed, lesson), _table(observed, exam), seed) for observed in (answers, control)
        )
    elif shadow is not None:
        basis = f"learned on {shadow[1].schema.name}"
        own, lessons = pairs_of(shadow[1], targets=targets, seed=seed), (shadow[0], perceptron(shadow[1], seed=seed))
        taught = [_table(shown_answers(teacher, shadow[1], edges=False), own) for teacher in lessons]
        lessons_and_answers = zip(taught, (answers, control), strict=True)
        scores, plain = (
            _learned(taught_lesson, _table(observed, exam), seed) for taught_lesson, observed in lessons_and_answers
        )
    else:
        scores, plain = (-distances(observed, exam, (similarity,))[:, 0] for observed in (answers, control))
    members, non_members = exam.split(scores)
    figures = belief_figures(scores, exam.edge, BELIEFS)
    # All eight are reported, so that nobody need trust the choice of one.
    each = distances(answers, exam, DISTANCES)
    for column, name in enumerate(DISTANCES):
        figures[f"auc of {name}"] = auc_of(*exam.split(-each[:, column]))
    baseline = auc_of(*exam.split(plain))
    # Friends are alike: only what similarity tells beyond that was leaked by the edges.
    figures["auc above no edges"] = auc_of(members, non_members) - baseline
    return judge(
        "link-stealing",
        f"which of {len(scores):,} pairs of {len(exam.nodes):,} nodes are an edge, {basis}",
        members,
        non_members,
        limit=limit_of(method, "edge"),
        seed=seed,
        baseline=baseline,
        baseline_note=without,
        figures=figures,
    )


def perceptron(graph: Graph, *, split: Split | None = None, seed: int = 0) -> Answering:
    """Return a plain perceptron, fitted on features and labels alone without privacy: the baseline of an attack.

    Args:
        graph: its edges are not read.
        split: who trains it; None: drawn by `seed`, which fixes weights and batches too.
    """
    split = split or random_split(graph, seed)
    return baseline("mlp", epochs=100, seed=seed).fit(graph, split=split, randomness=SeededRandomness(seed))


def public_network(served: Graph, *, split: Split, seed: int = 0) -> Answering:
    """Return a plain network trained on a release without its made edges: what the public ones show baseline.

    Args:
        served: a released graph; its `public_edges` mask [e] says which edges are not made.
        split: who trains it.
    """
    public = served.get("public_edges")
    is_public = torch.zeros(served.edge_index.shape[1], dtype=torch.bool) if public is None else public
    public_graph = copy.copy(served)
    public_graph.edge_index, public_graph.public_edges = served.edge_index[:, is_public], is_public[is_public]
    return baseline("gcn", epochs=100, seed=seed).fit(public_graph, split=split, randomness=SeededRandomness(seed))


def distances(answers: np.ndarray, pairs: Pairs, names: tuple[str, ...]) -> np.ndarray:
    """Return the distances [p, names] of the answers of both ends; 0 where two rows have no direction.

    Args:
        answers: probabilities [n, c], float64.
        pairs: p pairs among the nodes under attack.
        names: of scipy's `pdist`.
    """
    rows = answers[pairs.nodes]
    t, i, j = len(rows), pairs.first, pairs.second
    place = t * i - i * (i + 1) // 2 + j - i - 1  # of the pair in scipy's condensed order
    columns = np.empty((len(i), len(names)))
    with np.errstate(invalid="ignore", divide="ignore"):
        for column, name in enumerate(names):
            columns[:, column] = pdist(rows, name)[place]
    # Two constant rows have no direction to differ in: distance 0, as of any two rows that are equal.
    return np.nan_to_num(columns, nan=0.0)


_Lesson = tuple[np.ndarray, np.ndarray]


def _table(answers: np.ndarray, pairs: Pairs) -> _Lesson:
    """Return what a classifier reads of each pair [p, 18], and whether it is an edge: distances and both entropies."""
    logs = np.log(np.maximum(answers, 1e-12))
    entropy = -(answers * np.log(np.maximum(answers, 1e-300))).sum(axis=1)
    first, second = (entropy[end] for end in pairs.ends())
    pair_distances = [distances(rows, pairs, DISTANCES) for rows in (answers, logs)]
    columns = [*pair_distances, (first + second)[:, None], np.abs(first - second)[:, None]]
    return np.concatenate(columns, axis=1), pairs.edge


def _learned(lesson: _Lesson, exam: _Lesson, seed: int) -> np.ndarray:
    """Return scores [p] of the pairs of `exam` by logistic regression on all edges and some other pairs of `lesson`."""
    rng = np.random.default_rng([seed, 3])
    rows, edge = lesson
    unlinked = np.flatnonzero(~edge)
    # Twenty for each edge: all others would be hundreds, most of the work, and teach nothing more.
    chosen = rng.choice(unlinked, min(len(unlinked), _OTHERS_FOR_ONE * int(edge.sum())), replace=False)
    sampled = np.concatenate([np.flatnonzero(edge), chosen])
    quantiles = min(200, len(sampled))  # ranks: distances differ by orders of magnitude
    scaler = QuantileTransformer(n_quantiles=quantiles, output_distribution="normal", random_state=seed).fit(
        rows[sampled]
    )
    model = LogisticRegression(class_weight="balanced", max_iter=1000)
    model.fit(scaler.transform(rows[sampled]), edge[sampled])
    return cast(np.ndarray, model.decision_function(scaler.transform(exam[0])))


def _parts(pairs: Pairs, known_share: float, nodes: int, seed: int) -> tuple[Pairs | None, Pairs]:
    """Return the pairs of nodes whose links are known, or None, and the pairs among all others."""
    if not known_share:
        return None, pairs
    rng = np.random.default_rng([seed, 2])
    is_known = np.zeros(len(pairs.nodes), dtype=bool)
    is_known[rng.permutation(len(is_known))[: round(known_share * len(is_known))]] = True
    # Pairs between a known and an unknown node are in neither part: one end of them has been to the lesson.
    both_known, none_known = (
        is_known[pairs.first] & is_known[pairs.second],
        ~is_known[pairs.first] & ~is_known[pairs.second],
    )
    lesson, exam = pairs.where(both_known), pairs.where(none_known)
    if min(lesson.edge.sum(), exam.edge.sum()) < 2:
        few = f"too few edges: {lesson.edge.sum()} to learn from and {exam.edge.sum()} to measure by"
        raise too_few(few, len(pairs.nodes), nodes)
    for name, part in (("to learn from", lesson), ("to measure by", exam)):
        if part.edge.all():
            raise InputError(f"all pairs {name} are edges", where="attack", allowed="some without an edge")
    return lesson, exam
