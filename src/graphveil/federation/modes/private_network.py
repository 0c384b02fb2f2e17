"""A holder's guesses where the unit is a person: a linear network on its own columns, trained by private descent.

    logits = [ x | z ] W + b     x of length 1, z the votes of `private_votes`; W by `training.dp_sgd`
                                 from 0 for features and from TRUST I for votes, noise of `core.person`

A person's features determine their own guess and, where they train, W; nothing else (the proof is in `core.person`).
Shapes: X [n, d], z [n, c] or [n, 0], W [d + c, c], guesses [n].
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from graphveil.aggregation import ReceiverRows
from graphveil.federation.core.setting import Setting
from graphveil.federation.modes.local_network import label_losses, operator_of, row_lengths
from graphveil.federation.modes.propagation import Features
from graphveil.graphs.degree_bound import keep_lists
from graphveil.privacy import Randomness
from graphveil.training.dp_sgd import train_privately
from graphveil.training.streamed import Streamed

#: The initial weight of a vote.
TRUST = 5.0


#: The length of a vote beside features of length 1: longer ones would take the clipped gradient from the features.
SCALE = 0.1


def private_votes(
    edge_index: Tensor, nodes: int, rows: Tensor, labels: Tensor, setting: Setting, *, randomness: Randomness
) -> Tensor:
    """Return the votes of each node's neighbours who train, float32 [n, c]; [n, 0] where connections are not read.

    Args:
        edge_index: of this holder, int64 [2, E]; row 0 owns the edge. nodes: n.
        rows: who train, int64 [m]. labels: theirs, as reported, int64 [m].
        setting: the agreed run. randomness: of the noise.
    """
    sums = setting.of_person.votes
    if sums is None:
        return torch.zeros(nodes, 0)
    lists = keep_lists(edge_index, nodes, setting.privacy.degree_bound)
    label_rows = torch.zeros(nodes, setting.classes)
    label_rows[rows, labels] = 1.0
    noisy = sums.perturb(ReceiverRows.of(lists, nodes), label_rows, 1, randomness)
    # Scaled by the noise and not by the data: standardising would use a statistic of private rows.
    return SCALE * torch.asinh((noisy - noisy.mean(dim=1, keepdim=True)) / max(sums.sigmas[0], 1.0))


def private_guesses(
    features: Features, votes: Tensor, rows: Tensor, labels: Tensor, setting: Setting, *, randomness: Randomness
) -> Tensor:
    """Train on some rows, and return the guesses of all: those of `rows` must not leave. Returns int64 [n].

    Args:
        features: of all nodes, dense or scipy CSR [n, d]. votes: of all nodes, float32 [n, c] or [n, 0].
        rows: who train, int64 [m]. labels: as reported, int64 [m]. setting: the agreed run.
        randomness: of batches, dither and noise.
    """
    columns = int(features.shape[1])
    network = nn.Linear(columns + votes.shape[1], setting.classes)
    # From zero: initial weights are public, and a first step from anywhere else would only be longer.
    nn.init.zeros_(network.weight)
    nn.init.zeros_(network.bias)
    with torch.no_grad():
        network.weight[:, columns:] = TRUST * torch.eye(setting.classes)[:, : votes.shape[1]]
    # Through the channel: otherwise randomized labels would be learnt as true ones.
    channel = setting.label_channel
    train_privately(
        network,
        _training_rows(features, votes, rows),
        labels,
        setting.of_person.schedule(len(rows)),
        randomness=randomness,
        loss=lambda logits, reported: label_losses(logits, reported, channel),
    )
    # Row by row: a person's guess reads no other row, and connections only through votes.
    with torch.no_grad():
        of_features, of_votes = network.weight[:, :columns].T.contiguous(), network.weight[:, columns:].T
        logits: Tensor = (operator_of(features) @ of_features) / row_lengths(features) + network.bias + votes @ of_votes
    return logits.argmax(dim=1)


def _training_rows(features: Features, votes: Tensor, rows: Tensor) -> Streamed:
    """Return features of length 1 beside votes, float32 [m, d + c], made dense by batch; rows are independent."""
    dense = isinstance(features, Tensor | np.ndarray)
    own: Any = torch.as_tensor(features)[rows] if dense else features[rows.numpy()]
    lengths, own_votes = row_lengths(own), votes[rows]

    def make(places: Tensor) -> Tensor:
        x = own[places] if dense else torch.from_numpy(own[places.numpy()].toarray())
        return torch.cat([x.float() / lengths[places], own_votes[places]], dim=1)

    return Streamed((len(rows), own.shape[1] + votes.shape[1]), make)
