"""The trackers by name; each is one function around a library, which is imported on first use."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from graphveil.errors import WriteError
from graphveil.reports.tracking.released import Released
from graphveil.runtime.extras import require_packages
from graphveil.runtime.late import quiet

#: Writes released values to a destination in the library's own format (None: as its variables say); returns where.
Tracker: TypeAlias = Callable[[Released, str | None], str]

_NAME = "graphveil"
#: The most metrics that MLflow accepts in one call.
_MLFLOW_BATCH = 500
_MLFLOW_LONGEST = 6_000


def find_tracker(name: str) -> Tracker:
    """Return the tracker called `name`, one of `TRACKERS`; MissingExtraError where its library is not installed."""
    library, write = TRACKERS[name]
    # Checked here, before the training, and not in `send`, after it.
    require_packages(name, library, where=f"--track {name}")

    def send(released: Released, destination: str | None) -> str:
        try:
            return write(released, destination)
        except Exception as error:
            what = f"{name} refused ({type(error).__name__}: {error})"
            raise WriteError(what, where="--track", remedy="the run itself is saved") from error

    return send


def _to_mlflow(released: Released, destination: str | None) -> str:
    """Write a run of the experiment that MLflow's variables name, else "graphveil"; return the URI and its number."""
    # Before the first import: otherwise MLflow reports each use to its developers.
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    with quiet():
        from mlflow.entities import Metric, Param
        from mlflow.tracking import MlflowClient

        # Not `mlflow.start_run`, which adds user, script and git commit of this machine.
        client: Any = MlflowClient(tracking_uri=destination)
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", _NAME)
        experiment = client.get_experiment_by_name(name)
        experiment_id = client.create_experiment(name) if experiment is None else experiment.experiment_id
        run = client.create_run(str(experiment_id), run_name=released.title).info.run_id
        parameters = [Param(key, str(value)[:_MLFLOW_LONGEST]) for key, value in released.facts.items()]
        client.log_batch(run, params=parameters)
        now = int(1000 * time.time())
        metrics = [Metric(key, value, now, 0) for key, value in released.figures.items()]
        metrics += [Metric(key, value, now, step) for step, row in released.points() for key, value in row.items()]
        for first in range(0, len(metrics), _MLFLOW_BATCH):
            client.log_batch(run, metrics=metrics[first : first + _MLFLOW_BATCH])
        client.set_terminated(run)
    return f"{client.tracking_uri}, run {run}"


def _to_tensorboard(released: Released, destination: str | None) -> str:
    """Write a folder of event files into the folder for `tensorboard --logdir`; return it."""
    from torch.utils.tensorboard import SummaryWriter

    folder = Path(destination or "runs/tensorboard") / f"{released.title}-{datetime.now():%Y%m%d-%H%M%S-%f}"
    # The file's name holds that of the machine, whatever `filename_suffix` is.
    with SummaryWriter(log_dir=str(folder)) as writer:
        table = "\n".join(f"| {key} | {value} |" for key, value in released.facts.items())
        writer.add_text("run", f"| fact | value |\n| --- | --- |\n{table}")
        for key, value in released.figures.items():
            writer.add_scalar(key, value, 0)
        for step, row in released.points():
            for key, value in row.items():
                writer.add_scalar(key, value, step)
    return str(folder)


def _to_wandb(released: Released, destination: str | None) -> str:
    """Write a run into the folder that gets `wandb/`, on this machine unless WANDB_MODE says otherwise; return it."""
    # Before the first import: otherwise W&B reports its own errors to its developers.
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    import wandb

    # Nothing leaves the machine unless the user sets WANDB_MODE; `wandb sync` can send it later.
    where: dict[str, Any] = {"mode": os.environ.get("WANDB_MODE", "offline")}
    if destination is not None:
        where["root_dir"] = destination
    settings = wandb.Settings(
        # Command line, script, installed packages, git, screen and machine would reveal paths.
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
    project = os.environ.get("WANDB_PROJECT", _NAME)
    try:
        with wandb.init(project=project, name=released.title, config=dict(released.facts), settings=settings) as run:
            for step, row in released.points():
                run.log(dict(row) | {"epoch": step})
            run.summary.update(dict(released.figures))
            return str(run.dir)
    finally:
        # Otherwise its service process stays until this process ends.
        wandb.teardown()


#: Name of the tracker and of its extra -> the library, and its function.
TRACKERS: Mapping[str, tuple[str, Tracker]] = MappingProxyType(
    {"mlflow": ("mlflow", _to_mlflow), "tensorboard": ("tensorboard", _to_tensorboard), "wandb": ("wandb", _to_wandb)}
)
