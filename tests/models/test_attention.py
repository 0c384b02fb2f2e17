"""Weights of edges: attention with closed-form gradients, and a similarity learned from training labels alone."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from graphveil.aggregation import ReceiverRows, unit_rows
from graphveil.models.networks import pair_similarity
from graphveil.models.networks.attention import Incoming, PairAttention
from graphveil.models.networks.pair_similarity import learned_embedding
from graphveil.training.attention import incoming

NODES, COLUMNS, CLASSES = 40, 5, 3


def network_and_rows(seed: int = 0) -> tuple[PairAttention, Tensor, Tensor, ReceiverRows]:
    """A network, unit rows, labels and a graph in which nobody sends to node 7 and half of all send to node 3."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = PairAttention(COLUMNS, CLASSES)
        x, labels = unit_rows(torch.randn(NODES, COLUMNS)), torch.randint(0, CLASSES, (NODES,))
        edges = torch.cat([torch.randint(0, NODES, (2, 150)), torch.stack([torch.arange(20), torch.full((20,), 3)])], 1)
    edges = edges[:, (edges[0] != edges[1]) & (edges[1] != 7)]
    return network, x, labels, ReceiverRows.of(edges, NODES)


def one_by_one(network: PairAttention, x: Tensor, labels: Tensor, heard: Incoming, soft: float) -> Tensor:
    """Each target's gradient by autograd, in a loop."""
    scores, gradients = network(x, heard, soft), []
    for place in range(len(labels)):
        loss = functional.cross_entropy(scores[place : place + 1], labels[place : place + 1])
        parts = torch.autograd.grad(loss, list(network.parameters()), retain_graph=True)
        gradients.append(torch.cat([part.flatten() for part in parts]))
    return torch.stack(gradients)


@pytest.mark.parametrize(("seed", "soft"), [(0, 0.0), (1, 0.3), (0, 10.0)])
def test_gradients_are_those_of_autograd(seed: int, soft: float) -> None:
    network, x, labels, rows = network_and_rows(seed)
    targets = torch.tensor([3, 7, 9, 20, 39, 0])
    heard = incoming(rows, targets)
    gradients = network.target_gradients(x, labels[targets], heard, soft)
    assert torch.allclose(gradients, one_by_one(network, x, labels[targets], heard, soft), rtol=1e-4, atol=1e-6)


def test_other_targets_gradients_keep_every_bit() -> None:
    """A target's edges come and go: no other row changes, not even in its last digit (so nothing moves on the grid)."""
    network, x, labels, _ = network_and_rows()
    generator = torch.Generator().manual_seed(5)
    targets = torch.arange(NODES)
    for trial in range(20):
        edges = torch.randint(0, NODES, (2, 10 * trial + 1), generator=generator)
        more = torch.stack([torch.randperm(NODES, generator=generator)[: trial + 1], torch.full((trial + 1,), 3)])
        both = [
            network.target_gradients(x, labels, incoming(ReceiverRows.of(e, NODES), targets), 0.5)
            for e in (edges, torch.cat([edges, more], dim=1))
        ]
        unchanged = targets != 3
        assert torch.equal(both[0][unchanged], both[1][unchanged])


def test_weights_look_at_both_ends_alone_and_stay_within_one() -> None:
    network, x, _, _ = network_and_rows()
    edges = torch.randint(0, NODES, (2, 300), generator=torch.Generator().manual_seed(1))
    weights = network.weigh(x, edges)
    assert bool(((weights > 0) & (weights <= 1)).all())
    assert torch.equal(network.weigh(x, edges[:, 17:]), weights[17:])
    swapped = network.weigh(x, edges.flip(0))
    assert not torch.allclose(weights, swapped)
    torch.nn.init.constant_(network.out.bias, 1e6)
    assert float(network.weigh(x, edges).max()) <= 1.0
    assert network.weigh(x, edges[:, :0]).shape == (0,)


# ---- a similarity learned from training labels alone ----


SEEN = 120


def rows_and_labels() -> tuple[Tensor, Tensor]:
    """Rows whose class is in 2 of 12 coordinates, the others five times as loud."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(SEEN) % 3
    x = 5 * torch.randn(SEEN, 12, generator=generator)
    x[:, :2] = torch.tensor([[2.0, 0.0], [-1.0, 1.7], [-1.0, -1.7]])[labels]
    return x + 0.3 * torch.randn(SEEN, 12, generator=generator), labels


@pytest.mark.slow  # seconds
def test_labels_of_others_change_nothing_and_training_labels_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_similarity, "STEPS", 20)
    x, labels = rows_and_labels()
    train = torch.arange(0, SEEN, 2)
    state = torch.get_rng_state()
    embedding = learned_embedding(x, labels, train, seed=0)
    assert torch.equal(torch.get_rng_state(), state)
    hidden = labels.clone()
    hidden[1::2] = -1
    assert torch.equal(learned_embedding(x, hidden, train, seed=0), embedding)
    changed = labels.clone()
    changed[0] = 1
    assert not torch.equal(learned_embedding(x, changed, train, seed=0), embedding)
    assert not torch.equal(learned_embedding(x, labels, train, seed=1), embedding)


@pytest.mark.slow  # seconds
def test_unknown_labels_among_the_training_nodes_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_similarity, "STEPS", 20)
    x, labels = rows_and_labels()
    labels[0] = -1
    both = [learned_embedding(x, labels, train, seed=0) for train in (torch.arange(9), torch.arange(1, 9))]
    assert torch.equal(*both)
    assert all(bool(learned_embedding(x, labels, torch.arange(few), seed=0).isfinite().all()) for few in (0, 1))
