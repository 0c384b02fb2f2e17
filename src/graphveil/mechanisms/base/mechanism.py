"""What every feature mechanism offers: the library builds one by name and uses it through this."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Generic, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse

from graphveil.mechanisms.base.domain import VectorDomain
from graphveil.mechanisms.base.reports import require_pairs
from graphveil.mechanisms.base.values import FloatArray, Rows, Values, blocks
from graphveil.privacy import Guarantee, Randomness
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor


#: Estimates less the middle of the range, [n, d]: dense float32, or compressed sparse rows.
Centred: TypeAlias = npt.NDArray[np.float32] | scipy.sparse.csr_matrix


class Reports(Protocol):
    """What users send, one row a user, that can be stored by name."""

    def __len__(self) -> int: ...

    def to_tensors(self) -> dict[str, Tensor]:
        """The tensors by name."""
        ...


R = TypeVar("R", bound=Reports)


class FeatureMechanism(ABC, Generic[R]):
    """A frozen value, built from public facts alone; R is the class of its reports.

    Fields of each mechanism, in the order that its users know: epsilon, the privacy budget of one report; dimension,
    the number of coordinates d; low and high, the declared, public range of every coordinate.
    """

    epsilon: float
    dimension: int
    low: float
    high: float

    @property
    def domain(self) -> VectorDomain:
        """The declared range of every coordinate."""
        return VectorDomain(self.dimension, self.low, self.high)

    @property
    def midpoint(self) -> float:
        """The middle of the range, which `centred` leaves out."""
        return self.domain.midpoint

    @property
    @abstractmethod
    def worst_variance(self) -> float:
        """The largest variance of one coordinate's estimate over all inputs, in the squared unit of the values."""

    @property
    @abstractmethod
    def report_bytes(self) -> float:
        """Bytes of one report, packed bit by bit."""

    @property
    def guarantee(self) -> Guarantee:
        """What one report protects."""
        return self.domain.guarantee(self.epsilon)

    def open(self, values: Values) -> Rows:
        """A reader for values [n, d] that can be reported, all of which were looked at; raises as `randomize`."""
        return self.domain.open(values)

    def randomize(self, values: Values, *, randomness: Randomness) -> R:
        """What the devices send of values [n, d]: the only place that touches private values.

        Args:
            values: dense or sparse rows, every entry in the declared range.
            randomness: the source of the noise.

        Raises:
            InputError: an entry is NaN, infinite or out of range (it is named), or memory does not suffice; before any
                draw.
        """
        return self._encode(self.open(values), randomness)

    @abstractmethod
    def centred(self, reports: R) -> Centred:
        """The unbiased estimate minus `midpoint`, float32 [n, d]."""

    def estimate(self, reports: R) -> Tensor:
        """The unbiased estimate of the values, dense float32 [n, d]; prefer `centred` where that is sparse."""
        return self.domain.uncentred(self.centred(reports))

    def log_likelihood(self, reports: R, values: Values) -> Tensor:
        """log Pr[report | value] for each row, float64 [n]; exact: it uses the sampler's own integers.

        Args:
            reports: n of them.
            values: [n, d], what each was made from.
        """
        self._check(reports)
        rows = self.open(values)
        require_pairs(len(reports), rows.shape[0])
        result = np.empty(rows.shape[0])
        for start, stop in self._blocks(rows):
            result[start:stop] = self._log_likelihood(reports, rows, start, stop)
        return torch.from_numpy(result)

    def variance(self, values: Values) -> Tensor:
        """The variance of the estimate of each coordinate, float64 [n, d]."""
        return torch.from_numpy(self.variances(values))

    @abstractmethod
    def variances(self, values: Values) -> FloatArray:
        """As `variance`, a NumPy array: no torch is needed to plan with it."""

    @abstractmethod
    def every_report(self) -> R:
        """Every report that a device can send, one a user; for audits. Raises InputError: more than a million."""

    @abstractmethod
    def _encode(self, rows: Rows, randomness: Randomness) -> R:
        """The reports of checked values."""

    @abstractmethod
    def _log_likelihood(self, reports: R, rows: Rows, start: int, stop: int) -> FloatArray:
        """`log_likelihood` of the rows start..stop, of reports that were checked."""

    @abstractmethod
    def _check(self, reports: R) -> None:
        """Refuse reports that no device can send."""

    def _blocks(self, rows: Rows) -> Iterable[tuple[int, int]]:
        """Consecutive (start, stop) of rows that are worked on at a time."""
        return blocks(*rows.shape)
