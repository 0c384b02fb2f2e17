"""What features and labels say of everyone without any list: a logistic regression behind the label's channel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphveil.methods.base.network.network import Labels
from graphveil.models.labels.logistic import STRENGTHS, Rows, choose_logistic, fit_logistic
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor


def with_labels(scores: Tensor, labels: Labels, heard: Tensor) -> Tensor:
    """Return log-scores [n, c] with what everyone's own label report says of its class.

    Args:
        scores: [n, c].
        labels: as released; who trains or validates sent one.
        heard: log T [c, c].
    """
    own = heard[:, labels.values.clamp_min(0)].T
    return scores + torch.where((labels.train | labels.val)[:, None], own, torch.zeros(()).to(own))


def regress(rows: Rows, labels: Labels, heard: Tensor, strengths: Sequence[float] = STRENGTHS) -> tuple[Tensor, Tensor]:
    """Return log-probabilities [n, c] of the regression on the training nodes, and of that on all who sent a label.

    Args:
        rows: [n, d].
        labels: as released; those that validate choose the strength.
        heard: log T [c, c].
        strengths: to choose from, weakest first.
    """
    train, val, labelled = (part.nonzero().squeeze(1) for part in (labels.train, labels.val, labels.train | labels.val))
    fitted, strength = choose_logistic(rows, labels.values, train, val, heard, strengths)
    final = fit_logistic(rows, labels.values, labelled, heard, strength)
    return fitted.log_probabilities(rows), final.log_probabilities(rows)
