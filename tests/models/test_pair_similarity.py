"""A similarity learned from labels: it tells classes apart, and looks at nothing but training labels."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from graphveil.models import pair_similarity
from graphveil.models.pair_similarity import learned_embedding

N = 120


def people() -> tuple[Tensor, Tensor]:
    """Rows whose class is in 2 of 12 coordinates, the others five times as loud."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(N) % 3
    x = 5 * torch.randn(N, 12, generator=generator)
    x[:, :2] = torch.tensor([[2.0, 0.0], [-1.0, 1.7], [-1.0, -1.7]])[labels]
    return x + 0.3 * torch.randn(N, 12, generator=generator), labels


@pytest.mark.slow  # seconds
def test_labels_of_others_change_nothing_and_training_labels_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_similarity, "STEPS", 20)
    x, labels = people()
    train = torch.arange(0, N, 2)
    state = torch.get_rng_state()
    found = learned_embedding(x, labels, train, seed=0)
    assert torch.equal(torch.get_rng_state(), state)
    hidden = labels.clone()
    hidden[1::2] = -1
    assert torch.equal(learned_embedding(x, hidden, train, seed=0), found)
    changed = labels.clone()
    changed[0] = 1
    assert not torch.equal(learned_embedding(x, changed, train, seed=0), found)
    assert not torch.equal(learned_embedding(x, labels, train, seed=1), found)


@pytest.mark.slow  # seconds
def test_unknown_labels_among_the_training_nodes_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_similarity, "STEPS", 20)
    x, labels = people()
    labels[0] = -1
    both = [learned_embedding(x, labels, train, seed=0) for train in (torch.arange(9), torch.arange(1, 9))]
    assert torch.equal(*both)
    assert all(bool(learned_embedding(x, labels, torch.arange(few), seed=0).isfinite().all()) for few in (0, 1))
