"""The training loop, its selection rules and the choice of thread count."""

from graphveil.training.loop import Objective, Schedule, Trained, train
from graphveil.training.selection import SELECTIONS, Epoch, selection_rule
from graphveil.training.threads import fastest_threads

__all__ = [
    "SELECTIONS",
    "Epoch",
    "Objective",
    "Schedule",
    "Trained",
    "fastest_threads",
    "selection_rule",
    "train",
]
