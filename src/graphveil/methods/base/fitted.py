"""What methods have in common after fitting, and in their files."""

from __future__ import annotations

from typing import ClassVar, Generic, Protocol, TypeVar

from graphveil.errors import InputError
from graphveil.graphs.value.schema import GraphSchema
from graphveil.methods.base.estimator import Estimator
from graphveil.methods.base.storage import Stored, require_numbers
from graphveil.runtime.late import Tensor


class Fitted(Protocol):
    @property
    def schema(self) -> GraphSchema: ...


F = TypeVar("F", bound=Fitted)


class FittedEstimator(Estimator, Generic[F]):
    """An estimator whose fit leaves one value; `fits` is the call that fits beside `fit`, or ""."""

    fits: ClassVar[str]
    _fitted: F | None = None

    @property
    def fitted(self) -> bool:
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
        return self.result.schema


def stored_probabilities(stored: Stored, classes: int) -> Tensor:
    """Return the probabilities [n, c] that were stored; refuses another shape, and numbers that are not finite.

    Args:
        stored: what a method is restored from. classes: c.
    """
    # A file of another shape would answer for other people by their row.
    probabilities = require_numbers("probabilities", stored.tensors["probabilities"])
    if probabilities.dim() != 2 or probabilities.shape[1] != classes:
        raise InputError(f"probabilities are {tuple(probabilities.shape)}", allowed=f"(nodes, {classes})")
    return probabilities
