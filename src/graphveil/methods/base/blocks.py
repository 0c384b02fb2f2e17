"""Which parts of a method work on blocks of rows, and so on an engine; nothing that comes out depends on the engine."""

from __future__ import annotations

from typing import ClassVar, Protocol

from graphveil.errors import InputError


class Blocks(Protocol):
    """A method, as far as its engine is concerned.

    Attributes:
        by_blocks, trains_by_blocks, predicts_by_blocks: whether `collect`, whether `train`, and whether
            `probabilities` (for people outside the collection) takes an `engine`.
    """

    by_blocks: ClassVar[bool]
    trains_by_blocks: ClassVar[bool]
    predicts_by_blocks: ClassVar[bool]

    @property
    def name(self) -> str: ...


def require_blocks(method: Blocks | type[Blocks], name: str) -> None:
    """Refuse a method of which no engine can work on anything yet.

    Args:
        method: the method or its class. name: what it is called.
    """
    # An engine that is named and then left aside would have a user wait for a cluster that does nothing.
    if not (method.by_blocks or method.trains_by_blocks):
        raise not_by_blocks(name)


def require_predictions(method: Blocks) -> None:
    """Refuse a method in whose predictions no engine can work on anything."""
    if not method.predicts_by_blocks:
        raise not_by_blocks(method.name, "predict by blocks")


def not_by_blocks(name: str, work: str = "work by blocks yet") -> InputError:
    """Return the refusal of an engine.

    Args:
        name: of the method. work: what it does not do.
    """
    return InputError(f"{name} does not {work}", where="engine", allowed="the local engine with one worker")
