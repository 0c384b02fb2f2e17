"""Attribute inference: predict private features from answers or embeddings, learned from people whose are public.

    x^ = ridge regression of x on what the method shows of a node, fitted on a public part of the nodes

Judged on all others against the mean predictor, which says of everybody what is true of the public part on average.
Friends and people of one class have features in common, which no protection of one person's features hides: the same
attack on labels spread over the edges, which read no features at all, is the baseline; or on the same method after all
features were dealt out to other people, where that finds more.  Noise averaged over friends shows how many they are,
which features correlate with; how much differs from training to training, so several are compared.
Source: Duddu, Boutet, Shejwalkar, "Quantifying Privacy Leakage in Graph Embedding", MobiQuitous 2020 (arXiv
2010.00906), section 4.3; each column is scaled and centred, so that a common feature does not pass for a leak.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy import stats
from sklearn.linear_model import Ridge

from graphveil.attacks.limits import limit_of_answers, require_truth
from graphveil.attacks.result import AttackResult, auc_of, judge, sample_of
from graphveil.attacks.service import Answering, answer_rows, labels_alone
from graphveil.errors import InputError
from graphveil.graphs import Graph, Split
from graphveil.methods.base.network.network import as_matrix
from graphveil.runtime.checks import require_number
from graphveil.runtime.words import count_of

_COLUMNS = 2000
_ENTRIES = 100_000
#: The probability that a method is said to reveal more than one with other people's features although it does not.
FALSE_ALARM = 0.001


def attribute(
    method: Answering,
    graph: Graph,
    *,
    column: int | None = None,
    known_share: float = 0.5,
    observed: np.ndarray | None = None,
    dealt: Sequence[np.ndarray] = (),
    split: Split | None = None,
    seed: int = 0,
) -> AttackResult:
    """Return how well features above the middle of their range are told from those below.

    Args:
        method: fitted.
        graph: with the true features, which score the attack.
        column: the sensitive feature; None: all of them together (2,000 drawn ones where there are more).
        known_share: share of the nodes whose features are public.
        observed: what the method shows of each node [n, k], such as embeddings; default: probabilities and their logs.
        dealt: `observed` of the same method, each trained after all features were dealt out to other nodes.
        split: whose labels the baseline knows; default: half of them.

    Raises:
        InputError: a column or share outside its range, or a feature that nobody or everybody has.
    """
    require_number("(0, 1)", "attribute", known_share=known_share)
    require_truth(graph, "features", "attribute")
    rng = np.random.default_rng([seed, 0xA7])
    truth, columns = _truth(graph, column, rng)
    rows = answer_rows(method, graph) if observed is None else np.asarray(observed, dtype=np.float64)
    if rows.shape[:1] != truth.shape[:1]:
        raise InputError(f"{count_of(len(rows), 'row')} shown", where="attribute", allowed=f"{len(truth)}, one a node")
    public = np.zeros(len(rows), dtype=bool)
    # Learn on some people and judge on others, so that fitting by heart does not count.
    public[rng.permutation(len(rows))[: round(known_share * len(rows))]] = True
    scores, explained = _regress(rows, truth, public)
    # The middle of the declared range, not of the data: the people under attack do not move the threshold.
    above = truth[~public] > (graph.schema.low + graph.schema.high) / 2
    members, non_members = (sample_of(scores[side], _ENTRIES, rng) for side in (above, ~above))
    figures = {"variance explained beyond the mean": explained, "columns": float(len(columns))}
    notes = ("features of one node are judged as if each were drawn by itself",) if column is None else ()

    def auc_from(control: np.ndarray) -> float:
        read, _ = _regress(control, truth, public)
        return auc_of(*(sample_of(read[side], _ENTRIES, rng) for side in (above, ~above)))

    labels = auc_from(labels_alone(graph, split, seed))
    return judge(
        "attribute",
        "a private feature from what the method shows of a node" if column is None else f"feature {column} of a node",
        members,
        non_members,
        limit=limit_of_answers(method),
        seed=seed,
        figures=figures,
        notes=notes,
        **_baseline(labels, [auc_from(rows) for rows in dealt]),
    )


def _baseline(labels: float, dealt: Sequence[float]) -> dict[str, Any]:
    """The baseline for `judge`: the better AUC of labels alone and of features dealt out anew."""
    facts: dict[str, Any] = {"baseline": labels, "baseline_note": "labels spread over the edges, no features"}
    if dealt:
        # One training may lie above another by luck: a method is accused only beyond the spread of several.
        # Below lies one more normal draw, but for a false alarm in 1,000: mean + t s sqrt(1 + 1 / m), Student's t since
        # mean and spread come from a handful of trainings, and 1 / m since one more has its own luck.
        m, high = len(dealt), np.mean(dealt)
        if m > 1:
            high += stats.t.ppf(1 - FALSE_ALARM, m - 1) * np.std(dealt, ddof=1) * np.sqrt(1 + 1 / m)
        facts["baseline_high"] = max(labels, float(high))
        if np.mean(dealt) > labels:
            facts |= {
                "baseline": float(np.mean(dealt)),
                "baseline_note": "the same method with other people's features",
            }
    return facts


def _regress(rows: np.ndarray, truth: np.ndarray, public: np.ndarray) -> tuple[np.ndarray, float]:
    """Fit on the public nodes; return scores of all others in deviations, and the share of variance explained."""
    centre, spread = rows[public].mean(axis=0), rows[public].std(axis=0)
    # Standardised by the public people: the adversary does not have the moments of those who are judged.
    scaled = (rows - centre) / np.where(spread > 1e-12, spread, 1.0)
    model = Ridge(alpha=1.0).fit(scaled[public], truth[public])
    mean = truth[public].mean(axis=0)
    guess = np.asarray(model.predict(scaled[~public])).reshape(-1, truth.shape[1])
    hidden = truth[~public]
    errors, without = ((hidden - guess) ** 2).sum(), ((hidden - mean) ** 2).sum()
    # At least 1e-6: columns that hardly vary would otherwise dominate the ranking of all entries.
    deviation = np.maximum(truth[public].std(axis=0), 1e-6)
    return (guess - mean) / deviation, float(1 - errors / without) if without > 0 else 0.0


def _truth(graph: Graph, column: int | None, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the features under attack [n, columns] and which they are."""
    d = int(graph.schema.dimension)
    if column is not None and not 0 <= column < d:
        raise InputError(f"column {column}", where="attribute", allowed=f"0 to {d - 1}")
    columns = np.array([column]) if column is not None else np.sort(rng.permutation(d)[:_COLUMNS])
    x: Any = as_matrix(graph.x)
    values = x[:, columns].toarray() if sp.issparse(x) else x.numpy()[:, columns]
    middle = (graph.schema.low + graph.schema.high) / 2
    if not (values > middle).any() or (values > middle).all():
        raise InputError("all nodes are on the same side of the middle of the range", where="attribute")
    return values.astype(np.float64), columns
