"""What a method is on the inside: its privacy, the half that reads raw data, and the half that trains on the result.

    collect         pay, then read raw data through mechanisms      the one place of the method that does
    train           post-processing of what was collected
    probabilities   answer about the people of the collection, or about other ones

The surface that users see is one for all of them, `methods.base.estimator.Estimator`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeVar

from graphveil.engine import LOCAL, Engine
from graphveil.errors import InputError
from graphveil.graphs import Split
from graphveil.graphs.value.protocol import Graph
from graphveil.graphs.value.schema import GraphSchema
from graphveil.methods.base.people.account import Account
from graphveil.methods.base.storage import require_numbers
from graphveil.privacy import Guarantee, Randomness
from graphveil.runtime.progress import ProgressCallback
from graphveil.training import Epoch

if TYPE_CHECKING:
    from torch import Tensor


Collected = TypeVar("Collected")


@dataclass(frozen=True)
class Stored:
    """What a core is restored from: JSON facts, and tensors by name."""

    facts: Mapping[str, Any]
    tensors: Mapping[str, Tensor]


class Core(Protocol[Collected]):
    """A method without its surface.

    Attributes:
        account: what was paid so far, and what for.
        by_blocks: whether `collect` takes an `engine`: its reading of raw data is work on blocks of rows.
        trains_by_blocks: whether `train` takes one: its work on what was collected is.
        predicts_by_blocks: whether `probabilities` takes one: its work for people outside the collection is.
    """

    account: Account
    by_blocks: ClassVar[bool]
    trains_by_blocks: ClassVar[bool]
    predicts_by_blocks: ClassVar[bool]

    @property
    def kind(self) -> str:
        """The name under which the method is saved."""

    @property
    def name(self) -> str:
        """The name that users type for this core with its settings."""

    @property
    def seed(self) -> int:
        """What fixes the default split and initial weights, never privacy noise."""

    @property
    def fitted(self) -> bool:
        """Whether there is anything to predict with."""

    @property
    def schema(self) -> GraphSchema:
        """The public facts of the collection; raises InputError before fitting."""

    @property
    def several(self) -> bool:
        """Whether a node has several labels."""

    @property
    def guarantee(self) -> Guarantee:
        """What all that was collected so far protects; raises InputError before fitting."""

    @property
    def epsilon_relationship(self) -> float | None:
        """What one relationship costs; None where links are not what is protected."""

    @property
    def history(self) -> tuple[Epoch, ...]:
        """Every epoch's figures, of released values alone."""

    @property
    def says_who(self) -> tuple[str, ...]:
        """What may be said of the people of a graph to predict: "people", "reports", or nothing."""

    def parameters(self) -> dict[str, Any]:
        """Return the settings that build the core once more, by name."""

    def collect(
        self, graph: Graph, *, split: Split, randomness: Randomness, progress: ProgressCallback | None = None
    ) -> Collected:
        """Pay for what people send or the curator reads, read it, and return what came through the mechanisms."""

    def train(
        self, collected: Collected, *, randomness: Randomness | None = None, progress: ProgressCallback | None = None
    ) -> None:
        """Train on what was collected; most may do so again and again at no privacy cost."""

    @property
    def probabilities(self) -> Callable[..., Tensor]:
        """Takes (graph=None, *, randomness=None) and what `says_who` names; returns class probabilities [n, c]."""

    def stored(self) -> Stored:
        """Return what a saved file holds: no reports, no raw data."""

    @classmethod
    def restore(cls, stored: Stored) -> Self:
        """Return the core of a saved file; raises KeyError, TypeError or ValueError for anything else."""

    def keep(self, model: Path) -> None:
        """Write what is kept of people beside a saved model, for its owner alone; most keep nothing."""

    def recall(self, model: Path) -> None:
        """Read what was kept beside a saved model; nothing where the model alone was handed on."""


class Fitted(Protocol):
    """What fitting leaves of a collection."""

    @property
    def schema(self) -> GraphSchema:
        """The public facts of the collection."""


F = TypeVar("F", bound=Fitted)


class NamedCore:
    """Knows what users call it."""

    @property
    def name(self) -> str:
        """The name that users type for this core with its settings."""
        # Late and by its name: the registry of all methods stands above each of them.
        return str(import_module("graphveil.methods.registry").name_of(self))


class FittedCore(NamedCore, Generic[F]):
    """What all cores say of what fitting left.

    Attributes:
        fits: the call that fits, beside `fit`; "" where there is no other.
    """

    fits: ClassVar[str]
    by_blocks: ClassVar[bool] = False
    trains_by_blocks: ClassVar[bool] = False
    predicts_by_blocks: ClassVar[bool] = False
    _fitted: F | None = None

    @property
    def own_rows(self) -> bool:
        """Whether each row of the predictions is for that node's eyes alone."""
        return False

    @property
    def fitted(self) -> bool:
        """Whether there is anything to predict with."""
        return self._fitted is not None

    @property
    def result(self) -> F:
        """What fitting left; raises InputError before."""
        if self._fitted is None:
            calls = f"fit or {self.fits}" if self.fits else "fit"
            raise InputError(f"this {self.name} has not been fitted", remedy=f"call {calls} first")
        return self._fitted

    @property
    def schema(self) -> GraphSchema:
        """The public facts of what was collected."""
        return self.result.schema


class ForgetsPeople:
    """What files a core has that keeps nothing of people beside its model: nobody is asked again."""

    def keep(self, model: Path) -> None:
        """Write nothing."""

    def recall(self, model: Path) -> None:
        """Read nothing."""


def require_blocks(core: type[Core[Any]], name: str) -> None:
    """Refuse a method of which no engine can work on anything yet.

    Args:
        core: of the method.
        name: of the method.

    Raises:
        InputError: it is one.
    """
    # An engine that is named and then left aside would have a user wait for a cluster that does nothing.
    if not (core.by_blocks or core.trains_by_blocks):
        raise not_by_blocks(name)


def not_by_blocks(name: str) -> InputError:
    """Return the refusal of an engine by the method of this name."""
    allowed = "the local engine with one worker"
    return InputError(f"{name} does not work by blocks yet", where="engine", allowed=allowed)


def collecting(core: Core[Collected], engine: Engine) -> Callable[..., Collected]:
    """Return a core's `collect` on an engine.

    Args:
        core: of any method.
        engine: where blocks are worked on; nothing that is collected depends on it.

    Raises:
        InputError: another engine than `LOCAL`, for a method that does not work by blocks.
    """
    if engine != LOCAL:
        require_blocks(type(core), core.name)
    collect: Callable[..., Collected] = core.collect
    return partial(collect, engine=engine) if core.by_blocks else collect


def training(core: Core[Collected], engine: Engine) -> Callable[..., None]:
    """Return a core's `train` on an engine, where any of it is work on blocks.

    Args:
        core: of any method.
        engine: where blocks are worked on; nothing that is trained depends on it.
    """
    train: Callable[..., None] = core.train
    return partial(train, engine=engine) if core.trains_by_blocks else train


def predicting(core: Core[Any], engine: Engine) -> Callable[..., Tensor]:
    """Return a core's `probabilities` on an engine.

    Args:
        core: of any method.
        engine: where blocks are worked on; no answer depends on it.

    Raises:
        InputError: another engine than `LOCAL`, for a method that answers from what its training left.
    """
    if engine == LOCAL:
        return core.probabilities
    require_predictions(core)
    return partial(core.probabilities, engine=engine)


def require_predictions(core: Core[Any]) -> None:
    """Refuse a method in whose predictions no engine can work on anything.

    Args:
        core: of any method.

    Raises:
        InputError: it is one.
    """
    if not core.predicts_by_blocks:
        raise InputError(
            f"{core.name} does not predict by blocks", where="engine", allowed="the local engine with one worker"
        )


def signature_of(core: Callable[..., object]) -> inspect.Signature:
    """Return how a core is built, with the fields of its `settings_type` in the place of `**settings`.

    Settings that are `derived` from others where nobody gives them have the default None.

    Args:
        core: a class of cores.
    """
    plain = inspect.signature(core)
    spelt: list[inspect.Parameter] = []
    for one in plain.parameters.values():
        if one.kind is inspect.Parameter.VAR_KEYWORD:
            derived, left_out = getattr(core, "derived", ()), getattr(core, "left_out", ())
            for field in fields(core.settings_type):  # type: ignore[attr-defined]
                if field.name in left_out:
                    continue
                default = None if field.name in derived else field.default
                spelt.append(inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default))
        else:
            spelt.append(one)
    return plain.replace(parameters=spelt)


def stored_probabilities(stored: Stored, classes: int) -> Tensor:
    """Return the probabilities [n, c] that were stored.

    Args:
        stored: what a core is restored from.
        classes: c.

    Raises:
        InputError: they are of another shape, or no finite numbers.
    """
    # A file of another shape would answer for other people by their row.
    probabilities = require_numbers("probabilities", stored.tensors["probabilities"])
    if probabilities.dim() != 2 or probabilities.shape[1] != classes:
        raise InputError(f"probabilities are {tuple(probabilities.shape)}", allowed=f"(nodes, {classes})")
    return probabilities
