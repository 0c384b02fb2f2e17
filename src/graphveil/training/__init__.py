"""The training loops, their selection rules and the choice of thread count."""

from graphveil.training.calibration import Calibrated, train_calibrated
from graphveil.training.dp_sgd import PrivateDescent, PrivateSchedule, poisson_batch, train_privately
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
    "PrivateDescent",
    "PrivateSchedule",
    "Schedule",
    "Trained",
    "fastest_threads",
    "poisson_batch",
    "selection_rule",
    "train",
    "train_calibrated",
    "train_privately",
]
