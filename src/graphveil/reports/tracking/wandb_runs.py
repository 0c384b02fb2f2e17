"""Weights & Biases: one run, kept on this machine unless WANDB_MODE says otherwise."""

from __future__ import annotations

import os
from typing import Any

from graphveil.reports.tracking.released import Released

_PROJECT = "graphveil"


def write(released: Released, place: str | None) -> str:
    """Write one run; return its folder.

    Args:
        place: the folder in which `wandb/` is made; None: what WANDB_DIR says, else the working folder.
    """
    # Before the first import: faults of its own are reported to its makers otherwise.
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    import wandb

    # Nothing leaves the machine before a user has asked for it in W&B's own words; `wandb sync` sends it later.
    where: dict[str, Any] = {"mode": os.environ.get("WANDB_MODE", "offline")}
    if place is not None:
        where["root_dir"] = place
    settings = wandb.Settings(
        # The words of the command, the script, installed packages, git, screen and machine: all of it names paths.
        x_disable_meta=True,
        x_disable_machine_info=True,
        x_disable_stats=True,
        x_save_requirements=False,
        disable_code=True,
        disable_git=True,
        console="off",
        silent=True,
        **where,
    )
    project = os.environ.get("WANDB_PROJECT", _PROJECT)
    try:
        with wandb.init(project=project, name=released.title, config=dict(released.facts), settings=settings) as run:
            for step, row in released.points():
                run.log(dict(row) | {"epoch": step})
            run.summary.update(dict(released.figures))
            return str(run.dir)
    finally:
        # Its service is a process of its own, which would stay until this one ends.
        wandb.teardown()
