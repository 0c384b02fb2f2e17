"""Full-batch training: the loss and its slopes, which epoch is kept, when it stops, what it refuses."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from graphveil.errors import InputError
from graphveil.training.full_batch import FullBatch, Rows, train_full_batch
from graphveil.training.head_loss import head_loss


class Plain(nn.Module):
    """A hidden layer and a head."""

    def __init__(self, width: int = 4, classes: int = 3) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.first, self.head = nn.Linear(width, 8), nn.Linear(8, classes)
        self.modes: list[bool] = []

    def features(self, x: Tensor) -> Tensor:
        self.modes.append(self.training)
        return torch.tanh(self.first(x))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.tanh(self.first(x)))


def rows(count: int, *, seed: int = 0, noise: float = 0.0) -> Rows:
    """Rows whose largest of three entries is the class, but for some."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 4, generator=generator)
    y = x[:, :3].argmax(dim=1)
    wrong = torch.rand(count, generator=generator) < noise
    return Rows(x, torch.where(wrong, (y + 1) % 3, y))


def test_the_loss_and_its_slopes_are_those_of_cross_entropy() -> None:
    generator = torch.Generator().manual_seed(2)
    h, weight, bias = (torch.randn(*shape, generator=generator) for shape in ((9, 5), (3, 5), (3,)))
    y = torch.arange(9) % 3
    targets = functional.one_hot(y, 3).t().float()
    slopes = []
    for ours in (True, False):
        leaves = [part.clone().requires_grad_() for part in (h, weight, bias)]
        if ours:
            loss, right = head_loss(*leaves, targets)
        else:
            logits = functional.linear(*leaves)
            loss, right = functional.cross_entropy(logits, y), (logits.argmax(dim=1) == y).float().mean()
        (2 * loss).backward()
        slopes.append([loss.detach(), right, *(leaf.grad for leaf in leaves)])
    for mine, theirs in zip(*slopes, strict=True):
        assert torch.allclose(mine, theirs, atol=1e-6)


def test_the_steps_are_those_of_adam_on_the_whole_batch() -> None:
    train, model, other = rows(50), Plain(), Plain()
    history = train_full_batch(model, train, Rows(train.inputs[:0], train.classes[:0]), FullBatch(epochs=5))
    optimiser = torch.optim.Adam(other.parameters(), lr=0.01)
    for epoch in history:
        optimiser.zero_grad()
        loss = functional.cross_entropy(other(train.inputs), train.classes)
        loss.backward()
        optimiser.step()
        assert epoch.loss == pytest.approx(float(loss.detach()), rel=1e-4)
    assert torch.allclose(model(train.inputs), other(train.inputs), atol=1e-4)


def test_the_epoch_that_validates_best_is_kept() -> None:
    model, val = Plain(), rows(40, seed=3, noise=0.3)
    history = train_full_batch(model, rows(60, noise=0.3), val, FullBatch(epochs=60, learning_rate=0.3))
    assert len(history) == 60
    best = max(history, key=lambda epoch: (epoch.val_estimate, -epoch.val_loss))
    logits = model(val.inputs).detach()
    assert float((logits.argmax(dim=1) == val.classes).float().mean()) == pytest.approx(best.val_estimate)
    assert best.epoch < 60
    assert float(functional.cross_entropy(logits, val.classes)) == pytest.approx(best.val_loss, rel=1e-4)


def test_it_stops_after_so_many_epochs_without_a_better_one() -> None:
    train, val = rows(60, noise=0.3), rows(40, seed=3, noise=0.3)
    long = train_full_batch(Plain(), train, val, FullBatch(epochs=200, learning_rate=0.3))
    short = train_full_batch(Plain(), train, val, FullBatch(epochs=200, learning_rate=0.3, patience=7))
    assert short == long[: len(short)]
    scores, losses = [(epoch.val_estimate, -epoch.val_loss) for epoch in short], [epoch.val_loss for epoch in short]
    assert len(short) - 1 - max(scores.index(max(scores)), losses.index(min(losses))) == 7


def test_validation_rows_are_judged_and_never_trained_on() -> None:
    model, val = Plain(), rows(10, seed=4)
    bad = Rows(torch.full_like(val.inputs, 50.0), val.classes)
    train_full_batch(model, rows(30), bad, FullBatch(epochs=3))
    assert model.modes == [True, False] * 3
    one, two = Plain(), Plain()
    empty = Rows(val.inputs[:0], val.classes[:0])
    judged = train_full_batch(one, rows(30), bad, FullBatch(epochs=3))
    unjudged = train_full_batch(two, rows(30), empty, FullBatch(epochs=3))
    assert [epoch.loss for epoch in judged] == [epoch.loss for epoch in unjudged]


def test_nobody_to_train_on_and_a_loss_that_is_no_number_are_refused() -> None:
    some = rows(10)
    with pytest.raises(InputError, match="no training node"):
        train_full_batch(Plain(), Rows(some.inputs[:0], some.classes[:0]), some, FullBatch(epochs=1))
    with pytest.raises(InputError, match="not a number at epoch 1"):
        train_full_batch(Plain(), Rows(some.inputs * math.nan, some.classes), some, FullBatch(epochs=2))
