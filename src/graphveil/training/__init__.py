"""The training loops, their selection rules and the choice of thread count."""

from graphveil.training.calibration import Calibrated, train_calibrated
from graphveil.training.edge_weights import Calibration
from graphveil.training.loop import Objective, Schedule, Trained, train
from graphveil.training.selection import SELECTIONS, Epoch, selection_rule
from graphveil.training.threads import fastest_threads

__all__ = [
    "SELECTIONS",
    "Calibrated",
    "Calibration",
    "Epoch",
    "Objective",
    "Schedule",
    "Trained",
    "fastest_threads",
    "selection_rule",
    "train",
    "train_calibrated",
]
