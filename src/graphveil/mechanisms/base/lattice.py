"""Values on a public integer grid and noise of whole grid steps: everything about Laplace and Gaussian reports but the
law of the noise.

Floating-point noise on a floating-point value leaves traces that reveal the value (Mironov, CCS 2012). Here a value is
rounded at random to one of the two grid points around it, without bias; integer noise is added; the sum is clamped to
a public range. All inputs have the same set of possible reports.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from graphveil.errors import InputError
from graphveil.mechanisms.base import _validate
from graphveil.mechanisms.base.mechanism import WORDS, FeatureMechanism, VectorDomain
from graphveil.mechanisms.base.reports import LatticeReports, require_inside
from graphveil.mechanisms.base.values import FloatArray, Rows, Values, blocks
from graphveil.privacy import Randomness
from graphveil.runtime.late import torch

Levels = npt.NDArray[np.int64]


class NoiseLaw(Protocol):
    """Integer noise that is symmetric around 0."""

    @property
    def variance(self) -> float:
        """In squared steps."""

    def draw(self, count: int, randomness: Randomness) -> Levels:
        """`count` independent draws. Returns int64 [count], in steps."""

    def log_pmf(self, noise: Levels) -> FloatArray:
        """log Pr[Z = z]."""

    def log_tail(self, noise: Levels) -> FloatArray:
        """log Pr[Z >= z] for z >= 1."""


@dataclass(frozen=True)
class Lattice:
    """The grid points low + step * i, i = 0..steps for values and -reach..steps + reach for reports.

    Args:
        domain: the declared range of values.
        noise: what is added to every grid point, in steps.
        steps: grid steps in the range.
        reach: how many steps reports may lie beyond the range; noise further out is clamped.
    """

    domain: VectorDomain
    noise: NoiseLaw
    steps: int
    reach: int

    @property
    def step(self) -> float:
        """The distance of two neighbouring grid points, in the unit of the values."""
        return self.domain.width / self.steps

    @property
    def worst_variance(self) -> float:
        """The largest variance of one coordinate's estimate: noise, and rounding from between two grid points."""
        # Rounding up with probability p has the variance p (1 - p) of a squared step, at most 1/4.
        return (self.noise.variance + 1 / 4) * self.step**2

    def encode(self, rows: Rows, randomness: Randomness) -> LatticeReports:
        """Round, add noise and clamp checked values, block by block.

        Args:
            rows: [n, d], every entry in the range.
        """
        levels = np.empty(rows.shape, np.int32)
        for start, stop in blocks(*rows.shape):
            # Rounding is random: rounding to the nearest grid point would bias the mean by up to half a step.
            below, carry = self.domain.split(rows.block(start, stop), self.steps)
            below += randomness.uint64(below.size).reshape(below.shape) < carry
            # Integers from here on: a grid point plus Z is a grid point, so low digits reveal nothing of the value.
            below += self.noise.draw(below.size, randomness).reshape(below.shape)
            # Clamping to a public range looks at the report alone: post-processing.
            levels[start:stop] = np.clip(below, -self.reach, self.steps + self.reach)
        return LatticeReports(torch.from_numpy(levels))

    def centred(self, reports: LatticeReports) -> npt.NDArray[np.float32]:
        """The values the reports stand for minus the middle of the range, float32 [n, d]."""
        self.check(reports)
        levels = reports.levels.numpy()
        # Centred before scaling: the middle of the range is then exactly 0, and noise on either side is rounded alike.
        return (levels.astype(np.float32) - np.float32(self.steps / 2)) * np.float32(self.step)

    def log_likelihood(self, reports: LatticeReports, rows: Rows, start: int, stop: int) -> FloatArray:
        """log Pr[report | value] of rounding, noise and clamping together, float64 [stop - start]."""
        below, carry = self.domain.split(rows.block(start, stop), self.steps)
        up = carry.astype(np.float64) / WORDS
        reported = reports.levels.numpy()[start:stop].astype(np.int64)
        with np.errstate(divide="ignore"):  # a value on a grid point is never rounded up: log 0
            # A mixture over the two roundings, in logs: far out in the noise each branch alone underflows.
            from_below = np.log1p(-up) + self._log_reported(reported, below)
            from_above = np.log(up) + self._log_reported(reported, np.minimum(below + 1, self.steps))
        # Coordinates are independent given the vector, so their logarithms add up to that of the whole report.
        logs: FloatArray = np.logaddexp(from_below, from_above).sum(axis=1)
        return logs

    def variances(self, values: Values) -> FloatArray:
        """The variance of the estimate of each coordinate, float64 [n, d]: noise plus rounding."""
        rows = self.domain.open(values)
        _validate.require_dense_size(*rows.shape, "the variance", most=_validate.WORK_LIMIT)
        _, carry = self.domain.split(rows.block(0, rows.shape[0]), self.steps)
        up = carry.astype(np.float64) / WORDS
        return up * (1 - up) * self.step**2 + self.noise.variance * self.step**2

    def every_report(self) -> LatticeReports:
        """Every report that a device can send, one a user. Raises InputError where there are more than a million."""
        _validate.require_enumerable((self.steps + 2 * self.reach + 1) ** self.domain.dimension)
        levels = range(-self.reach, self.steps + self.reach + 1)
        every = list(itertools.product(levels, repeat=self.domain.dimension))
        return LatticeReports(torch.tensor(every, dtype=torch.int32))

    def check(self, reports: LatticeReports) -> None:
        """Refuse reports that no device can send."""
        require_inside(reports.levels, -self.reach, self.steps + self.reach, "a level")
        if reports.levels.shape[1] != self.domain.dimension:
            raise InputError(f"reports hold {reports.levels.shape[1]} levels", allowed=f"{self.domain.dimension}")

    def _log_reported(self, reported: Levels, origin: Levels) -> FloatArray:
        """log Pr[report = reported] when the value was rounded to `origin`; the ends collect what was clamped."""
        distance = np.abs(reported - origin)
        at_end = (reported == -self.reach) | (reported == self.steps + self.reach)
        return np.where(at_end, self.noise.log_tail(np.maximum(distance, 1)), self.noise.log_pmf(distance))


class LatticeMechanism(FeatureMechanism[LatticeReports], ABC):
    """What Laplace and Gaussian mechanisms share: everything but the grid and the noise."""

    @property
    @abstractmethod
    def lattice(self) -> Lattice:
        """The grid and the noise on it, from public facts alone."""

    @property
    def step(self) -> float:
        """The grid step: reports are whole multiples of it."""
        return self.lattice.step

    @property
    def worst_variance(self) -> float:
        return self.lattice.worst_variance

    @property
    def report_bytes(self) -> float:
        return 4.0 * self.dimension  # 32 bits a coordinate

    def open(self, values: Values) -> Rows:
        rows = self.domain.open(values)
        _validate.require_dense_size(*rows.shape, "reports")
        return rows

    def centred(self, reports: LatticeReports) -> npt.NDArray[np.float32]:
        return self.lattice.centred(reports)

    def variances(self, values: Values) -> FloatArray:
        return self.lattice.variances(values)

    def every_report(self) -> LatticeReports:
        return self.lattice.every_report()

    def _encode(self, rows: Rows, randomness: Randomness) -> LatticeReports:
        return self.lattice.encode(rows, randomness)

    def _log_likelihood(self, reports: LatticeReports, rows: Rows, start: int, stop: int) -> FloatArray:
        return self.lattice.log_likelihood(reports, rows, start, stop)

    def _check(self, reports: LatticeReports) -> None:
        self.lattice.check(reports)
