"""A holder's guesses where the unit is a person: a linear network on its own columns, trained by private descent.

    logits = x W + b     x of length 1, W from zero, no edge is read     W by `training.dp_sgd`, noise of `core.person`

A person's features decide their own guess, and W where they train; nothing else (the proof is in `core.person`).
Shapes: X [n, d], W [d, c], guesses [n].
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from graphveil.federation.core.setting import Setting
from graphveil.federation.modes.local_network import label_losses, operator_of, row_lengths
from graphveil.federation.modes.propagation import Features
from graphveil.privacy import Randomness
from graphveil.training.dp_sgd import train_privately


def private_guesses(
    features: Features, rows: Tensor, labels: Tensor, setting: Setting, *, randomness: Randomness
) -> Tensor:
    """Train on some rows, and return the guesses of all: those of `rows` must not leave.

    Args:
        features: of all nodes, dense or scipy CSR [n, d]. rows: who train, int64 [m].
        labels: as reported, int64 [m]. setting: the agreed run.
        randomness: of batches, dither and noise.

    Returns:
        int64 [n].
    """
    network = nn.Linear(int(features.shape[1]), setting.classes)
    # From zero: initial weights are public, and a first step from anywhere else would only be longer.
    nn.init.zeros_(network.weight)
    nn.init.zeros_(network.bias)
    # Through the channel, or a label that was randomized would be learnt as if it were true.
    channel = setting.label_channel
    train_privately(
        network,
        _scaled_rows(features, rows),
        labels,
        setting.of_person.schedule(len(rows)),
        randomness=randomness,
        loss=lambda logits, heard: label_losses(logits, heard, channel),
    )
    # Every row alone: what is computed of one person's row reads no other row, and no connection.
    with torch.no_grad():
        logits = (operator_of(features) @ network.weight.T.contiguous()) / row_lengths(features) + network.bias
    return logits.argmax(dim=1)


def _scaled_rows(features: Features, rows: Tensor) -> Tensor:
    """Return some rows, dense and scaled to length 1, float32 [m, d]; each depends on itself alone."""
    if isinstance(features, Tensor | np.ndarray):
        dense = torch.as_tensor(features)[rows]
        return dense.float() / row_lengths(dense)
    chosen = features[rows.numpy()]
    return torch.from_numpy(chosen.toarray()).float() / row_lengths(chosen)
