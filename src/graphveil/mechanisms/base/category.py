"""What every mechanism for a class or category offers: its reports name some of the classes.

Let a report name the true class with probability `keep` and any other with probability `flip`. Then
(named - flip) / (keep - flip) is an unbiased estimate of the one-hot class, of variance a (1 - a) / (keep - flip)^2
in each coordinate, a = keep or flip.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sized
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from graphveil.errors import InputError
from graphveil.mechanisms.base import _validate
from graphveil.mechanisms.base.guarantees import label_guarantee
from graphveil.mechanisms.base.reports import require_pairs
from graphveil.mechanisms.base.values import FloatArray
from graphveil.privacy import Guarantee, Randomness, require_randomness
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor


Labels: TypeAlias = "torch.Tensor | npt.NDArray[Any]"
Reports = TypeVar("Reports", bound=Sized)

# Below this difference the rounding of probabilities to words of 64 bits would show in estimates.
_SMALLEST_LEAN = 2.0**-44
#: The most classes of reports that name several of them.
MOST_CLASSES = 4096


@dataclass(frozen=True)
class OneHotLaw:
    """The probability that a report names the true class (`keep`), and any given other class (`flip`)."""

    classes: int
    keep: float
    flip: float

    @property
    def lean(self) -> float:
        """How much more often the true class is named than another class."""
        return self.keep - self.flip

    @property
    def total_variance(self) -> float:
        """The variances of all coordinates of the estimate together; the same whatever the true class is."""
        # A law without information has no estimate, and must never be chosen as the least noisy.
        if self.lean <= 0:
            return math.inf
        other = (self.classes - 1) * self.flip * (1 - self.flip)
        return (self.keep * (1 - self.keep) + other) / self.lean**2

    def refuse_no_information(self, epsilon: float) -> None:
        """Raise InputError, naming `epsilon`, where the two probabilities are too close to be told apart."""
        if self.lean < _SMALLEST_LEAN:
            raise InputError(f"epsilon {rounded_up(epsilon)} is too small for {self.classes} classes")

    def estimate(self, named: npt.NDArray[np.bool_]) -> npt.NDArray[np.float32]:
        """The unbiased estimate of the one-hot classes, float32 [n, c], from the classes that reports name [n, c]."""
        return ((named - self.flip) / self.lean).astype(np.float32)

    def variances(self, true: npt.NDArray[np.int64]) -> FloatArray:
        """The variance of the estimate of classes [n], float64 [n, c]."""
        own = true[:, None] == np.arange(self.classes)
        chance = np.where(own, self.keep, self.flip)
        spread: FloatArray = chance * (1 - chance) / self.lean**2
        return spread


class CategoryMechanism(ABC, Generic[Reports]):
    """Randomizes one of `classes` classes at `epsilon` a report; subclasses give the sampler and the reports."""

    epsilon: float
    classes: int

    @property
    @abstractmethod
    def law(self) -> OneHotLaw:
        """With which probabilities a report names the true class and each other class."""

    @property
    @abstractmethod
    def report_bytes(self) -> float:
        """Bytes of one report, packed bit by bit."""

    @property
    def guarantee(self) -> Guarantee:
        """What one report protects."""
        return label_guarantee(self.epsilon, self.classes)

    def randomize(self, labels: Labels, *, randomness: Randomness) -> Reports:
        """What the devices send. Raises InputError where a label is not a declared class (the row is named), before any
        is encoded.

        Args:
            labels: integer classes [n], each in 0..classes-1.
        """
        require_randomness(randomness)
        return self._encode(open_labels(labels, self.classes), randomness)

    @abstractmethod
    def named(self, reports: Reports) -> npt.NDArray[np.bool_]:
        """Which classes each report names, [n, c]."""

    @abstractmethod
    def evidence(self, reports: Reports) -> FloatArray:
        """log Pr[report | class] for every class, float64 [n, c]; exact: it uses the sampler's own integers."""

    @abstractmethod
    def every_report(self) -> Reports:
        """Every report that a device can send, one a user; for audits. Raises InputError for more than a million."""

    def estimate(self, reports: Reports) -> Tensor:
        """The unbiased estimate of the one-hot labels, float32 [n, c]."""
        return torch.from_numpy(self.law.estimate(self.named(reports)))

    def log_likelihood(self, reports: Reports, values: Labels) -> Tensor:
        """log Pr[report | label] for each row, float64 [n].

        Args:
            values: integer classes [n], what each was made from.
        """
        true = open_labels(values, self.classes)
        require_pairs(len(reports), len(true))
        return torch.from_numpy(self.evidence(reports)[np.arange(len(true)), true])

    def variance(self, values: Labels) -> Tensor:
        """The variance of the one-hot estimate, float64 [n, c]."""
        return torch.from_numpy(self.law.variances(open_labels(values, self.classes)))

    @abstractmethod
    def _encode(self, true: npt.NDArray[np.int64], randomness: Randomness) -> Reports:
        """The reports of checked classes [n]."""


def open_labels(labels: Labels, classes: int) -> npt.NDArray[np.int64]:
    """The labels as a checked integer array. Raises InputError where a label is not a declared class (the row is
    named).

    Args:
        labels: integer classes [n].
    """
    array = _validate.integer_array(labels, "labels are", "integers, one for each user")
    # All labels are checked before the first draw. A refusal names the row and not the class, which is private.
    outside = np.flatnonzero((array < 0) | (array >= classes))
    if outside.size:
        raise InputError(
            "the label is not a declared class",
            where=f"labels, row {int(outside[0])}",
            allowed=f"0 to {classes - 1}",
            remedy="declare the class, or leave users without a label out",
        )
    return array.astype(np.int64)
