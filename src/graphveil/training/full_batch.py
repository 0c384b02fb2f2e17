"""Full-batch training of perceptrons on public or already released rows: costs no privacy.

    minimise  mean over training rows of  -log softmax(h W + b)_y

Training and validation rows are selected once. The last layer and its loss are one step with classes as rows, where
softmax over a handful of classes is many times as fast as over columns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, cast

from graphveil.errors import InputError
from graphveil.runtime.checks import require_trained
from graphveil.runtime.late import Tensor, nn, torch
from graphveil.runtime.progress import Progress, ProgressCallback
from graphveil.training.loop import Adam
from graphveil.training.selection import Epoch


class Perceptron(Protocol):
    """A network [rows] -> logits whose last layer is apart."""

    head: nn.Linear

    def features(self, x: Any) -> Tensor: ...


@dataclass(frozen=True)
class Rows:
    """Rows in the form the network takes, and the class of each [n] int64."""

    inputs: Any
    classes: Tensor


@dataclass(frozen=True)
class FullBatch:
    """How long and how fast; training stops after `patience` epochs without a better one (0: never). Better is the
    highest validation accuracy so far, or the lowest loss: accuracy may stay the same for long before it rises.
    """

    epochs: int = 100
    learning_rate: float = 0.01
    weight_decay: float = 0.0
    patience: int = 0


def train_full_batch(
    model: nn.Module, train: Rows, validate: Rows, schedule: FullBatch, *, progress: ProgressCallback | None = None
) -> tuple[Epoch, ...]:
    """Train `model` in place, load the weights that validate best into it and return every epoch's figures. Without
    validation rows it trains for all epochs and keeps the last. Raises InputError for no training rows, or a loss
    that is not a number.

    Args:
        train: the rows whose loss is minimised.
        validate: the rows that choose the epoch; may be none.
    """
    from graphveil.training.head_loss import head_loss

    require_trained(len(train.classes))
    net = cast(Perceptron, model)
    targets = torch.nn.functional.one_hot(train.classes, net.head.out_features).t().to(torch.float32).contiguous()
    optimiser = Adam(model.parameters(), learning_rate=schedule.learning_rate, weight_decay=schedule.weight_decay)
    history: list[Epoch] = []
    best, lowest, best_epoch = (-1.0, 0.0), math.inf, 0
    best_state: dict[str, Tensor] = {}
    for number in range(1, schedule.epochs + 1):
        # A single row has no spread, so batch normalization uses its initial statistics.
        model.train(len(train.classes) > 1)
        hidden = net.features(train.inputs)
        loss, accuracy = head_loss(hidden, net.head.weight, net.head.bias, targets)
        optimiser.clear()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        # Read together: on a GPU each read waits for all work before it.
        figures = torch.stack([loss.detach(), accuracy, *_validate(model, net, validate)]).tolist()
        train_loss, train_accuracy, val_loss, val_accuracy = figures
        if train_loss != train_loss:
            raise InputError(f"the training loss is not a number at epoch {number}", remedy="lower learning_rate")
        history.append(Epoch(number, train_loss, val_loss, train_accuracy, val_accuracy, val_accuracy))
        if val_loss < lowest:
            lowest, best_epoch = val_loss, number
        if len(validate.classes) and (val_accuracy, -val_loss) > best:
            best, best_epoch = (val_accuracy, -val_loss), number
            best_state = {name: value.detach().clone() for name, value in model.state_dict().items()}
        if progress is not None:
            progress(Progress(number, schedule.epochs))
        # Only with validation rows: without them no epoch is better than another.
        if best_state and schedule.patience and number - best_epoch >= schedule.patience:
            break
    if best_state:
        model.load_state_dict(best_state)
    model.eval()
    return tuple(history)


def _validate(model: nn.Module, net: Perceptron, rows: Rows) -> tuple[Tensor, Tensor]:
    """Return loss and accuracy on validation rows, 0 and 0 where there are none."""
    if len(rows.classes) == 0:
        none = net.head.bias.new_zeros(())
        return none, none
    model.eval()
    with torch.no_grad():
        scores = torch.addmm(net.head.bias[:, None], net.head.weight, net.features(rows.inputs).t())
        logs = torch.log_softmax(scores, dim=0)
        loss = -logs.gather(0, rows.classes[None]).mean()
        # A tenth of the time of argmax over so few rows.
        return loss, (scores.max(dim=0).indices == rows.classes).float().mean()
