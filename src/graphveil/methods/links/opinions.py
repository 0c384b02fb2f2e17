"""The opinions of a reading's parts: regressions, and a network on features beside counts from noisy lists.

    m_u = corner of a regular simplex for u's reported class, corrected by the label's channel; 0 without a report
    H   = unbiased sums of M over each noisy list, and over the lists that name its person where links have a direction
    S   = sums two steps away, `models.blocks.list_sums.shared_sums`

    network     z = [ asinh(H / max(noise, 1)) | H / |H| ] standardised
                p(y | v) = softmax( selu( x_v W + z_v V + b ) W' )
    counts      z = the same of H and of S side by side,    p(y | v) = softmax( z_v W + b )
    regression  p(y | v) = softmax( x_v W + b ) behind the label's channel

The network is that of class sums (`models.networks.two_layers`), trained twice: on the training labels, while
validation labels choose the epoch and may judge, and for as many epochs on both.  The few columns of counts cannot
overfit training labels, as features and counts together may.
Shapes: x [n, d]; H, S [n, c]; z [n, 2 c], of counts [n, 4 c]; twice as many where links have a direction.
Post-processing of reports alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from graphveil import models
from graphveil.aggregation import Inputs, build_inputs, standardise
from graphveil.methods.base.network.features import features_of
from graphveil.methods.base.network.network import Labels, as_matrix
from graphveil.methods.base.network.objectives import drop_objective
from graphveil.methods.base.people.released import LocalReports
from graphveil.models.blocks.block_model import NamedPairs
from graphveil.models.blocks.list_sums import list_sums, named_by_sums, neighbour_means, noise_scale, shared_sums
from graphveil.models.labels.logistic import STRENGTHS, Rows, choose_logistic, fit_logistic
from graphveil.runtime.late import Tensor, torch
from graphveil.runtime.late import sparse as sp
from graphveil.training import Schedule, train

HIDDEN, DROPOUT, LEARNING_RATE, WEIGHT_DECAY, EPOCHS = 64, 0.5, 0.01, 5e-4, 100
#: The fewest epochs of the training on all labels, whichever epoch validation labels chose.
FEWEST_EPOCHS = 5


@dataclass(frozen=True)
class NetworkOpinion:
    """Log-probabilities [n, c]: `judged` of a training without validation labels, `final` of one with all labels."""

    judged: Tensor
    final: Tensor


def list_columns(pairs: NamedPairs, shares: Tensor) -> Tensor:
    """Return z of the network.

    Args:
        pairs: the pairs that lists name.
        shares: M [n, c], unbiased, see `models.blocks.list_sums.unbiased_labels`.
    """
    messages = messages_of(shares)
    sums = [list_sums(pairs, messages), *([named_by_sums(pairs, messages)] if pairs.directed else [])]
    return models.beside(sums, float(noise_scale(pairs, messages).mean()))


def messages_of(shares: Tensor) -> Tensor:
    """Return M [n, c], a corner of the regular simplex on average, from unbiased shares [n, c]."""
    classes = shares.shape[1]
    return (shares - shares.mean(dim=1, keepdim=True)) * math.sqrt(classes / max(classes - 1, 1))


def inputs_of(people: LocalReports, device: str) -> Inputs:
    """Return the released features as an operator; one column of zeros where none were collected."""
    if not people.privacy.collects_features:
        return build_inputs(sp.csr_matrix((len(people.labels), 1)), None, 0, width=HIDDEN, device=device)
    features, offset = features_of(people, 0)
    matrix: Any = as_matrix(features)
    inputs = build_inputs(matrix, None, 0, width=HIDDEN, offset=offset, device=device)
    if math.isinf(people.privacy.epsilon_x or math.inf):
        return inputs
    return standardise(inputs, generator=torch.Generator().manual_seed(0))


def train_with_columns(inputs: Inputs, z: Tensor, labels: Labels, *, seed: int) -> NetworkOpinion:
    """Train on features and z [n, k]; k = 0 leaves the lists out.

    Args:
        inputs: features [n, d].
        z: columns beside the features.
        labels: as released; those that validate choose the epoch.
    """
    judged, epoch = _train(inputs, z, labels, EPOCHS, seed)
    all_labels = replace(labels, train=labels.train | labels.val, val=torch.zeros_like(labels.val))
    final, _ = _train(inputs, z, all_labels, max(epoch, FEWEST_EPOCHS), seed)
    return NetworkOpinion(judged, final)


def _train(inputs: Inputs, z: Tensor, labels: Labels, epochs: int, seed: int) -> tuple[Tensor, int]:
    """Return log-probabilities [n, c] and their epoch: the last one without validation labels."""
    generator = torch.Generator().manual_seed(seed)
    classes = labels.channel.classes
    model = models.Fusion(inputs.dimension, z.shape[1], HIDDEN, classes, DROPOUT, generator=generator).to(z.device)
    objective = drop_objective(labels.values, labels.train, labels.val, None, 0, labels.channel)
    selection = "robust" if bool(labels.val.any()) else "last"
    schedule = Schedule(epochs, LEARNING_RATE, WEIGHT_DECAY, selection)
    trained = train(model, inputs, z, objective, schedule, seed=seed)
    return torch.log_softmax(trained.logits, dim=1), trained.epoch


#: Columns are of deviation 1, where entries of a feature vector of norm 1 are small: penalties begin far stronger.
COUNT_STRENGTHS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)


def two_steps(pairs: NamedPairs, shares: Tensor) -> Tensor:
    """Return z of the counts."""
    messages = messages_of(shares)
    columns = [list_columns(pairs, shares)]
    for way in (pairs, pairs.reversed) if pairs.directed else (pairs,):
        noise = noise_scale(way, neighbour_means(way, messages))
        columns.append(models.beside([shared_sums(way, messages)], float(noise.mean())))
    return torch.cat(columns, dim=1)


def with_labels(scores: Tensor, labels: Labels, log_channel: Tensor) -> Tensor:
    """Return log-scores [n, c] plus the evidence of each person's own label report.

    Args:
        scores: [n, c].
        heard: log T [c, c].
    """
    evidence = log_channel[:, labels.values.clamp_min(0)].T
    return scores + torch.where((labels.train | labels.val)[:, None], evidence, torch.zeros(()).to(evidence))


def regress(
    rows: Rows, labels: Labels, log_channel: Tensor, strengths: Sequence[float] = STRENGTHS
) -> tuple[Tensor, Tensor]:
    """Return log-probabilities [n, c] of the regression on training nodes, and of that on all nodes with a label.

    Args:
        rows: [n, d].
        labels: as released; those that validate choose the strength.
        heard: log T [c, c].
        strengths: to choose from, weakest first.
    """
    train, val, labelled = (part.nonzero().squeeze(1) for part in (labels.train, labels.val, labels.train | labels.val))
    fitted, strength = choose_logistic(rows, labels.values, train, val, log_channel, strengths)
    final = fit_logistic(rows, labels.values, labelled, log_channel, strength)
    return fitted.log_probabilities(rows), final.log_probabilities(rows)
