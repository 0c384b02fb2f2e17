"""Which epoch's weights to keep, judged by released (noisy) labels alone.

"published": Sajadmanesh and Gatica-Perez's chain: a better epoch has a lower validation loss, a higher validation
accuracy not above `ideal`, and a higher training accuracy not above 1.05 `ideal`, each against the best so far; `ideal`
is what a perfect model would score on the noisy labels.  The first epoch is accepted unconditionally.
"robust": the highest estimate of the accuracy on true validation labels, (acc' - q) / (p - q), smoothed over epochs;
ties are decided by the smoothed validation loss, and then for the earlier epoch.
"last": the last epoch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from graphveil.errors import InputError

SelectionName = Literal["robust", "published", "last"]
SELECTIONS: tuple[str, ...] = get_args(SelectionName)
#: Weight of the newest epoch in the smoothed validation figures.
SMOOTHING = 0.2


@dataclass(frozen=True)
class Epoch:
    """What one epoch is judged by; every figure is computed from released labels."""

    epoch: int  # number, from 1
    loss: float  # training loss
    val_loss: float  # mean -log p(y' | x) over the validation nodes' noisy labels
    train_accuracy: float  # share of noisy labels that the model's most likely noisy label meets
    val_accuracy: float  # share of noisy labels that the model's most likely noisy label meets
    val_estimate: float  # estimated share of true labels, (val_accuracy - q) / (p - q)


Rule = Callable[[Epoch], bool]
#: Estimated accuracy, and minus the validation loss.
Figures = tuple[float, float]


def selection_rule(name: str, *, ideal: float) -> Rule:
    """Return a function that is fed every epoch in order and says whether it is the best so far.

    Args:
        name: "robust", "published" or "last".
        ideal: accuracy of a perfect model against the noisy labels, in (0, 1].
    """
    if name == "published":
        return _published(ideal)
    if name == "robust":
        return _robust()
    if name == "last":
        return lambda epoch: True
    raise InputError(f"selection {name!r} is not known", allowed=", ".join(SELECTIONS))


def _published(ideal: float) -> Rule:
    best: list[Epoch] = []

    def better(now: Epoch) -> bool:
        if best:
            old = best[0]
            lower = now.val_loss < old.val_loss
            validates = old.val_accuracy < now.val_accuracy <= ideal
            trains = old.train_accuracy < now.train_accuracy <= 1.05 * ideal
            if not (lower and validates and trains):
                return False
        best[:] = [now]
        return True

    return better


def _robust() -> Rule:
    smoothed: list[Figures] = []
    best: list[Figures] = []

    def better(now: Epoch) -> bool:
        smoothed[:] = [smooth_figures(smoothed[0] if smoothed else None, now)]
        if best and smoothed[0] <= best[0]:
            return False
        best[:] = smoothed
        return True

    return better


def smooth_figures(before: Figures | None, epoch: Epoch) -> Figures:
    """Return the estimated accuracy and minus the validation loss, smoothed over the epochs so far. Single epochs win
    by luck: noisy labels make their estimates jump by more than models differ.

    Args:
        before: what this gave after the epoch before; None after the first.
    """
    current = (epoch.val_estimate, -epoch.val_loss)
    previous = current if before is None else before
    return (previous[0] + SMOOTHING * (current[0] - previous[0]), previous[1] + SMOOTHING * (current[1] - previous[1]))
