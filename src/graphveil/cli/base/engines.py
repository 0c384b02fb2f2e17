"""The engine that processes a command's blocks of people: threads here, or a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from graphveil.cli.base.console import nearest
from graphveil.errors import InputError

if TYPE_CHECKING:
    from graphveil.cli.base.groups import EngineChoice
    from graphveil.engine import Engine
    from graphveil.methods.base.estimator import Estimator
    from graphveil.methods.base.method import Method

_NAMES = ("local", "ray")


def require_engine(engine_choice: EngineChoice, info: Method) -> None:
    """Refuse an engine that a run cannot use, before any data is loaded, with the errors of `require_engine_choice`.

    Args:
        engine_choice: what was typed; info: the method.
    """
    require_engine_choice(engine_choice)
    if _one_thread(engine_choice):
        # Every method can run in one thread: no class has to be loaded to allow it.
        return
    info.load_class().require_blocks()


def require_predicting(engine_choice: EngineChoice, model: Estimator) -> None:
    """Refuse an engine that a prediction cannot use, before the graph is loaded.

    Args:
        engine_choice: what was typed; model: the model that predicts.
    """
    if not _one_thread(engine_choice):
        model.require_predictions()


def require_engine_choice(engine_choice: EngineChoice) -> None:
    """Refuse an engine that no command can open: InputError for its options, MissingExtraError without Ray."""
    if engine_choice.engine not in _NAMES:
        raise InputError(
            f"{engine_choice.engine!r}",
            where="--engine",
            allowed=", ".join(_NAMES),
            remedy=nearest(engine_choice.engine, _NAMES),
        )
    if engine_choice.engine == "local" and engine_choice.engine_address is not None:
        raise InputError("nothing is joined by the local engine", where="--engine-address", remedy="use --engine ray")
    if engine_choice.engine_address is not None and engine_choice.workers is not None:
        raise InputError("a running cluster has its own processors", where="--workers", remedy="leave it out")
    if engine_choice.engine == "ray":
        from graphveil.engine.on_ray import require_ray

        require_ray()


def _one_thread(engine_choice: EngineChoice) -> bool:
    return engine_choice.engine == "local" and engine_choice.workers in (None, 1)


@contextmanager
def opened(engine_choice: EngineChoice) -> Iterator[Engine]:
    """The chosen engine, open while the block runs. Raises InputError: no cluster answers."""
    from graphveil.engine import LocalEngine, RayEngine

    if engine_choice.engine == "local":
        yield LocalEngine(engine_choice.workers or 1)
        return
    engine = RayEngine(engine_choice.engine_address, engine_choice.workers)
    try:
        yield engine
    finally:
        # Also after an error or an interrupt: data put into a cluster must not outlive the run.
        engine.close()
