"""A mechanism whose reports name some of the classes: it says which, and how often, and the rest follows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sized
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from graphveil.mechanisms.base.guarantees import label_guarantee
from graphveil.mechanisms.base.reports import require_pairs
from graphveil.mechanisms.base.values import FloatArray
from graphveil.mechanisms.labels.declared import Labels, open_labels
from graphveil.mechanisms.labels.one_hot import OneHotLaw
from graphveil.privacy import Guarantee
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor

Reports = TypeVar("Reports", bound=Sized)


class NamingMechanism(ABC, Generic[Reports]):
    """What subset selection and unary encoding have in common: all but the sampler and its reports."""

    epsilon: float
    classes: int

    @property
    @abstractmethod
    def law(self) -> OneHotLaw:
        """How often a report names the true class, and another."""

    @abstractmethod
    def named(self, reports: Reports) -> npt.NDArray[np.bool_]:
        """Which classes each report names, [n, c]."""

    @abstractmethod
    def evidence(self, reports: Reports) -> FloatArray:
        """log Pr[report | class] for every class, float64 [n, c]; exact: it uses the sampler's own integers."""

    @property
    def guarantee(self) -> Guarantee:
        """What one report protects."""
        return label_guarantee(self.epsilon, self.classes)

    def estimate(self, reports: Reports) -> Tensor:
        """The unbiased estimate of the one-hot labels, float32 [n, c]."""
        return torch.from_numpy(self.law.estimate(self.named(reports)))

    def log_likelihood(self, reports: Reports, values: Labels) -> Tensor:
        """log Pr[report | label] for each row, float64 [n].

        Args:
            reports: n of them.
            values: integer classes [n], what each was made from.
        """
        true = open_labels(values, self.classes)
        require_pairs(len(reports), len(true))
        return torch.from_numpy(self.evidence(reports)[np.arange(len(true)), true])

    def variance(self, values: Labels) -> Tensor:
        """The variance of the one-hot estimate, float64 [n, c]."""
        return torch.from_numpy(self.law.variances(open_labels(values, self.classes)))
