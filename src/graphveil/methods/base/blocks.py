"""Which parts of a method work on blocks of rows, and so on an engine."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from graphveil.engine import LOCAL, Engine
from graphveil.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor


class Blocks(Protocol):
    """A method, as far as its engine is concerned.

    Attributes:
        by_blocks: whether `collect` takes an `engine`: its reading of raw data is work on blocks of rows.
        trains_by_blocks: whether `train` takes one: its work on what was collected is.
        predicts_by_blocks: whether `probabilities` takes one: its work for people outside the collection is.
    """

    by_blocks: ClassVar[bool]
    trains_by_blocks: ClassVar[bool]
    predicts_by_blocks: ClassVar[bool]

    @property
    def name(self) -> str: ...
    @property
    def collect(self) -> Callable[..., Any]: ...
    @property
    def train(self) -> Callable[..., None]: ...
    @property
    def probabilities(self) -> Callable[..., Tensor]: ...


def require_blocks(method: Blocks | type[Blocks], name: str) -> None:
    """Refuse a method of which no engine can work on anything yet.

    Args:
        method: the method or its class.
        name: what it is called.

    Raises:
        InputError: it is one.
    """
    # An engine that is named and then left aside would have a user wait for a cluster that does nothing.
    if not (method.by_blocks or method.trains_by_blocks):
        raise not_by_blocks(name)


def not_by_blocks(name: str) -> InputError:
    """Return the refusal of an engine by the method of this name."""
    allowed = "the local engine with one worker"
    return InputError(f"{name} does not work by blocks yet", where="engine", allowed=allowed)


def collecting(method: Blocks, engine: Engine) -> Callable[..., Any]:
    """Return a method's `collect` on an engine.

    Args:
        method: any.
        engine: where blocks are worked on; nothing that is collected depends on it.

    Raises:
        InputError: another engine than `LOCAL`, for a method that does not work by blocks.
    """
    if engine != LOCAL:
        require_blocks(method, method.name)
    return partial(method.collect, engine=engine) if method.by_blocks else method.collect


def training(method: Blocks, engine: Engine) -> Callable[..., None]:
    """Return a method's `train` on an engine, where any of it is work on blocks.

    Args:
        method: any.
        engine: where blocks are worked on; no result depends on it.
    """
    return partial(method.train, engine=engine) if method.trains_by_blocks else method.train


def predicting(method: Blocks, engine: Engine) -> Callable[..., Tensor]:
    """Return a method's `probabilities` on an engine.

    Args:
        method: any.
        engine: where blocks are worked on; no prediction depends on it.

    Raises:
        InputError: another engine than `LOCAL`, for a method that predicts from what its training left.
    """
    if engine == LOCAL:
        return method.probabilities
    require_predictions(method)
    return partial(method.probabilities, engine=engine)


def require_predictions(method: Blocks) -> None:
    """Refuse a method in whose predictions no engine can work on anything.

    Raises:
        InputError: it is one.
    """
    if not method.predicts_by_blocks:
        allowed = "the local engine with one worker"
        raise InputError(f"{method.name} does not predict by blocks", where="engine", allowed=allowed)
