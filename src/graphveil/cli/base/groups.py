"""Option groups: frozen dataclasses of options that several commands share, each taken as one parameter.

A new shared option is one field here, declared in `options`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from graphveil.cli.base import options
from graphveil.errors import InputError
from graphveil.runtime.words import nearest

if TYPE_CHECKING:
    from graphveil.engine import Engine
    from graphveil.methods.base.estimator import Estimator
    from graphveil.methods.base.method import Method


@dataclass(frozen=True)
class Source:
    """Where the graph comes from, and which share of its edges an experiment treats as private."""

    data_root: options.DataRoot = None
    private_share: options.PrivateShare = None


@dataclass(frozen=True)
class Export:
    """What an exported collection does not contain."""

    edges: options.Edges = None
    keep_suspects: options.KeepSuspects = False


@dataclass(frozen=True)
class Epsilons:
    epsilon_x: options.EpsilonX = None
    epsilon_y: options.EpsilonY = None
    epsilon_a: options.EpsilonA = None
    epsilon: options.Epsilon = None


@dataclass(frozen=True)
class EpsilonLists:
    """The budgets of a comparison: each a list of values."""

    epsilon_x: options.Epsilons = None
    epsilon_y: options.Epsilons = None
    epsilon_a: options.Epsilons = None
    epsilon: options.Epsilons = None


@dataclass(frozen=True)
class MethodSettings:
    """The settings of a method beside its budgets."""

    delta: options.Delta = None
    unit: options.Unit = None
    model: options.Model = None
    epochs: options.Epochs = None
    settings: options.Settings = None


@dataclass(frozen=True)
class Repetition:
    """How often a run is repeated, on which nodes, and with which controls and noise."""

    seed: options.Seed = 0
    repeats: options.Repeats = 1
    split: options.SplitKind = "random"
    no_controls: options.NoControls = False
    reproducible_noise: options.NoiseSeed = None


@dataclass(frozen=True)
class Speed:
    """Where and how fast to compute; never changes what is protected."""

    device: options.Device = "cpu"
    threads: options.Threads = None


@dataclass(frozen=True)
class EngineChoice:
    """Where blocks of people are processed; neither results nor guarantees depend on it."""

    engine: options.EngineName = "local"
    engine_address: options.EngineAddress = None
    workers: options.Workers = None


def spread(**defaults: object) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that shows Typer each field of option groups as an option; `defaults` differ from the
    groups'.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        groups: dict[str, Any] = {}
        parameters: list[inspect.Parameter] = []
        hints = get_type_hints(command, include_extras=True)
        for name, parameter in inspect.signature(command).parameters.items():
            if is_dataclass(hints[name]):
                groups[name] = hints[name]
                parameters += _options_of(hints[name], defaults)
            else:
                parameters.append(parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY))

        @functools.wraps(command)
        def flat_command(**values: object) -> None:
            grouped = {
                name: group(**{field.name: values.pop(field.name) for field in fields(group)})
                for name, group in groups.items()
            }
            command(**values, **grouped)

        # Typer reads options from the signature and the annotations, so both must show the flat list.
        flat_command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        flat_command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return flat_command

    return decorate


def _options_of(group: Any, defaults: Mapping[str, object]) -> list[inspect.Parameter]:
    hints = get_type_hints(group, localns={"Path": Path}, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=defaults.get(field.name, field.default),
            annotation=hints[field.name],
        )
        for field in fields(group)
    ]


_ENGINES = ("local", "ray")


def require_engine(engine_choice: EngineChoice, info: Method) -> None:
    """Refuse an engine that a run cannot use, before any data is loaded, with the errors of `require_engine_choice`."""
    require_engine_choice(engine_choice)
    if _one_thread(engine_choice):
        # Every method can run in one thread: no class has to be loaded to allow it.
        return
    info.load_class().require_block_fitting()


def require_predicting(engine_choice: EngineChoice, model: Estimator) -> None:
    """Refuse an engine that a prediction cannot use, before the graph is loaded."""
    if not _one_thread(engine_choice):
        model.require_block_prediction()


def require_engine_choice(engine_choice: EngineChoice) -> None:
    """Refuse an engine that no command can open: InputError for its options, MissingExtraError without Ray."""
    if engine_choice.engine not in _ENGINES:
        raise InputError(
            f"{engine_choice.engine!r}",
            where="--engine",
            allowed=", ".join(_ENGINES),
            remedy=nearest(engine_choice.engine, _ENGINES),
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
def open_engine(engine_choice: EngineChoice) -> Iterator[Engine]:
    """The chosen engine, open while the block runs; InputError where no cluster answers."""
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
