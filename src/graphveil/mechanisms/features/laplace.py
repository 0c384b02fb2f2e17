"""The Laplace mechanism on an integer grid.

Source: C. Dwork, F. McSherry, K. Nissim, A. Smith, "Calibrating Noise to Sensitivity in Private Data
Analysis", TCC 2006, Proposition 1, with two-sided geometric noise in place of the continuous one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.mechanisms.base.checks import require_count, require_epsilon, require_range
from graphveil.mechanisms.base.guarantees import feature_guarantee
from graphveil.mechanisms.base.lattice import Lattice
from graphveil.mechanisms.base.reports import LatticeReports
from graphveil.mechanisms.base.values import Values
from graphveil.mechanisms.samplers.geometric import TwoSidedGeometric
from graphveil.privacy import Guarantee, Randomness
from graphveil.privacy.printed import rounded_up

# The grid is the coarsest whose noise is still this many steps: rounding then adds nothing that matters.
_STEPS_OF_NOISE: Final = 64
# Reports reach this many noise scales beyond the range; noise further out has probability e^-40.
_REACH: Final = 40
# More than 32 a coordinate hides nothing and gains nothing: the noise is then half a thousandth of the range.
_LARGEST_SHARE: Final = 32.0
# Taken off epsilon, far more than finite thresholds and finite support can add to it.
_SLACK: Final = 1e-12


@dataclass(frozen=True, kw_only=True)
class Laplace:
    """Adds two-sided geometric noise at epsilon / dimension to every coordinate.

    Formal guarantees: epsilon-local privacy for the whole vector under replacement; the possible reports are
    the same for all inputs; estimates are unbiased up to e^-40 of the noise.

    Args:
        epsilon: finite and positive, for the whole vector.
        dimension: number of coordinates d.
        low, high: the declared, public range of every coordinate.

    Raises:
        InputError: a parameter is outside its range, NaN included, or d / epsilon exceeds 10^7.
    """

    epsilon: float
    dimension: int
    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        require_count("dimension", self.dimension, 1, 2**31 - 1)
        require_range(self.low, self.high)
        require_epsilon(self.epsilon, self.dimension)
        if self.dimension / self.epsilon > 1e7:
            raise InputError(
                f"epsilon {rounded_up(self.epsilon)} for {self.dimension} coordinates means noise of "
                f"{self.dimension / self.epsilon:g} ranges",
                allowed="at most 1e7",
                remedy="use MultiBit",
            )

    @property
    def midpoint(self) -> float:
        """The middle of the range, which `centred` leaves out."""
        return self.low + (self.high - self.low) / 2

    @property
    def step(self) -> float:
        """The grid step: reports are whole multiples of it."""
        return self._lattice.step

    @property
    def worst_variance(self) -> float:
        """The largest variance of one coordinate's estimate: noise, and rounding from between two grid points."""
        return (self._noise.variance + 1 / 4) * self.step**2

    @property
    def report_bytes(self) -> float:
        """Bytes of one report: 32 bits a coordinate."""
        return 4.0 * self.dimension

    @property
    def guarantee(self) -> Guarantee:
        """What one report protects."""
        return feature_guarantee(self.epsilon, 0.0, self.dimension, self.low, self.high)

    def randomize(self, values: Values, *, randomness: Randomness) -> LatticeReports:
        """What the devices send: one integer a coordinate.

        Args:
            values: [n, d], dense or sparse rows, every entry in [low, high].
            randomness: the source of the noise.

        Raises:
            InputError: an entry is NaN, infinite or out of range (it is named and nothing is encoded), or n d
                exceeds 50,000,000.
        """
        return self._lattice.randomize(values, self._noise, randomness)

    def centred(self, reports: LatticeReports) -> npt.NDArray[np.float32]:
        """The unbiased estimate minus `midpoint`, float32 [n, d]."""
        return self._lattice.centred(reports)

    def estimate(self, reports: LatticeReports) -> Tensor:
        """The unbiased estimate of the values, float32 [n, d]."""
        return torch.from_numpy(self.centred(reports)) + self.midpoint

    def log_likelihood(self, reports: LatticeReports, values: Values) -> Tensor:
        """log Pr[report | value] for each row, float64 [n], of rounding, noise and clamping together."""
        return self._lattice.log_likelihood(reports, values, self._noise)

    def variance(self, values: Values) -> Tensor:
        """The variance of the estimate of each coordinate, float64 [n, d]: noise plus rounding."""
        noise = self._noise.variance * self.step**2
        return torch.from_numpy(self._lattice.rounding_variance(values) + noise)

    def every_report(self) -> LatticeReports:
        """Every report that a device can send, one a user; raises InputError where there are more than a million."""
        return self._lattice.every_report()

    @property
    def _share(self) -> float:
        """Epsilon for one coordinate."""
        return min(self.epsilon / self.dimension, _LARGEST_SHARE) * (1 - _SLACK)

    @property
    def _steps(self) -> int:
        """Grid steps in the range, a power of two."""
        return 1 << max(0, math.ceil(math.log2(_STEPS_OF_NOISE * self._share)))

    @property
    def _lattice(self) -> Lattice:
        reach = math.ceil(_REACH * self._steps / self._share)
        return Lattice(self.low, self.high, self.dimension, self._steps, reach)

    @property
    def _noise(self) -> TwoSidedGeometric:
        # Twice as far as any report needs: there, what the finite support changes is below e^-80.
        support = 2 * (self._lattice.reach + self._steps)
        return TwoSidedGeometric(self._share / self._steps, support.bit_length())
