"""The base of feature mechanisms, and their domain: vectors of d numbers in a declared, public range."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from graphveil.mechanisms.base import _validate
from graphveil.mechanisms.base.guarantees import feature_guarantee
from graphveil.mechanisms.base.reports import require_pairs
from graphveil.mechanisms.base.values import FloatArray, Rows, Values, blocks, open_rows, open_values
from graphveil.privacy import Guarantee, Randomness, require_randomness
from graphveil.runtime.checks import require_whole
from graphveil.runtime.late import sparse, torch

if TYPE_CHECKING:
    from torch import Tensor

#: 2^64, the number of outcomes of one random word.
WORDS = 2.0**64


@dataclass(frozen=True)
class VectorDomain:
    """Vectors of `dimension` numbers in [low, high].

    Args:
        low, high: the declared, public range of every coordinate; never read off the data.
    """

    dimension: int
    low: float
    high: float

    def __post_init__(self) -> None:
        require_whole(1, _validate.LARGEST_COUNT, dimension=self.dimension)
        _validate.require_range(low=self.low, high=self.high)

    @property
    def width(self) -> float:
        return self.high - self.low

    @property
    def midpoint(self) -> float:
        """The middle of the range, which centred estimates leave out."""
        return self.low + self.width / 2  # (low + high) / 2 could overflow

    def open(self, values: Values) -> Rows:
        """A reader of values [n, d], after a check that all of them lie in the range. Raises InputError for another
        kind or shape of values, or an entry that is NaN or out of range, whose row and column are named.
        """
        return open_values(values, self.dimension, self.low, self.high)

    def open_dense(self, values: Values) -> FloatArray:
        """All values [n, d] as one dense array, for variances, whether or not they lie in the range. Raises
        InputError for another kind or shape of values, or more than 50,000,000 numbers.
        """
        rows = open_rows(values, self.dimension)
        _validate.require_dense_size(*rows.shape, "the variance", most=_validate.WORK_LIMIT)
        return rows.block(0, rows.shape[0])

    def fractions(self, values: FloatArray) -> FloatArray:
        """Where values lie between low (0) and high (1), in their shape."""
        # Rounding may put the quotient an ulp outside [0, 1] although the value is in its range.
        return np.clip((values - self.low) / self.width, 0.0, 1.0)

    def split(self, values: FloatArray, steps: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
        """The parameters of unbiased random rounding to the grid of `steps` equal steps from low to high. Returns the
        grid point below each value (0 to steps), and 2^64 times the probability of rounding up.

        Args:
            values: any shape, in the range.
            steps: grid steps in the range, at least 1.
        """
        scaled = self.fractions(values) * steps
        # At the high end the part above the grid point is 0, so rounding up never leaves the grid.
        below = np.floor(scaled)
        return below.astype(np.int64), ((scaled - below) * WORDS).astype(np.uint64)

    def uncentred(self, centred: npt.NDArray[np.float32]) -> Tensor:
        """Estimates [n, d] with the middle of the range put back."""
        return torch.from_numpy(centred) + self.midpoint

    def guarantee(self, epsilon: float, delta: float = 0.0) -> Guarantee:
        """The local guarantee of one randomized vector of this domain."""
        return feature_guarantee(epsilon, delta, self.dimension, self.low, self.high)


#: Estimates less the middle of the range, [n, d]: dense float32, or compressed sparse rows.
Centred: TypeAlias = "npt.NDArray[np.float32] | sparse.csr_matrix"


class Reports(Protocol):
    """What users send, one row a user, as tensors that can be stored by name."""

    def __len__(self) -> int: ...

    def to_tensors(self) -> dict[str, Tensor]:
        """The tensors by name."""


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
        """A reader of values [n, d], after a check that all of them can be reported; raises as `randomize`."""
        return self.domain.open(values)

    def randomize(self, values: Values, *, randomness: Randomness) -> R:
        """What the devices send of values [n, d]: the only place that touches private values. Raises InputError where
        an entry is NaN, infinite or out of range (its row is named), or memory does not suffice; before any draw.

        Args:
            values: dense or sparse rows, every entry in the declared range.
        """
        require_randomness(randomness)
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
            values: [n, d], the value behind each report.
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
        """Every report that a device can send, one a user; for audits. Raises InputError for more than a million."""

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
        """Consecutive (start, stop) of the rows that are processed at a time."""
        return blocks(*rows.shape)
