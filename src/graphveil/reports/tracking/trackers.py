"""The trackers by name; each is one function around a library, which is loaded on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType
from typing import TypeAlias

from graphveil.errors import MissingExtraError, WriteError
from graphveil.reports.tracking.released import Released

#: Writes what was released, to a place in the library's own words (None: what its variables say); returns where.
Tracker: TypeAlias = Callable[[Released, str | None], str]

#: Name, which is that of the extra too -> the library, and the module here that calls it.
TRACKERS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "mlflow": ("mlflow", "mlflow_runs"),
        "tensorboard": ("tensorboard", "tensorboard_events"),
        "wandb": ("wandb", "wandb_runs"),
    }
)


def find_tracker(name: str) -> Tracker:
    """Return the tracker called `name`, one of `TRACKERS`. Raises MissingExtraError if its library is not installed."""
    library, module = TRACKERS[name]
    # Looked for and not imported: loading one takes seconds, and a training stands in between.
    if find_spec(library) is None:
        raise MissingExtraError(
            f"the package {library} is not installed",
            where=f"--track {name}",
            remedy=f"run: pip install 'graphveil[{name}]'",
        )

    def send(released: Released, place: str | None) -> str:
        write: Tracker = import_module(f"graphveil.reports.tracking.{module}").write
        try:
            return write(released, place)
        except Exception as error:
            what = f"{name} refused ({type(error).__name__}: {error})"
            raise WriteError(what, where="--track", remedy="the run itself is saved") from error

    return send
