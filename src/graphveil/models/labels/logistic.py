"""Multinomial logistic regression behind a known label channel: the class of a node from its features alone.

    minimise   - sum over labelled nodes of log( softmax(x W + b) T )_{y'}  +  |W|^2 / (2 C)

T = q 1 1^T + (p - q) I is the channel of randomized response (the identity for public labels).  Convex for public
labels; Newton's method (`newton`), warm-started from one strength C to the next.  Source: Bishop, "Pattern Recognition
and Machine Learning", 2006, section 4.3.4; the channel in front: Patrini et al., CVPR 2017, arXiv 1609.03683 (forward
correction).
Shapes: features as a matrix with `@` [n, d], labels [n] int64 (-1 where none), logits [n, c].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from graphveil.models.labels.label_prior import log_shares_of
from graphveil.models.labels.newton import ChannelLoss, Linear, minimise
from graphveil.runtime.late import Tensor, torch

#: The most training nodes on which strengths are compared.
MOST_CHOOSING = 1 << 18
#: Strengths C tried on validation labels, weakest first.
STRENGTHS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)


class Rows(Protocol):
    """Rows [n, d], dense or sparse, that are multiplied by weights [d, k], all or some of them."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def T(self) -> Rows: ...
    def __matmul__(self, other: Tensor) -> Tensor: ...
    def __getitem__(self, chosen: Tensor) -> Rows: ...


@dataclass(frozen=True)
class Logistic:
    """Weights W [d, c] and b [c]."""

    weight: Tensor
    bias: Tensor

    def log_probabilities(self, features: Rows) -> Tensor:
        return log_shares_of(features @ self.weight + self.bias)


def fit_logistic(
    features: Rows, labels: Tensor, nodes: Tensor, log_channel: Tensor, strength: float, start: Logistic | None = None
) -> Logistic:
    """Return the regression fitted to the noisy labels of some nodes.

    Args:
        nodes: int64 [m], those whose labels count.
        log_channel: log T [c, c].
        strength: C, the inverse of the penalty on weights.
        start: where the search begins; None: at zero.
    """
    return _fit(features[nodes], log_channel[:, labels[nodes]].T, strength, start)


def _fit(own: Rows, likelihoods: Tensor, strength: float, start: Logistic | None) -> Logistic:
    """Return the regression of `fit_logistic` on rows [m, d], given log Pr[label | class] of each [m, c]."""
    transposed, columns = own.T, own.shape[1]

    def slopes(scores: Tensor) -> Tensor:
        return torch.cat([transposed @ scores, scores.sum(dim=0, keepdim=True)])

    # The last row is the bias, which has no penalty.
    penalty = likelihoods.new_full((columns + 1, 1), 1 / strength)
    penalty[columns] = 0.0
    first = Logistic(likelihoods.new_zeros(columns, 1), likelihoods.new_zeros(1)) if start is None else start
    start_weights = torch.cat([first.weight, first.bias[None]]).expand(-1, likelihoods.shape[1])
    scores = Linear(lambda w: own @ w[:columns] + w[columns], slopes)
    best = minimise(ChannelLoss(scores, likelihoods, penalty), start_weights)
    return Logistic(best[:columns], best[columns])


def choose_logistic(
    features: Rows,
    labels: Tensor,
    train: Tensor,
    val: Tensor,
    log_channel: Tensor,
    strengths: Sequence[float] = STRENGTHS,
) -> tuple[Logistic, float]:
    """Return the regression fitted to the train nodes whose validation labels are likeliest, and its strength C.

    Args:
        train: int64 [m], the nodes it is fitted to; strengths are compared on `MOST_CHOOSING` of them.
        val: int64 [k], the nodes that choose C.
        strengths: values of C to try, weakest first.
    """
    val_likelihoods = log_channel[:, labels[val]].T
    # With the strength raised in proportion, the fit to a subset is close to the fit to all nodes, and a good start.
    subset = train[:: max(1, -(-len(train) // MOST_CHOOSING))]
    own, subset_likelihoods, val_rows = features[subset], log_channel[:, labels[subset]].T, features[val]
    fits: list[tuple[float, Logistic, float]] = []
    for strength in strengths:
        # Each strength begins where the weaker one ended: the path is smooth, and most steps are saved.
        start = fits[-1][1] if fits else None
        fitted = _fit(own, subset_likelihoods, strength * (len(train) / len(subset)), start)
        log_p = fitted.log_probabilities(val_rows)
        fits.append((float(torch.logsumexp(log_p + val_likelihoods, dim=1).sum()), fitted, strength))
    _, best, strength = max(fits, key=lambda row: row[0])
    if len(subset) < len(train):
        best = fit_logistic(features, labels, train, log_channel, strength, best)
    return best, strength
