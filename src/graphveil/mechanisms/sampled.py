"""A few sampled coordinates of a vector, each rounded to a public grid and then randomized by an integer law.

An entry of [low, high] is rounded at random, without bias, to one of the two input positions around it; a law with
finitely many inputs and outputs, all probabilities whole multiples of 2^-64, turns positions into output levels. What
holds for the few positions, a bound on the ratio of two of them above all, so holds for every input, and every input
has the same possible reports. Averages of the levels' values are linear in the position, so estimates are unbiased.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse
import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.mechanisms.checks import require_count, require_dense, require_epsilon, require_range
from graphveil.mechanisms.reports import require_inside, require_pairs
from graphveil.mechanisms.sampled_reports import SampledReports
from graphveil.mechanisms.subsets import draw_subsets, index_bits, log_subsets, subset_blocks
from graphveil.mechanisms.values import FloatArray, IntArray, Rows, Values, open_rows, open_values
from graphveil.privacy import Randomness

_WORD: Final = 2.0**64
Places = npt.NDArray[np.int64]


class Law(Protocol):
    """Randomizes the positions 0..steps of k coordinates of each user; values are in half-ranges around the middle."""

    @property
    def steps(self) -> int:
        """The last input position, which stands for the high end; 0 stands for the low end."""
        ...

    @property
    def levels(self) -> int:
        """How many output levels a coordinate has."""
        ...

    def draw(self, positions: Places, randomness: Randomness) -> Places:
        """Output levels for input positions [n, k]; the number of words used depends on n and k alone."""
        ...

    def log_likelihood(self, levels: Places, below: Places, carry: FloatArray) -> FloatArray:
        """log Pr[row of levels] when each entry is at below + 1 with probability carry, at below otherwise."""
        ...

    def values(self) -> FloatArray:
        """What each level adds to the estimate: at position s its average is 2 s / steps - 1."""
        ...

    def second_moments(self) -> FloatArray:
        """The average square of the value at every position, [steps + 1]."""
        ...


@dataclass(frozen=True)
class SampledVectors:
    """`coordinates` of `dimension` coordinates, uniformly sampled, under one law."""

    dimension: int
    coordinates: int
    low: float
    high: float
    law: Law

    @property
    def scale(self) -> float:
        """What a value of 1 adds to an estimate: d/k half-ranges."""
        return self.dimension / self.coordinates * (self.high - self.low) / 2

    @property
    def largest(self) -> float:
        """The largest size of a number of `centred`."""
        return self.scale * float(np.abs(self.law.values()).max())

    @property
    def midpoint(self) -> float:
        """The middle of the range."""
        return self.low + (self.high - self.low) / 2

    @property
    def report_bytes(self) -> float:
        """Bytes of one report, its whole numbers packed bit by bit."""
        levels = (self.law.levels - 1).bit_length()
        return self.coordinates * (index_bits(self.dimension, self.coordinates) + levels) / 8

    @property
    def worst_variance(self) -> float:
        """The largest variance of one coordinate's estimate over all inputs in the range."""
        return worst_variance(self.law, self.dimension, self.coordinates) * ((self.high - self.low) / 2) ** 2

    def randomize(self, values: Values, randomness: Randomness) -> SampledReports:
        """Sample, round and randomize, block by block, once all values are known to be in range."""
        rows = open_values(values, self.dimension, self.low, self.high)
        shape = rows.shape[0], self.coordinates
        indices, levels = np.empty(shape, np.int32), np.empty(shape, np.int16)
        for start, stop in subset_blocks(rows, self.coordinates):
            columns = draw_subsets(stop - start, self.dimension, self.coordinates, randomness)
            below, carry = self._split(rows, start, stop, columns)
            below += randomness.uint64(below.size).reshape(below.shape) < carry
            indices[start:stop], levels[start:stop] = columns, self.law.draw(below, randomness)
        return SampledReports(torch.from_numpy(indices), torch.from_numpy(levels))

    def centred(self, reports: SampledReports) -> scipy.sparse.csr_matrix:
        """The unbiased estimate minus the middle of the range: float32 [n, d] with k numbers a row."""
        count, size = len(reports), self.coordinates
        data = self._worth(reports).ravel()
        parts = (data, reports.indices.numpy().ravel(), np.arange(0, count * size + 1, size))
        return scipy.sparse.csr_matrix(parts, shape=(count, self.dimension))

    def estimate(self, reports: SampledReports) -> Tensor:
        """The unbiased estimate, dense float32 [n, d]."""
        require_dense(len(reports), self.dimension, "the estimate")
        worth = torch.from_numpy(self._worth(reports))
        dense = torch.full((len(reports), self.dimension), self.midpoint)
        return dense.scatter_add_(1, reports.indices.long(), worth)

    def log_likelihood(self, reports: SampledReports, values: Values) -> Tensor:
        """log Pr[report | value] for each row, float64 [n], sampling and rounding included."""
        self._check(reports)
        rows = open_values(values, self.dimension, self.low, self.high)
        require_pairs(len(reports), rows.shape[0])
        indices, levels = reports.indices.numpy(), reports.levels.numpy()
        result = np.full(rows.shape[0], -log_subsets(self.dimension, self.coordinates))
        for start, stop in subset_blocks(rows, self.coordinates):
            below, carry = self._split(rows, start, stop, indices[start:stop])
            sent = levels[start:stop].astype(np.int64)
            result[start:stop] += self.law.log_likelihood(sent, below, carry.astype(np.float64) / _WORD)
        return torch.from_numpy(result)

    def variance(self, values: Values) -> Tensor:
        """The variance of the estimate of each coordinate, float64 [n, d]."""
        rows = open_rows(values, self.dimension)
        require_dense(*rows.shape, "the variance")
        half = (self.high - self.low) / 2
        place = (rows.block(0, rows.shape[0]) - self.midpoint) / half
        steps = self.law.steps
        square = np.interp((place + 1) / 2 * steps, np.arange(steps + 1), self.law.second_moments())
        return torch.from_numpy((self.dimension / self.coordinates * square - place**2) * half**2)

    def _split(self, rows: Rows, start: int, stop: int, columns: IntArray) -> tuple[Places, npt.NDArray[np.uint64]]:
        """The position below each chosen entry, and 2^64 times the probability of rounding up."""
        fractions = (rows.at(start, stop, columns) - self.low) / (self.high - self.low)
        scaled = np.clip(fractions, 0.0, 1.0) * self.law.steps
        below = np.floor(scaled)
        return below.astype(np.int64), ((scaled - below) * _WORD).astype(np.uint64)

    def _worth(self, reports: SampledReports) -> npt.NDArray[np.float32]:
        self._check(reports)
        table = (self.law.values() * self.scale).astype(np.float32)
        worth: npt.NDArray[np.float32] = table[reports.levels.numpy()]
        return worth

    def _check(self, reports: SampledReports) -> None:
        found = reports.indices.shape[1]
        if found != self.coordinates:
            raise InputError(f"reports hold {found} coordinates", allowed=f"{self.coordinates}")
        require_inside(reports.indices, 0, self.dimension - 1, "a coordinate")
        require_inside(reports.levels, 0, self.law.levels - 1, "a level")
        if not bool((reports.indices[:, 1:] > reports.indices[:, :-1]).all()):
            raise InputError("a report names its coordinates out of order or twice", allowed="ascending")


def independent(
    probability: Callable[[Places, Places], FloatArray], levels: Places, below: Places, carry: FloatArray, steps: int
) -> FloatArray:
    """`Law.log_likelihood` of a law that treats the coordinates one by one."""
    mixed = (1 - carry) * probability(levels, below)
    mixed += carry * probability(levels, np.minimum(below + 1, steps))
    with np.errstate(divide="ignore"):
        logs: FloatArray = np.log(mixed).sum(axis=1)
    return logs


def require_vectors(
    epsilon: float, dimension: int, low: float, high: float, sampled: int | None, most: int = 2**31 - 1
) -> None:
    """Refuse the parameters of a mechanism on sampled coordinates, of which it takes at most `most`."""
    require_count("dimension", dimension, 1, 2**31 - 1)
    require_range(low, high)
    if sampled is not None:
        require_count("sampled", sampled, 1, min(dimension, most))
    require_epsilon(epsilon, sampled or 1)


@lru_cache(maxsize=64)
def best_coordinates(make: Callable[[float, int], Law], epsilon: float, dimension: int, share: float) -> int:
    """The number k of sampled coordinates with the least worst variance.

    Args:
        make: the law for (epsilon, k).
        share: the epsilon of one coordinate that is best where d is large; k is within 2 of epsilon / share.
    """
    middle = math.floor(min(float(dimension), epsilon / share))
    near = range(max(1, middle - 1), min(dimension, middle + 2) + 1)
    return min(near, key=lambda k: worst_variance(make(epsilon, k), dimension, k))


def worst_variance(law: Law, dimension: int, coordinates: int) -> float:
    """The largest of d/k E[v^2 | x] - x^2 over x in [-1, 1]; between two positions E[v^2 | x] is linear."""
    squares = law.second_moments() * (dimension / coordinates)
    ends = np.linspace(-1.0, 1.0, law.steps + 1)
    slopes = np.diff(squares) * (law.steps / 2)
    peaks = np.clip(slopes / 2, ends[:-1], ends[1:])
    return float((squares[:-1] + slopes * (peaks - ends[:-1]) - peaks**2).max())
