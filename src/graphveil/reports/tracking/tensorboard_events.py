"""TensorBoard: one folder of event files."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from graphveil.reports.tracking.released import Released

_FOLDER = "runs/tensorboard"


def write(released: Released, place: str | None) -> str:
    """Write one run; return its folder.

    Args:
        place: the folder of all runs, as `tensorboard --logdir` takes it; None: runs/tensorboard.
    """
    from torch.utils.tensorboard import SummaryWriter

    folder = Path(place or _FOLDER) / f"{released.title}-{datetime.now():%Y%m%d-%H%M%S-%f}"
    # `filename_suffix` stays as it is: the file's name holds that of the machine in any case, and no reader needs it.
    with SummaryWriter(log_dir=str(folder)) as writer:
        table = "\n".join(f"| {key} | {value} |" for key, value in released.facts.items())
        writer.add_text("run", f"| fact | value |\n| --- | --- |\n{table}")
        for key, value in released.figures.items():
            writer.add_scalar(key, value, 0)
        for step, row in released.points():
            for key, value in row.items():
                writer.add_scalar(key, value, step)
    return str(folder)
