"""The training loop on a made-up network and objective."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor, nn

from graphveil.errors import InputError
from graphveil.training import Schedule, Trained, train
from graphveil.training.adam import Adam

TARGET = torch.tensor([0, 1, 0, 1])


class Counted(nn.Module):
    """A two-parameter network that counts how often its halves are computed."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(2))
        self.dropout = dropout
        self.firsts = self.rests = 0

    def first(self, inputs: Tensor, structure: None) -> Tensor:
        self.firsts += 1
        return inputs * self.weight

    def rest(self, first: Tensor, structure: None) -> Tensor:
        self.rests += 1
        return nn.functional.dropout(first, self.dropout, self.training)


@dataclass
class Told:
    """An objective whose validation loss is told epoch by epoch."""

    val_losses: list[float]
    breaks_at: int | None = None
    seen: list[Tensor] = field(default_factory=list)
    calls: int = 0
    ideal: float = 1.0

    def loss(self, logits: Tensor) -> Tensor:
        self.calls += 1
        loss = nn.functional.cross_entropy(logits, TARGET)
        return loss * float("nan") if self.calls == self.breaks_at else loss

    def train_accuracy(self, logits: Tensor) -> float:
        return 0.0

    def validate(self, logits: Tensor) -> tuple[float, float, float]:
        self.seen.append(logits.clone())
        return self.val_losses[len(self.seen) - 1], 0.25, 0.5


def inputs() -> Tensor:
    return torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 0.5], [0.5, 2.0]])


def run(
    model: Counted,
    losses: list[float],
    *,
    selection: str = "robust",
    seed: int = 0,
    breaks_at: int | None = None,
    patience: int = 0,
) -> tuple[Trained, Told]:
    objective = Told(losses, breaks_at)
    schedule = Schedule(len(losses), 0.1, 0.0, selection, patience)
    return train(model, inputs(), None, objective, schedule, seed=seed), objective


def test_the_kept_weights_are_those_of_the_kept_epoch() -> None:
    model = Counted()
    trained, objective = run(model, [5.0, 1.0, 9.0, 9.0, 9.0])
    assert trained.epoch == 2
    assert torch.equal(trained.logits, objective.seen[1])
    model.eval()
    assert torch.equal(model.rest(model.first(inputs(), None), None), objective.seen[1])
    assert not torch.equal(trained.logits, objective.seen[-1])


@pytest.mark.parametrize(("patience", "ends", "kept"), [(1, 3, 2), (2, 4, 2), (3, 5, 2), (4, 7, 6), (0, 7, 6)])
def test_training_stops_after_so_many_epochs_of_which_none_was_kept(patience: int, ends: int, kept: int) -> None:
    losses = [5.0, 1.0, 9.0, 9.0, 1.0, -9.0, 9.0]
    trained, objective = run(Counted(), losses, patience=patience)
    whole, seen = run(Counted(), losses)
    assert (len(trained.history), trained.epoch) == (ends, kept)
    assert trained.history == whole.history[:ends]
    assert torch.equal(trained.logits, seen.seen[kept - 1]) and len(objective.seen) == ends


def test_the_first_layer_is_computed_once_an_epoch_which_changes_nothing() -> None:
    """Once at the start, then once an epoch, which serves evaluation and the next training pass."""
    model = Counted()
    run(model, [1.0] * 7)
    assert model.firsts == 7 + 1
    assert model.rests == 2 * 7
    # The same weights as a loop that computes everything anew.
    model, plain = Counted(), Counted()
    trained, _ = run(model, [3.0, 2.0, 1.0], selection="last")
    optimiser = torch.optim.Adam(plain.parameters(), lr=0.1)
    for _ in range(3):
        optimiser.zero_grad()
        nn.functional.cross_entropy(plain.rest(plain.first(inputs(), None), None), TARGET).backward()
        optimiser.step()
    assert torch.allclose(model.weight, plain.weight, atol=1e-6)
    assert torch.allclose(trained.logits, plain.first(inputs(), None), atol=1e-6)


def test_a_seed_fixes_training_and_another_seed_changes_it() -> None:
    def weights(seed: int) -> Tensor:
        model = Counted(dropout=0.5)
        run(model, [1.0] * 5, selection="last", seed=seed)
        return model.weight.detach().clone()

    torch.manual_seed(1)  # the global generator does not reach training
    first = weights(0)
    torch.manual_seed(2)
    assert torch.equal(first, weights(0))
    assert not torch.equal(weights(0), weights(1))
    torch.manual_seed(2)  # and is left as it was
    expected = torch.rand(3)
    torch.manual_seed(2)
    weights(0)
    assert torch.equal(torch.rand(3), expected)
    model = Counted(dropout=0.9)  # evaluation sees none of it
    _, objective = run(model, [1.0], selection="last", patience=1)
    model.eval()
    assert torch.equal(objective.seen[0], model.first(inputs(), None).detach())


def test_a_loss_that_is_no_number_is_a_clear_error() -> None:
    with pytest.raises(InputError, match="the training loss is not a number at epoch 3; lower learning_rate"):
        run(Counted(), [1.0] * 5, breaks_at=3)


def parameters() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator).requires_grad_() for shape in ((5, 3), (3,), (2,))]


def test_the_steps_of_torchs_own_optimiser() -> None:
    ours, theirs = parameters(), parameters()
    adam = Adam(ours, learning_rate=0.1, weight_decay=0.01)
    other = torch.optim.Adam(theirs, lr=0.1, weight_decay=0.01, fused=True)
    for step in range(4):
        for values in (ours, theirs):
            # The last takes part now and then alone, and must count its own steps.
            loss = (values[0] @ values[1]).square().sum() + (values[2].sum() if step % 2 else 0.0)
            loss.backward()  # type: ignore[no-untyped-call]
        adam.step()
        other.step()
        adam.clear()
        other.zero_grad()
    assert all(torch.equal(one, two) for one, two in zip(ours, theirs, strict=True))
    assert not any(torch.equal(one, start) for one, start in zip(ours, parameters(), strict=True))
    assert all(one.grad is None for one in ours)
