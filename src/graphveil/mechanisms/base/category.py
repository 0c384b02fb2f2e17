"""What every mechanism for a class or category offers, as a type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from graphveil.mechanisms.base.values import FloatArray
from graphveil.mechanisms.labels.declared import Labels
from graphveil.mechanisms.labels.one_hot import OneHotLaw
from graphveil.privacy import Guarantee, Randomness

if TYPE_CHECKING:
    from torch import Tensor


@runtime_checkable
class CategoryMechanism(Protocol):
    """What randomizes one of `classes` classes; each mechanism has its own class of reports, here `Any`."""

    @property
    def epsilon(self) -> float:
        """The privacy budget of one report."""
        ...

    @property
    def classes(self) -> int:
        """How many classes there are."""
        ...

    @property
    def law(self) -> OneHotLaw:
        """How often a report names the true class, and another."""
        ...

    @property
    def report_bytes(self) -> float:
        """Bytes of one report."""
        ...

    @property
    def guarantee(self) -> Guarantee:
        """What one report protects."""
        ...

    def randomize(self, labels: Labels, *, randomness: Randomness) -> Any:
        """What the devices send of classes [n].

        Args:
            labels: integer classes [n].
        """
        ...

    def estimate(self, reports: Any) -> Tensor:
        """The unbiased estimate of the one-hot labels, float32 [n, c]."""
        ...

    def evidence(self, reports: Any) -> FloatArray:
        """log Pr[report | class] for every class, float64 [n, c]."""
        ...

    def log_likelihood(self, reports: Any, values: Labels) -> Tensor:
        """log Pr[report | label] for each row, float64 [n].

        Args:
            reports: n of them.
            values: integer classes [n], what each was made from.
        """
        ...

    def variance(self, values: Labels) -> Tensor:
        """The variance of the one-hot estimate, float64 [n, c]."""
        ...

    def every_report(self) -> Any:
        """Every report that a device can send, one a user; for audits of small mechanisms."""
        ...
