"""What every feature mechanism offers, as a type: the library builds one by name and uses it through this."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse

from graphveil.mechanisms.base.domain import VectorDomain
from graphveil.mechanisms.base.values import FloatArray, Rows, Values
from graphveil.privacy import Guarantee, Randomness

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


R = TypeVar("R")


class FeatureMechanism(Protocol[R]):
    """A frozen value, built from public facts alone; R is the class of its reports."""

    @property
    def epsilon(self) -> float:
        """The privacy budget of one report."""
        ...

    @property
    def dimension(self) -> int:
        """Number of coordinates d."""
        ...

    @property
    def domain(self) -> VectorDomain:
        """The declared range of every coordinate."""
        ...

    @property
    def midpoint(self) -> float:
        """The middle of the range, which `centred` leaves out."""
        ...

    @property
    def worst_variance(self) -> float:
        """The largest variance of one coordinate's estimate, in the squared unit of the values."""
        ...

    @property
    def report_bytes(self) -> float:
        """Bytes of one report."""
        ...

    @property
    def guarantee(self) -> Guarantee:
        """What one report protects."""
        ...

    def open(self, values: Values) -> Rows:
        """A reader for values [n, d] that can be reported, all of which were looked at; raises as `randomize`."""
        ...

    def randomize(self, values: Values, *, randomness: Randomness) -> R:
        """What the devices send of values [n, d]: the only place that touches private values.

        Args:
            values: dense or sparse rows, every entry in the declared range.

        Raises:
            InputError: an entry is NaN or out of range; it is named and nothing is encoded.
        """
        ...

    def centred(self, reports: R) -> Centred:
        """The unbiased estimate minus `midpoint`, [n, d]."""
        ...

    def estimate(self, reports: R) -> Tensor:
        """The unbiased estimate of the values, float32 [n, d]."""
        ...

    def log_likelihood(self, reports: R, values: Values) -> Tensor:
        """log Pr[report | value] for each row, float64 [n].

        Args:
            reports: n of them.
            values: [n, d], what each was made from.
        """
        ...

    def variance(self, values: Values) -> Tensor:
        """The variance of the estimate of each coordinate, float64 [n, d]."""
        ...

    def variances(self, values: Values) -> FloatArray:
        """As `variance`, a NumPy array: no torch is needed to plan with it."""
        ...

    def every_report(self) -> R:
        """Every report that a device can send, one a user; for audits of small mechanisms."""
        ...
