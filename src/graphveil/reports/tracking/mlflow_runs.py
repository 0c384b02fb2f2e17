"""MLflow: one run of the experiment that its variables name, else "graphveil"."""

from __future__ import annotations

import os
import time
from typing import Any

from graphveil.reports.tracking.released import Released
from graphveil.runtime.late import quiet

_EXPERIMENT = "graphveil"
#: What MLflow takes in one call.
_AT_ONCE = 500
_LONGEST = 6_000


def write(released: Released, place: str | None) -> str:
    """Write one run; return the URI and the run's number.

    Args:
        place: a tracking URI; None: what MLFLOW_TRACKING_URI says.
    """
    # Before the first import: MLflow tells its makers of each use otherwise.
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    with quiet():
        from mlflow.entities import Metric, Param
        from mlflow.tracking import MlflowClient

        # The client and not `mlflow.start_run`, which adds user, script and git commit of this machine.
        client: Any = MlflowClient(tracking_uri=place)
        run = client.create_run(_experiment(client), run_name=released.title).info.run_id
        parameters = [Param(key, str(value)[:_LONGEST]) for key, value in released.facts.items()]
        client.log_batch(run, params=parameters)
        now = int(1000 * time.time())
        metrics = [Metric(key, value, now, 0) for key, value in released.figures.items()]
        metrics += [Metric(key, value, now, step) for step, row in released.points() for key, value in row.items()]
        for first in range(0, len(metrics), _AT_ONCE):
            client.log_batch(run, metrics=metrics[first : first + _AT_ONCE])
        client.set_terminated(run)
    return f"{client.tracking_uri}, run {run}"


def _experiment(client: Any) -> str:
    """The id of the experiment, which is created if it does not exist."""
    name = os.environ.get("MLFLOW_EXPERIMENT_NAME", _EXPERIMENT)
    experiment = client.get_experiment_by_name(name)
    return str(client.create_experiment(name) if experiment is None else experiment.experiment_id)
