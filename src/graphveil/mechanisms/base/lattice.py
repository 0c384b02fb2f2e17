"""Values on a public integer grid and noise of whole grid steps: the ground of Laplace and Gaussian reports.

Floating-point noise on a floating-point value leaves marks by which the value can be told (Mironov, CCS
2012). Here a value is rounded at random to one of the two grid points around it, without bias; integer noise
is added; the sum is clamped to a public range. All inputs have the same set of possible reports.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
import torch

from graphveil.errors import InputError
from graphveil.mechanisms.base.checks import require_dense, require_enumerable
from graphveil.mechanisms.base.reports import LatticeReports, require_inside, require_pairs
from graphveil.mechanisms.base.values import BLOCK, FloatArray, Values, blocks, open_values
from graphveil.privacy import Randomness

Levels = npt.NDArray[np.int64]

_WORD: Final = 2.0**64


class NoiseLaw(Protocol):
    """Integer noise that is symmetric around 0."""

    def draw(self, count: int, randomness: Randomness) -> Levels:
        """`count` independent draws."""
        ...

    def log_pmf(self, noise: Levels) -> FloatArray:
        """log Pr[Z = z]."""
        ...

    def log_tail(self, noise: Levels) -> FloatArray:
        """log Pr[Z >= z] for z >= 1."""
        ...


@dataclass(frozen=True)
class Lattice:
    """The grid points low + step * i, i = 0..steps for values and -reach..steps + reach for reports."""

    low: float
    high: float
    dimension: int
    steps: int
    reach: int

    @property
    def step(self) -> float:
        """The distance of two neighbouring grid points, in the unit of the values."""
        return (self.high - self.low) / self.steps

    def randomize(self, values: Values, noise: NoiseLaw, randomness: Randomness) -> LatticeReports:
        """Round, add noise and clamp, block by block, once all values are known to be in range."""
        rows = open_values(values, self.dimension, self.low, self.high)
        require_dense(*rows.shape, "reports")
        levels = np.empty(rows.shape, np.int32)
        for start, stop in blocks(*rows.shape):
            below, carry = self._split(rows.block(start, stop))
            below += randomness.uint64(below.size).reshape(below.shape) < carry
            below += noise.draw(below.size, randomness).reshape(below.shape)
            levels[start:stop] = np.clip(below, -self.reach, self.steps + self.reach)
        return LatticeReports(torch.from_numpy(levels))

    def centred(self, reports: LatticeReports) -> npt.NDArray[np.float32]:
        """The values the reports stand for minus the middle of the range, float32 [n, d]."""
        self._check(reports)
        levels = reports.levels.numpy()
        return (levels.astype(np.float32) - np.float32(self.steps / 2)) * np.float32(self.step)

    def log_likelihood(self, reports: LatticeReports, values: Values, noise: NoiseLaw) -> torch.Tensor:
        """log Pr[report | value] for each row, float64 [n], rounding and clamping included."""
        rows = open_values(values, self.dimension, self.low, self.high)
        require_pairs(len(reports), rows.shape[0])
        self._check(reports)
        levels = reports.levels.numpy()
        result = np.empty(rows.shape[0])
        for start, stop in blocks(*rows.shape, BLOCK):
            below, carry = self._split(rows.block(start, stop))
            up = carry.astype(np.float64) / _WORD
            sent = levels[start:stop].astype(np.int64)
            with np.errstate(divide="ignore"):
                from_below = np.log1p(-up) + self._log_sent(sent, below, noise)
                from_above = np.log(up) + self._log_sent(sent, np.minimum(below + 1, self.steps), noise)
            result[start:stop] = np.logaddexp(from_below, from_above).sum(axis=1)
        return torch.from_numpy(result)

    def rounding_variance(self, values: Values) -> FloatArray:
        """The variance that rounding adds to each value, in the square of the values' unit, [n, d]."""
        rows = open_values(values, self.dimension, self.low, self.high)
        require_dense(*rows.shape, "the variance")
        _, carry = self._split(rows.block(0, rows.shape[0]))
        up = carry.astype(np.float64) / _WORD
        return up * (1 - up) * self.step**2

    def every_report(self) -> LatticeReports:
        """Every report that a device can send, one a user.

        For audits of small mechanisms.

        Raises:
            InputError: there are more than a million.
        """
        require_enumerable((self.steps + 2 * self.reach + 1) ** self.dimension)
        levels = range(-self.reach, self.steps + self.reach + 1)
        return LatticeReports(torch.tensor(list(itertools.product(levels, repeat=self.dimension)), dtype=torch.int32))

    def _split(self, values: FloatArray) -> tuple[Levels, npt.NDArray[np.uint64]]:
        """The grid point below each value, and 2^64 times the probability of rounding up."""
        scaled = np.clip((values - self.low) / (self.high - self.low), 0.0, 1.0) * self.steps
        below = np.floor(scaled)
        return below.astype(np.int64), ((scaled - below) * _WORD).astype(np.uint64)

    def _log_sent(self, sent: Levels, origin: Levels, noise: NoiseLaw) -> FloatArray:
        """log Pr[report = sent] when the value was rounded to `origin`; the ends collect what was clamped."""
        distance = np.abs(sent - origin)
        at_end = (sent == -self.reach) | (sent == self.steps + self.reach)
        return np.where(at_end, noise.log_tail(np.maximum(distance, 1)), noise.log_pmf(distance))

    def _check(self, reports: LatticeReports) -> None:
        require_inside(reports.levels, -self.reach, self.steps + self.reach, "a level")
        if reports.levels.shape[1] != self.dimension:
            raise InputError(f"reports hold {reports.levels.shape[1]} levels", allowed=f"{self.dimension}")
