"""Training: the loop on a made-up network, which epoch is kept, the thread count, and full batches."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from graphveil.errors import InputError
from graphveil.training import Epoch, Schedule, Trained, fastest_threads, threads, train
from graphveil.training.full_batch import FullBatch, Rows, train_full_batch
from graphveil.training.head_loss import head_loss
from graphveil.training.loop import Adam
from graphveil.training.selection import SMOOTHING, selection_rule

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


@pytest.mark.parametrize(("patience", "ends", "best"), [(1, 3, 2), (2, 4, 2), (3, 5, 2), (4, 7, 6), (0, 7, 6)])
def test_training_stops_after_so_many_epochs_of_which_none_was_kept(patience: int, ends: int, best: int) -> None:
    losses = [5.0, 1.0, 9.0, 9.0, 1.0, -9.0, 9.0]
    trained, objective = run(Counted(), losses, patience=patience)
    whole, seen = run(Counted(), losses)
    assert (len(trained.history), trained.epoch) == (ends, best)
    assert trained.history == whole.history[:ends]
    assert torch.equal(trained.logits, seen.seen[best - 1]) and len(objective.seen) == ends


def test_the_first_layer_is_computed_once_an_epoch_which_changes_nothing() -> None:
    """Once at the start, then once an epoch, which serves evaluation and the next training pass."""
    model = Counted()
    run(model, [1.0] * 7, selection="last")
    assert model.firsts == 7 + 1
    assert model.rests == 2 * 7
    plain = Counted()  # the same weights as a loop that computes everything anew
    optimiser = torch.optim.Adam(plain.parameters(), lr=0.1)
    for _ in range(7):
        optimiser.zero_grad()
        nn.functional.cross_entropy(plain.first(inputs(), None), TARGET).backward()
        optimiser.step()
    assert torch.allclose(model.weight, plain.weight, atol=1e-6)


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
    assert all(torch.equal(parameter, two) for parameter, two in zip(ours, theirs, strict=True))
    assert not any(torch.equal(parameter, start) for parameter, start in zip(ours, parameters(), strict=True))
    assert all(parameter.grad is None for parameter in ours)


# ---- which epoch is kept, as tables of epochs ----


# epoch: (validation loss, train accuracy, validation accuracy) and whether it is better than the best so far.
# A perfect model meets 0.5 of the noisy labels.
PUBLISHED = [
    (2.0, 0.10, 0.10, True),  # the first is accepted whatever it is
    (1.9, 0.20, 0.20, True),  # all three better
    (1.9, 0.30, 0.30, False),  # loss not lower
    (1.8, 0.30, 0.20, False),  # validation accuracy not higher
    (1.8, 0.20, 0.30, False),  # training accuracy not higher
    (1.8, 0.30, 0.51, False),  # validation accuracy above the ideal
    (1.8, 0.53, 0.30, False),  # training accuracy above 1.05 times the ideal
    (1.8, 0.525, 0.50, True),  # both limits may be met
    (1.0, 0.525, 0.50, False),  # and then nothing can be better
]


def epochs(rows: list[tuple[float, float, float]]) -> list[Epoch]:
    return [Epoch(number, 1.0, loss, train, val, 0.0) for number, (loss, train, val) in enumerate(rows, start=1)]


def accepted(name: str, rows: list[tuple[float, float, float]], ideal: float = 0.5) -> list[bool]:
    rule = selection_rule(name, ideal=ideal)
    return [rule(epoch) for epoch in epochs(rows)]


def losses(*values: float) -> list[tuple[float, float, float]]:
    return [(value, 0.0, 0.0) for value in values]


def test_the_published_chain_row_by_row() -> None:
    assert accepted("published", [row[:3] for row in PUBLISHED]) == [row[3] for row in PUBLISHED]


def test_the_published_chain_can_stick_at_the_first_epoch_and_robust_does_not() -> None:
    """A first epoch above the ideal blocks every later one (known fault of the published rule)."""
    rows = [(2.0, 0.6, 0.6), (1.0, 0.4, 0.4), (0.5, 0.5, 0.5)]
    assert accepted("published", rows) == [True, False, False]
    assert accepted("robust", rows) == [True, True, True]


def test_robust_keeps_the_highest_smoothed_estimate() -> None:
    """Whatever the loss says; the estimates are smoothed as an exponential average."""
    estimates = [0.1, 0.4, 0.9, 0.2, 0.5, 0.6, 0.6]
    rule, smooth, best, expected = selection_rule("robust", ideal=0.5), estimates[0], -1.0, []
    for number, value in enumerate(estimates):
        smooth = value if number == 0 else (1 - SMOOTHING) * smooth + SMOOTHING * value
        expected.append(smooth > best)
        best = max(best, smooth)
    rows = [Epoch(n, 1.0, float(n), 0.0, 0.0, value) for n, value in enumerate(estimates, start=1)]
    assert [rule(row) for row in rows] == expected
    assert False in expected[1:] and True in expected[1:]


def test_robust_tells_equal_estimates_apart_by_the_smoothed_loss() -> None:
    values = [2.0, 1.0, 3.0, 0.5, 0.4, 2.9, 0.1]
    smooth, best, expected = values[0], float("inf"), []
    for number, value in enumerate(values):
        smooth = value if number == 0 else (1 - SMOOTHING) * smooth + SMOOTHING * value
        expected.append(smooth < best)
        best = min(best, smooth)
    assert accepted("robust", losses(*values)) == expected
    assert False in expected[1:] and True in expected[1:]


# ---- the thread count that measures fastest ----


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("seconds", "best"),
    [({1: 4.0, 2: 2.0, 4: 1.0}, 4), ({1: 1.0, 2: 0.95, 4: 0.93}, 1), ({1: 1.0, 2: 3.0, 4: 0.5}, 4)],
    ids=["the fastest wins", "more must win clearly", "a slow middle hides no fast end"],
)
def test_threads_are_chosen_by_time(seconds: dict[int, float], best: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine of four cores where each thread count takes the given time."""
    monkeypatch.setattr(threads.os, "sched_getaffinity", lambda _: range(4), raising=False)
    monkeypatch.setattr(threads.timeit, "repeat", lambda *_, **__: [seconds[torch.get_num_threads()]])
    assert fastest_threads(lambda: None) == best == torch.get_num_threads()


def test_one_core_means_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads.os, "sched_getaffinity", lambda _: range(1), raising=False)
    assert fastest_threads(lambda: None, repeats=1) == 1


# ---- full batches of rows: the loss and its slopes, which epoch is kept ----


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
    judged = train_full_batch(model, rows(30), bad, FullBatch(epochs=3))
    assert model.modes == [True, False] * 3
    unjudged = train_full_batch(Plain(), rows(30), Rows(val.inputs[:0], val.classes[:0]), FullBatch(epochs=3))
    assert [epoch.loss for epoch in judged] == [epoch.loss for epoch in unjudged]


def test_one_row_alone_trains_although_it_has_no_spread() -> None:
    model, row = Plain(), rows(1)
    model.first = nn.Sequential(nn.BatchNorm1d(4), model.first)
    assert len(train_full_batch(model, row, row, FullBatch(epochs=2))) == 2


def test_nobody_to_train_on_and_a_loss_that_is_no_number_are_refused() -> None:
    some = rows(10)
    with pytest.raises(InputError, match="no training node"):
        train_full_batch(Plain(), Rows(some.inputs[:0], some.classes[:0]), some, FullBatch(epochs=1))
    with pytest.raises(InputError, match="not a number at epoch 1"):
        train_full_batch(Plain(), Rows(some.inputs * math.nan, some.classes), some, FullBatch(epochs=2))
