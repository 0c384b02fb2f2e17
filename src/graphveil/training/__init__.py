"""The training loops, their selection rules and the choice of thread count."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphveil.runtime.late import late_names, lazy_names

if TYPE_CHECKING:
    from graphveil.training.calibration import Calibration as Calibration
    from graphveil.training.calibration import train_calibrated as train_calibrated
    from graphveil.training.dp_sgd import PrivateDescent as PrivateDescent
    from graphveil.training.dp_sgd import train_privately as train_privately
    from graphveil.training.loop import Objective as Objective
    from graphveil.training.loop import Schedule as Schedule
    from graphveil.training.loop import Trained as Trained
    from graphveil.training.loop import train as train
    from graphveil.training.noisy_updates import PrivateSchedule as PrivateSchedule
    from graphveil.training.selection import Epoch as Epoch
    from graphveil.training.threads import fastest_threads as fastest_threads

_HOMES = late_names(__name__, __file__)

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
