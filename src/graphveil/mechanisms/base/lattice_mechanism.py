"""A mechanism whose reports are grid points with noise: it chooses the lattice, which does all the rest."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from graphveil.mechanisms.base.in_range import InRange
from graphveil.mechanisms.base.lattice import Lattice
from graphveil.mechanisms.base.reports import LatticeReports
from graphveil.mechanisms.base.values import FloatArray, Rows, Values
from graphveil.privacy import Randomness
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor


class LatticeMechanism(InRange, ABC):
    """What Laplace and Gaussian reports have in common: all but the distance of the grid points and the noise."""

    @property
    @abstractmethod
    def lattice(self) -> Lattice:
        """The grid, and the noise on it: of public facts alone."""

    @property
    def step(self) -> float:
        """The grid step: reports are whole multiples of it."""
        return self.lattice.step

    @property
    def worst_variance(self) -> float:
        """The largest variance of one coordinate's estimate, in the squared unit of the values."""
        return self.lattice.worst_variance

    @property
    def report_bytes(self) -> float:
        """Bytes of one report: 32 bits a coordinate."""
        return self.lattice.report_bytes

    def open(self, values: Values) -> Rows:
        """A reader for values [n, d] that can be reported, all of which were looked at; raises as `randomize`."""
        return self.lattice.open(values)

    def randomize(self, values: Values, *, randomness: Randomness) -> LatticeReports:
        """What the devices send: one integer a coordinate.

        Args:
            values: [n, d], dense or sparse rows, every entry in [low, high].

        Raises:
            InputError: an entry is NaN, infinite or out of range (it is named and nothing is encoded), or n d
                exceeds 2^30.
        """
        return self.lattice.randomize(values, randomness)

    def centred(self, reports: LatticeReports) -> npt.NDArray[np.float32]:
        """The unbiased estimate minus `midpoint`, float32 [n, d]."""
        return self.lattice.centred(reports)

    def estimate(self, reports: LatticeReports) -> Tensor:
        """The unbiased estimate of the values, float32 [n, d]."""
        return self.lattice.estimate(reports)

    def log_likelihood(self, reports: LatticeReports, values: Values) -> Tensor:
        """log Pr[report | value] for each row, float64 [n], of rounding, noise and clamping together.

        Args:
            reports: n of them.
            values: [n, d], what each was made from.
        """
        return self.lattice.log_likelihood(reports, values)

    def variance(self, values: Values) -> Tensor:
        """The variance of the estimate of each coordinate as a tensor, see `variances`."""
        return torch.from_numpy(self.variances(values))

    def variances(self, values: Values) -> FloatArray:
        """The variance of the estimate of each coordinate, float64 [n, d]: noise plus rounding."""
        return self.lattice.variances(values)

    def every_report(self) -> LatticeReports:
        """Every report that a device can send, one a user; raises InputError where there are more than a million."""
        return self.lattice.every_report()
