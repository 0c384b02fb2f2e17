"""A few sampled coordinates of a vector, each rounded to a public grid and then randomized by an integer law.

An entry of [low, high] is rounded at random, without bias, to one of the two input positions around it; a law with
finitely many inputs and outputs (see `laws`) turns positions into output levels. So what holds for the few positions,
above all a bound on the ratio of two of them, holds for every input, and every input has the same possible reports.
Centred estimates are zero at coordinates that were not reported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from graphveil.errors import InputError
from graphveil.mechanisms.base import _validate
from graphveil.mechanisms.base.mechanism import WORDS, FeatureMechanism
from graphveil.mechanisms.base.reports import NamedTensors, require_inside
from graphveil.mechanisms.base.values import FloatArray, Rows, Values
from graphveil.mechanisms.samplers.laws import Law, worst_variance
from graphveil.mechanisms.samplers.subsets import draw_subsets, every_subset, index_bits, log_subsets, subset_blocks
from graphveil.privacy import Randomness
from graphveil.runtime.checks import require_whole
from graphveil.runtime.late import sparse, torch

if TYPE_CHECKING:
    from torch import Tensor

Worth = npt.NDArray[np.float32]


def centred_rows(indices: Tensor, worth: Worth, dimension: int) -> sparse.csr_matrix:
    """The estimates minus the middle of the range, [n, d] with k numbers a row.

    Args:
        indices: int32 [n, k], the sampled coordinates, ascending.
        worth: float32 [n, k], the estimate at each of them minus the middle.
    """
    count, size = worth.shape
    parts = (worth.ravel(), indices.numpy().ravel(), np.arange(0, count * size + 1, size))
    return sparse.csr_matrix(parts, shape=(count, dimension))


def dense_rows(indices: Tensor, worth: Worth, dimension: int, midpoint: float) -> Tensor:
    """The estimates, dense float32 [n, d].

    Args:
        midpoint: of the range, the estimate of coordinates that were not reported.
    """
    dense = torch.full((len(worth), dimension), midpoint)
    return dense.scatter_add_(1, indices.long(), torch.from_numpy(worth))


def require_subsets(indices: Tensor, size: int, dimension: int, name: str) -> None:
    """Refuse coordinates that no device samples. Raises InputError for another number of coordinates, one out of range,
    or a row that is not ascending.

    Args:
        indices: int32 [n, k], the reported coordinates.
        name: what a report holds one of for each coordinate, for the message: "bits".
    """
    if indices.shape[1] != size:
        raise InputError(f"reports hold {indices.shape[1]} {name}", allowed=f"{size}")
    require_inside(indices, 0, dimension - 1, "a coordinate")
    # A forged report that names one coordinate k times would move its estimate k times as far as an honest report.
    if not bool((indices[:, 1:] > indices[:, :-1]).all()):
        raise InputError("a report names its coordinates out of order or twice", allowed="ascending")


@dataclass(frozen=True, eq=False)
class SampledReports(NamedTensors, indices=("int32", 2), levels=("int16", 2)):
    """indices int32 [n, k], ascending in every row, and the output level of each: levels int16 [n, k]."""

    indices: Tensor
    levels: Tensor

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.indices.shape != self.levels.shape:
            raise InputError(f"{tuple(self.indices.shape)} indices with {tuple(self.levels.shape)} levels")


@dataclass(frozen=True)
class SamplingKind:
    """A family of mechanisms on sampled coordinates; a call with a budget and a range returns a mechanism.

    Args:
        law: of (epsilon, k) for k coordinates that share epsilon.
        best: of (epsilon, d): the number k of coordinates with the least worst variance.
        most: the largest k.
    """

    name: str
    law: Callable[[float, int], Law] = field(repr=False)
    best: Callable[[float, int], int] = field(repr=False)
    most: int = _validate.LARGEST_COUNT

    @property
    def __name__(self) -> str:
        return self.name

    def __call__(
        self, *, epsilon: float, dimension: int, low: float = 0.0, high: float = 1.0, sampled: int | None = None
    ) -> SampledVectors:
        """Return the mechanism for vectors [d] of [low, high]; arguments and errors are those of `SampledVectors`."""
        return SampledVectors(kind=self, epsilon=epsilon, dimension=dimension, low=low, high=high, sampled=sampled)


@dataclass(frozen=True, kw_only=True, repr=False)
class SampledVectors(FeatureMechanism[SampledReports]):
    """Sends a level for each of k uniformly sampled coordinates: Duchi, Piecewise, SubOptimal, Hybrid, ThreeOutputs.

    Formal guarantees: epsilon-local privacy for the whole vector under replacement, exactly (integer weights on a grid,
    rounded to the private side); the possible reports are the same for all inputs; estimates are unbiased up to the
    rounding of their 32-bit numbers.

    Args:
        kind: the law and its source.
        epsilon: finite and positive, for the whole vector.
        sampled: k, the coordinates a user reports; default: the number with the least worst variance.
    """

    kind: SamplingKind
    epsilon: float
    dimension: int
    low: float = 0.0
    high: float = 1.0
    sampled: int | None = None

    def __post_init__(self) -> None:
        _ = self.domain
        if self.sampled is not None:
            require_whole(1, min(self.dimension, self.kind.most), sampled=self.sampled)
        _validate.require_epsilon(self.epsilon, per=self.sampled or 1)

    def __repr__(self) -> str:
        names = ("epsilon", "dimension", "low", "high", "sampled")
        arguments = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{self.kind.name}({arguments})"

    @property
    def coordinates(self) -> int:
        """k, the coordinates in one report."""
        # From epsilon and d alone: the length of every report would reveal a number read off the data.
        return self.sampled or self.kind.best(self.epsilon, self.dimension)

    @property
    def law(self) -> Law:
        """How a coordinate's position becomes a level."""
        return self.kind.law(self.epsilon, self.coordinates)

    @property
    def scale(self) -> float:
        """What a value of 1 adds to an estimate: d/k half-ranges."""
        # d/k undoes the sampling: a coordinate is sent by a share k/d of the users.
        return self.dimension / self.coordinates * (self.high - self.low) / 2

    @property
    def largest(self) -> float:
        """The largest absolute value of a number of `centred`."""
        return self.scale * float(np.abs(self.law.values()).max())

    @property
    def report_bytes(self) -> float:
        levels = (self.law.levels - 1).bit_length()
        return self.coordinates * (index_bits(self.dimension, self.coordinates) + levels) / 8

    @property
    def worst_variance(self) -> float:
        return worst_variance(self.law, self.dimension, self.coordinates) * ((self.high - self.low) / 2) ** 2

    def _encode(self, rows: Rows, randomness: Randomness) -> SampledReports:
        law, size = self.law, self.coordinates
        indices, levels = np.empty((rows.shape[0], size), np.int32), np.empty((rows.shape[0], size), np.int16)
        for start, stop in self._blocks(rows):
            # Drawn before the entries are read, so that which coordinates are reported says nothing about them.
            columns = draw_subsets(stop - start, self.dimension, size, randomness)
            below, carry = self.domain.split(rows.at(start, stop, columns), law.steps)
            # Rounding is part of the private law: its words are drawn before those of the levels.
            below += randomness.uint64(below.size).reshape(below.shape) < carry
            indices[start:stop], levels[start:stop] = columns, law.draw(below, randomness)
        return SampledReports(torch.from_numpy(indices), torch.from_numpy(levels))

    def centred(self, reports: SampledReports) -> sparse.csr_matrix:
        """The unbiased estimate minus `midpoint`: float32 [n, d] with k numbers a row."""
        return centred_rows(reports.indices, self._worth(reports), self.dimension)

    def estimate(self, reports: SampledReports) -> Tensor:
        _validate.require_dense_size(len(reports), self.dimension, "the estimate")
        return dense_rows(reports.indices, self._worth(reports), self.dimension, self.midpoint)

    def _log_likelihood(self, reports: SampledReports, rows: Rows, start: int, stop: int) -> FloatArray:
        below, carry = self.domain.split(rows.at(start, stop, reports.indices.numpy()[start:stop]), self.law.steps)
        reported = reports.levels.numpy()[start:stop].astype(np.int64)
        logs = self.law.log_likelihood(reported, below, carry.astype(np.float64) / WORDS)
        return logs - log_subsets(self.dimension, self.coordinates)

    def _blocks(self, rows: Rows) -> list[tuple[int, int]]:
        return subset_blocks(rows, self.coordinates)

    def variances(self, values: Values) -> FloatArray:
        """The variance of the estimate of each coordinate, float64 [n, d]: d/k E[v^2 | x] - x^2 in half-ranges."""
        half = self.domain.width / 2
        x = (self.domain.open_dense(values) - self.midpoint) / half
        steps = self.law.steps
        # Rounding at random makes E[v^2 | x] linear between two positions, so interpolating it is exact.
        square = np.interp((x + 1) / 2 * steps, np.arange(steps + 1), self.law.second_moments())
        return (self.dimension / self.coordinates * square - x**2) * half**2

    def every_report(self) -> SampledReports:
        indices, levels = every_subset(self.dimension, self.coordinates, self.law.levels)
        return SampledReports(torch.from_numpy(indices).int(), torch.from_numpy(levels).to(torch.int16))

    def _worth(self, reports: SampledReports) -> Worth:
        self._check(reports)
        # One rounding for each level, so that equal reports have exactly equal estimates.
        table = (self.law.values() * self.scale).astype(np.float32)
        worth: Worth = table[reports.levels.numpy()]
        return worth

    def _check(self, reports: SampledReports) -> None:
        require_subsets(reports.indices, self.coordinates, self.dimension, "coordinates")
        require_inside(reports.levels, 0, self.law.levels - 1, "a level")
