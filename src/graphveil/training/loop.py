"""The one training loop: full-batch Adam, one first-layer product an epoch, and the weights of the chosen epoch.

The first layer has no dropout in front of it, so its product after the update serves twice: for this epoch's
evaluation and for the next epoch's training pass.  Adam is torch's own fused step without its optimiser class, which
brings torch's compiler with it, a second of imports.  Source: Kingma and Ba, "Adam: A Method for Stochastic
Optimization", ICLR 2015 (arXiv 1412.6980), Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, cast

from graphveil.aggregation import Inputs
from graphveil.errors import InputError
from graphveil.models import Backbone
from graphveil.runtime.late import Tensor, nn, torch
from graphveil.runtime.progress import Progress, ProgressCallback
from graphveil.training.selection import Epoch, selection_rule


class Objective(Protocol):
    """What is minimised and what an epoch is judged by; sees released labels only."""

    @property
    def ideal(self) -> float:
        """Accuracy of a perfect model against the noisy labels."""

    def loss(self, logits: Tensor) -> Tensor:
        """Return the training loss of logits [n, c]."""

    def train_accuracy(self, logits: Tensor) -> Tensor | float:
        """Return the share of the training nodes' noisy labels met by logits [n, c]."""

    def validate(self, logits: Tensor) -> tuple[Tensor | float, Tensor | float, Tensor | float]:
        """Return (validation loss, accuracy on noisy labels, estimated accuracy on true labels)."""


@dataclass(frozen=True)
class Schedule:
    """How long and how fast to train, and which epoch to keep; training ends after `patience` epochs without a better
    one (0: never).
    """

    epochs: int = 500
    learning_rate: float = 0.01
    weight_decay: float = 0.001
    selection: str = "robust"
    patience: int = 0

    def is_over(self, number: int, best: int) -> bool:
        """Return whether to stop after epoch `number`, where `best` is the best so far."""
        return self.patience > 0 and number - best >= self.patience


@dataclass(frozen=True)
class Trained:
    """The kept weights' epoch, its logits [n, c] without dropout, and every epoch's figures."""

    epoch: int
    logits: Tensor
    history: tuple[Epoch, ...]


def train(
    model: nn.Module,
    inputs: Inputs,
    structure: object,
    objective: Objective,
    schedule: Schedule,
    *,
    seed: int,
    progress: ProgressCallback | None = None,
) -> Trained:
    """Train `model` in place, load the kept epoch's weights into it and return the record. Raises InputError when the
    loss stops being a number.

    Args:
        structure: the form of the edges that the model reads, see `models.structure_for`.
        seed: fixes dropout; never touches privacy noise.

    >>> import torch
    >>> from graphveil.aggregation import build_inputs
    >>> from graphveil.methods.base.network.objectives import drop_objective
    >>> from graphveil.models import build_backbone
    >>> from graphveil.models.labels.label_prior import Channel
    >>> from graphveil.training import Schedule, train
    >>> labels, half = torch.arange(40) % 2, torch.arange(40) < 20
    >>> inputs = build_inputs(torch.eye(2)[labels], None, 0, width=4)
    >>> objective = drop_objective(labels, half, ~half, None, 0, Channel(2))
    >>> model = build_backbone("mlp", 2, 4, 2, 0.0, generator=torch.Generator().manual_seed(0))
    >>> trained = train(model, inputs, None, objective, Schedule(epochs=50, learning_rate=0.1), seed=0)
    >>> len(trained.history), bool((trained.logits.argmax(dim=1) == labels).all())
    (50, True)
    """
    backbone = cast(Backbone, model)
    rule = selection_rule(schedule.selection, ideal=objective.ideal)
    optimiser = Adam(model.parameters(), learning_rate=schedule.learning_rate, weight_decay=schedule.weight_decay)
    history: list[Epoch] = []
    best: dict[str, Tensor] = {}
    best_logits = torch.empty(0)
    # Dropout draws from torch's global generator, which belongs to the caller.
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        first = backbone.first(inputs, structure)
        for number in range(1, schedule.epochs + 1):
            model.train()
            logits = backbone.rest(first, structure)
            loss = objective.loss(logits)
            optimiser.clear()
            # Frees what gradients do not need before arrays of the same size are allocated.
            del first
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            model.eval()
            first = backbone.first(inputs, structure)
            with torch.no_grad():
                clean = backbone.rest(first, structure)
                history.append(epoch_figures(number, loss.detach(), logits.detach(), clean, objective))
            if rule(history[-1]):
                best = {name: value.detach().clone() for name, value in model.state_dict().items()}
                best_logits, best_epoch = clean.detach(), number
            if progress is not None:
                progress(Progress(number, schedule.epochs))
            if schedule.is_over(number, best_epoch):
                break
    model.load_state_dict(best)
    return Trained(best_epoch, best_logits, tuple(history))


def epoch_figures(number: int, loss: Tensor, noisy: Tensor, clean: Tensor, objective: Objective) -> Epoch:
    """Return the epoch's figures. Raises InputError when the loss is not a number.

    Args:
        noisy, clean: logits [n, c] with dropout and without, constants.
    """
    figures = loss, *objective.validate(clean), objective.train_accuracy(noisy)
    # Read together: on a GPU each read waits for all work before it.
    numbers = torch.stack([torch.as_tensor(figure, dtype=torch.float64, device=loss.device) for figure in figures])
    train_loss, val_loss, val_accuracy, estimate, accuracy = numbers.tolist()
    require_finite_loss(train_loss, number)
    return Epoch(number, train_loss, val_loss, accuracy, val_accuracy, estimate)


def require_finite_loss(loss: float, number: int) -> None:
    """Refuse a training loss that is not a number."""
    if loss != loss:
        raise InputError(
            f"the training loss is not a number at epoch {number}", remedy="lower learning_rate or use scaling=standard"
        )


class Adam:
    """Updates parameters in place; a parameter without a gradient stays as it is."""

    def __init__(self, parameters: Iterable[Tensor], *, learning_rate: float, weight_decay: float = 0.0) -> None:
        self.parameters = list(parameters)
        self.learning_rate, self.weight_decay = learning_rate, weight_decay
        self._means = [torch.zeros_like(parameter) for parameter in self.parameters]
        self._squares = [torch.zeros_like(parameter) for parameter in self.parameters]
        self._steps = [torch.zeros((), device=parameter.device) for parameter in self.parameters]

    def clear(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None

    def step(self) -> None:
        from torch.optim.adam import adam

        gradients = [parameter.grad for parameter in self.parameters]
        with_gradient = [index for index, gradient in enumerate(gradients) if gradient is not None]
        with torch.no_grad():
            adam(
                [self.parameters[index] for index in with_gradient],
                [gradient for gradient in gradients if gradient is not None],
                [self._means[index] for index in with_gradient],
                [self._squares[index] for index in with_gradient],
                [],
                [self._steps[index] for index in with_gradient],
                fused=True,
                amsgrad=False,
                beta1=0.9,
                beta2=0.999,
                lr=self.learning_rate,
                weight_decay=self.weight_decay,
                eps=1e-8,
                maximize=False,
            )
