"""A network on features and, beside them, what noisy neighbour lists say of each class; post-processing of reports.

    m_u = corner of a regular simplex for u's reported class, set right by the label's channel; 0 without a report
    H   = unbiased sums of M over everyone's noisy list, and over the lists that name them where links have a direction
    z   = [ asinh(H / max(noise, 1)) | H / |H| ] standardised
    p(y | v) = softmax( selu( x_v W + z_v V + b ) W' )

The network of class sums (`models.networks.fusion`) on sums that people's own noise protects in place of a curator's.
It is
trained twice: on the training labels, where validation labels choose the epoch and may judge, and for as many epochs on
both.  Shapes: x [n, d], H [n, c], z [n, 2 c], or [n, 4 c] where links have a direction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import scipy.sparse as sp

from graphveil import models
from graphveil.aggregation import Inputs, build_inputs, standardise
from graphveil.methods.base.network.drop import drop_objective
from graphveil.methods.base.network.features import features_of
from graphveil.methods.base.network.network import Labels, as_matrix
from graphveil.methods.base.people.released import LocalReports
from graphveil.models.blocks.block_model import NamedPairs
from graphveil.models.blocks.list_sums import list_sums, named_by_sums, noise_scale
from graphveil.runtime.late import torch
from graphveil.training import Schedule, train

if TYPE_CHECKING:
    from torch import Tensor

HIDDEN, DROPOUT, LEARNING_RATE, WEIGHT_DECAY, EPOCHS = 64, 0.5, 0.01, 5e-4, 100
#: A network is not trained on all labels for fewer epochs, whichever one validation labels chose.
FEWEST_EPOCHS = 5


@dataclass(frozen=True)
class Trained:
    """Log-probabilities [n, c]: `judged` by validation labels, that took no part in training; `final` after all did."""

    judged: Tensor
    final: Tensor


def beside(pairs: NamedPairs, shares: Tensor) -> Tensor:
    """Return z.

    Args:
        pairs: what the lists say.
        shares: M [n, c] what labels say, unbiased, see `models.blocks.list_sums.unbiased_labels`.
    """
    messages = messages_of(shares)
    sums = [list_sums(pairs, messages), *([named_by_sums(pairs, messages)] if pairs.directed else [])]
    return models.beside(sums, float(noise_scale(pairs, messages).mean()))


def messages_of(shares: Tensor) -> Tensor:
    """Return M [n, c], what everyone sends: a corner of the regular simplex on average.

    Args:
        shares: [n, c] what labels say, unbiased.
    """
    classes = shares.shape[1]
    return (shares - shares.mean(dim=1, keepdim=True)) * math.sqrt(classes / max(classes - 1, 1))


def inputs_of(people: LocalReports, device: str) -> Inputs:
    """Return the released features as an operator; one column of zeros where none were collected.

    Args:
        people: the reports.
        device: where the operator lies.
    """
    if not people.privacy.collects_features:
        return build_inputs(sp.csr_matrix((len(people.labels), 1)), None, 0, width=HIDDEN, device=device)
    features, offset = features_of(people, 0)
    matrix: Any = as_matrix(features)
    inputs = build_inputs(matrix, None, 0, width=HIDDEN, offset=offset, device=device)
    if math.isinf(people.privacy.epsilon_x or math.inf):
        return inputs
    return standardise(inputs, generator=torch.Generator().manual_seed(0))


def train_beside(inputs: Inputs, z: Tensor, labels: Labels, *, seed: int) -> Trained:
    """Train on features and z [n, k]; k = 0 leaves the lists out.

    Args:
        inputs: features [n, d].
        z: what stands beside them.
        labels: as released; those that validate choose the epoch.
        seed: fixes initial weights and dropout.
    """
    judged, epoch = _train(inputs, z, labels, EPOCHS, seed)
    everybody = replace(labels, train=labels.train | labels.val, val=torch.zeros_like(labels.val))
    final, _ = _train(inputs, z, everybody, max(epoch, FEWEST_EPOCHS), seed)
    return Trained(judged, final)


def _train(inputs: Inputs, z: Tensor, labels: Labels, epochs: int, seed: int) -> tuple[Tensor, int]:
    """Return log-probabilities [n, c] and the epoch they are of: the last one where nobody validates."""
    generator = torch.Generator().manual_seed(seed)
    model = models.Fusion(inputs.dimension, z.shape[1], HIDDEN, labels.classes, DROPOUT, generator=generator).to(
        z.device
    )
    channel: dict[str, Any] = {"classes": labels.classes, "keep": labels.keep, "flip": labels.flip}
    objective = drop_objective(labels.values, labels.train, labels.val, None, 0, **channel)
    selection = "robust" if bool(labels.val.any()) else "last"
    schedule = Schedule(epochs, LEARNING_RATE, WEIGHT_DECAY, selection)
    trained = train(model, inputs, z, objective, schedule, seed=seed)
    return torch.log_softmax(trained.logits, dim=1), trained.epoch
