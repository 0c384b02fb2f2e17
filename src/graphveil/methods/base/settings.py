"""How a network is trained, where that cannot touch a guarantee; checked without torch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypedDict

from graphveil.errors import InputError
from graphveil.models.names import BACKBONES
from graphveil.training.selection import SELECTIONS

SCALINGS = ("standard", "published")
LOSSES = ("drop", "cross-entropy")


@dataclass(frozen=True)
class NetworkSettings:
    """Everything about training that cannot touch the guarantee.

    Attributes:
        steps_x, steps_y: hops K of feature and of label propagation.
        scaling: "standard" shifts and scales the propagated features; "published" leaves the rectifier's output as is.
        selection: which epoch is kept, see `training.selection`.
        loss: "drop" learns from noisy labels through their channel; "cross-entropy" takes them for true ones.
        hidden, dropout, learning_rate, weight_decay, epochs: as usual; optimiser Adam.
        patience: training stops after so many epochs of which none was the best so far; 0: never, as published.
        seed: fixes initial weights and dropout, never privacy noise. device: "cpu" or "cuda".

    Raises:
        InputError: for a value outside its range.
    """

    model: str = "sage"
    steps_x: int = 8
    steps_y: int = 4
    scaling: str = "standard"
    selection: str = "robust"
    hidden: int = 16
    dropout: float = 0.5
    learning_rate: float = 0.01
    weight_decay: float = 0.001
    epochs: int = 500
    seed: int = 0
    device: str = "cpu"
    loss: str = "drop"
    patience: int = 50

    def __post_init__(self) -> None:
        for name, allowed in (("model", BACKBONES), ("scaling", SCALINGS), ("selection", SELECTIONS), ("loss", LOSSES)):
            if getattr(self, name) not in allowed:
                raise InputError(f"{name} = {getattr(self, name)!r}", allowed=", ".join(allowed))
        for name, low, high in (
            ("steps_x", 0, 64),
            ("steps_y", 0, 64),
            ("hidden", 1, 4096),
            ("epochs", 1, 10**6),
            ("patience", 0, 10**6),
            ("seed", 0, 2**63 - 1),
        ):
            # True is an int in Python, and would pass as one epoch.
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                raise InputError(f"{name} = {value!r}", allowed=f"a whole number in {low}..{high}")
        rate, decay = number_or_nan(self.learning_rate), number_or_nan(self.weight_decay)
        if not 0 <= number_or_nan(self.dropout) < 1:
            raise InputError(f"dropout = {self.dropout!r}", allowed="a number in [0, 1)")
        if not 0 < rate < math.inf:
            raise InputError(f"learning_rate = {self.learning_rate!r}", allowed="a finite number above 0")
        if not 0 <= decay < math.inf:
            raise InputError(f"weight_decay = {self.weight_decay!r}", allowed="a finite number of at least 0")
        if self.loss != "drop" and self.steps_y:
            raise InputError(f"loss {self.loss} over {self.steps_y} hops of labels", allowed="steps_y = 0")
        require_device(self.device)


class TrainingOptions(TypedDict, total=False):
    """Keywords of every network's training."""

    scaling: str
    selection: str
    hidden: int
    dropout: float
    learning_rate: float
    weight_decay: float
    epochs: int
    seed: int
    device: str
    loss: str
    patience: int


class NetworkOptions(TrainingOptions, total=False):
    """`NetworkSettings` as keywords; hops may be None, which leaves them to budgets and reports."""

    model: str
    steps_x: int | None
    steps_y: int | None


class ReleasedOptions(TrainingOptions, total=False):
    """Keywords of the network that is trained on a release, which smooths no labels."""

    model: str
    steps_x: int | None


class PooledReleasedOptions(ReleasedOptions, total=False):
    """The same, and whether the network is pooled with what is public."""

    pooling: str


def number_or_nan(value: object) -> float:
    """Return a number, or NaN, which no range holds, for anything else."""
    return math.nan if isinstance(value, bool) or not isinstance(value, int | float) else float(value)


def require_device(device: str) -> None:
    """Refuse a device that torch does not find, with InputError."""
    if device == "cpu":
        return
    import torch

    if not (device.startswith("cuda") and torch.cuda.is_available()):
        raise InputError(f"device {device!r} is not available", allowed="cpu, or cuda where torch finds a GPU")
