"""What features and labels say of everyone without any list: a logistic regression behind the label's channel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphveil.late import torch
from graphveil.methods.base.features import features_of, labels_of, unit_rows
from graphveil.methods.base.network import Labels
from graphveil.methods.links.collection import LinkReports
from graphveil.models.label_prior import log_channel
from graphveil.models.logistic import choose_logistic, fit_logistic

if TYPE_CHECKING:
    from torch import Tensor


def with_labels(scores: Tensor, labels: Labels, heard: Tensor) -> Tensor:
    """Return log-scores [n, c] with what everyone's own label report says of its class.

    Args:
        scores: [n, c].
        labels: as released; who trains or validates sent one.
        heard: log T [c, c].
    """
    said = heard[:, labels.values.clamp_min(0)].T
    return scores + torch.where((labels.train | labels.val)[:, None], said, torch.zeros(()).to(said))


def without_links(released: LinkReports, *, seed: int) -> tuple[Tensor, float]:
    """Return what features and labels alone say of every node [n, c], and the share of validation labels met.

    The share is that of the regression before it learns from validation labels as well.

    Args:
        released: everybody's reports; the lists are not read.
        seed: draws numbers in place of features that were not collected.
    """
    labels = labels_of(released.people)
    heard = log_channel(labels.classes, labels.keep, labels.flip)
    features = unit_rows(features_of(released.people, seed)[0], "cpu")
    train, val = labels.train.nonzero().squeeze(1), labels.val.nonzero().squeeze(1)
    chosen, strength = choose_logistic(features, labels.values, train, val, heard)
    met = chosen.log_probabilities(features)[val].argmax(dim=1) == labels.values[val]
    known = labels.train | labels.val
    fitted = fit_logistic(features, labels.values, known.nonzero().squeeze(1), heard, strength)
    return with_labels(fitted.log_probabilities(features), labels, heard), float(met.float().mean())
