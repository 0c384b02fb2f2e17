"""A holder's own network: whose rows move whose guesses."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from graphveil.federation.modes.local_network import LocalNetwork, label_loss, train_local

N, C = 40, 3
GENERATOR = torch.Generator().manual_seed(1)
ROWS = torch.arange(10)
FEATURES = torch.rand(N, 5, generator=GENERATOR)
LABELS = torch.randint(0, C, (len(ROWS),), generator=GENERATOR)
#: A ring of all but the last five, who have no connections.
RING = torch.stack([torch.arange(N - 5), (torch.arange(N - 5) + 1) % (N - 5)])
EDGES = torch.cat([RING, RING.flip(0)], dim=1)


def logits(features: Tensor) -> Tensor:
    network = LocalNetwork(features, EDGES, C, hops=2)
    train_local(
        network, ROWS, lambda rows: label_loss(rows[ROWS], LABELS, torch.eye(C)), epochs=5, rate=0.05, decay=0.0
    )
    with torch.no_grad():
        return network()


@pytest.mark.parametrize("person", [N - 1, N - 5])
def test_who_neither_trains_nor_has_connections_moves_one_guess_alone(person: int) -> None:
    """The unit that a guess is priced for: a mean or a length over all rows would carry a person into every guess."""
    changed = FEATURES.clone()
    changed[person] = torch.tensor([9.0, 0.0, 0.0, 0.0, 0.0])
    moved = (logits(changed) != logits(FEATURES)).any(dim=1)
    assert moved.nonzero().flatten().tolist() == [person]
    # Somebody who trains moves the weights, and with them every guess: another unit.
    changed[0] = 1.0
    assert bool((logits(changed) != logits(FEATURES)).any(dim=1)[1:].all())
