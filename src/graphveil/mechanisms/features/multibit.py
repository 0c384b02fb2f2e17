"""The multi-bit mechanism of LPGNN, which reports a few coordinates in one bit each, and the 1-bit mechanism, which
reports all.

Sources: S. Sajadmanesh, D. Gatica-Perez, "Locally Private Graph Neural Networks", CCS 2021,
https://arxiv.org/abs/2006.05535, Algorithm 1 (encoder) and equation 5 (rectifier); B. Ding, J. Kulkarni, S. Yekhanin,
"Collecting Telemetry Data Privately", NeurIPS 2017, https://arxiv.org/abs/1712.01524, equation 1 (1BitMean), with
epsilon/d for each coordinate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from graphveil.errors import InputError
from graphveil.mechanisms.base import _validate
from graphveil.mechanisms.base.mechanism import FeatureMechanism
from graphveil.mechanisms.base.reports import MultiBitReports, OneBitReports, require_inside
from graphveil.mechanisms.base.values import FloatArray, Rows, Values, blocks
from graphveil.mechanisms.features.sampled import Worth, centred_rows, dense_rows, require_subsets
from graphveil.mechanisms.samplers.bits import BitArray, BitLaw, bit_law
from graphveil.mechanisms.samplers.subsets import draw_subsets, every_subset, index_bits, log_subsets, subset_blocks
from graphveil.privacy import Randomness
from graphveil.runtime.checks import require_whole
from graphveil.runtime.late import sparse, torch

if TYPE_CHECKING:
    from torch import Tensor


# A user who reports m coordinates spends epsilon/m on each; the variance is least near epsilon/m = 2.18.
_BEST_SHARE = 2.18


@dataclass(frozen=True, kw_only=True)
class MultiBit(FeatureMechanism[MultiBitReports]):
    """Reports `coordinates` of the `dimension` coordinates, drawn at random, as one private bit each.

    Formal guarantees: epsilon-local privacy for the whole vector under replacement, exactly (the thresholds are
    integers rounded to the private side); estimates are unbiased up to 2^-32 of the range.

    Args:
        epsilon: finite and positive, for the whole vector.
        sampled: coordinates a user reports; default: max(1, min(d, floor(epsilon / 2.18))), the best.

    >>> import torch
    >>> from graphveil.privacy import SeededRandomness
    >>> mechanism = MultiBit(epsilon=4.0, dimension=8)
    >>> mechanism.coordinates, mechanism.report_bytes
    (1, 0.5)
    >>> reports = mechanism.randomize(torch.full((2, 8), 0.25), randomness=SeededRandomness(7))
    >>> reports.indices.flatten(), reports.bits.flatten()
    (tensor([0, 5], dtype=torch.int32), tensor([0, 1], dtype=torch.uint8))
    >>> mechanism.estimate(reports).mean(dim=1)
    tensor([-0.0187,  1.0187])
    """

    epsilon: float
    dimension: int
    low: float = 0.0
    high: float = 1.0
    sampled: int | None = None

    def __post_init__(self) -> None:
        _ = self.domain
        if self.sampled is not None:
            require_whole(1, self.dimension, sampled=self.sampled)
        _validate.require_epsilon(self.epsilon)
        _validate.require_epsilon(self.epsilon, per=self.coordinates)

    @property
    def coordinates(self) -> int:
        """m, the coordinates (and bits) in one report."""
        if self.sampled is not None:
            return self.sampled
        # From public numbers alone; published code first drops constant columns, so its number depends on the data.
        return max(1, math.floor(min(self.dimension, self.epsilon / _BEST_SHARE)))

    @property
    def scale(self) -> float:
        """The size of the numbers of `centred`: d (high - low) / 2m * (e^(eps/m)+1) / (e^(eps/m)-1)."""
        # d/m undoes the sampling of coordinates, the gain undoes the flips (equation 5).
        return self.dimension / self.coordinates * (self.high - self.low) / 2 * self.law.gain

    @property
    def largest(self) -> float:
        """The largest absolute value of a number of `centred`: all have the same."""
        return self.scale

    @property
    def worst_variance(self) -> float:
        # In the middle of the range: the estimate is +-scale with probability m/d and else 0; only its mean moves.
        return self.coordinates / self.dimension * self.scale**2

    @property
    def report_bytes(self) -> float:
        return self.coordinates * (index_bits(self.dimension, self.coordinates) + 1) / 8

    def _encode(self, rows: Rows, randomness: Randomness) -> MultiBitReports:
        count, size = rows.shape[0], self.coordinates
        indices, bits = np.empty((count, size), np.int32), np.empty((count, size), np.uint8)
        for start, stop in self._blocks(rows):
            # Which coordinates are reported does not depend on the values: it is drawn before they are read.
            columns = draw_subsets(stop - start, self.dimension, size, randomness)
            indices[start:stop] = columns
            fractions = self.domain.fractions(rows.at(start, stop, columns))
            bits[start:stop] = self.law.draw(fractions, randomness)
        return MultiBitReports(torch.from_numpy(indices), torch.from_numpy(bits))

    def centred(self, reports: MultiBitReports) -> sparse.csr_matrix:
        """The unbiased estimate minus `midpoint`: float32 [n, d] with m numbers a row, all +-`scale`."""
        return centred_rows(reports.indices, self._worth(reports), self.dimension)

    def estimate(self, reports: MultiBitReports) -> Tensor:
        _validate.require_dense_size(len(reports), self.dimension, "the estimate")
        return dense_rows(reports.indices, self._worth(reports), self.dimension, self.midpoint)

    def _log_likelihood(self, reports: MultiBitReports, rows: Rows, start: int, stop: int) -> FloatArray:
        fractions = self.domain.fractions(rows.at(start, stop, reports.indices.numpy()[start:stop]))
        bits = self.law.log_probability(fractions, reports.bits.numpy()[start:stop]).sum(axis=1)
        # The subset is uniform whatever the value: it drops out of ratios, and makes this a probability.
        logs: FloatArray = bits - log_subsets(self.dimension, self.coordinates)
        return logs

    def _blocks(self, rows: Rows) -> list[tuple[int, int]]:
        return subset_blocks(rows, self.coordinates)

    def variances(self, values: Values) -> FloatArray:
        """The variance of the estimate of each coordinate, float64 [n, d]: m/d scale^2 - (x - midpoint)^2."""
        distance = self.domain.open_dense(values) - self.midpoint
        return self.worst_variance - distance**2

    def every_report(self) -> MultiBitReports:
        indices, bits = every_subset(self.dimension, self.coordinates, 2)
        return MultiBitReports(torch.from_numpy(indices).int(), torch.from_numpy(bits).to(torch.uint8))

    @property
    def law(self) -> BitLaw:
        """The law of one bit, given where its coordinate lies in the range."""
        return bit_law(self.epsilon, self.coordinates)

    def _worth(self, reports: MultiBitReports) -> Worth:
        self._check(reports)
        signs: Worth = reports.bits.numpy().astype(np.float32) * 2 - 1
        return signs * np.float32(self.scale)

    def _check(self, reports: MultiBitReports) -> None:
        require_subsets(reports.indices, self.coordinates, self.dimension, "bits")
        require_inside(reports.bits, 0, 1, "a bit")


@dataclass(frozen=True, kw_only=True)
class OneBit(FeatureMechanism[OneBitReports]):
    """Reports every coordinate as one private bit at epsilon / dimension.

    Formal guarantees: as `MultiBit`'s, of which it is the case m = d.

    >>> import torch
    >>> from graphveil.privacy import SeededRandomness
    >>> mechanism = OneBit(epsilon=8.0, dimension=4)
    >>> reports = mechanism.randomize(torch.tensor([[0.0, 0.5, 1.0, 1.0]]), randomness=SeededRandomness(7))
    >>> reports.packed
    tensor([[48]], dtype=torch.uint8)
    """

    epsilon: float
    dimension: int
    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        _ = self.domain
        _validate.require_epsilon(self.epsilon, per=self.dimension)

    @property
    def scale(self) -> float:
        """The size of the numbers of `centred`: (high - low) / 2 * (e^(eps/d) + 1) / (e^(eps/d) - 1)."""
        return self._multibit.scale

    @property
    def worst_variance(self) -> float:
        return self._multibit.worst_variance

    @property
    def report_bytes(self) -> float:
        return self.dimension / 8

    def _encode(self, rows: Rows, randomness: Randomness) -> OneBitReports:
        # Eight bits a byte: an unpacked report of d coordinates would be as large as the vector.
        packed = np.empty((rows.shape[0], self._bytes), np.uint8)
        for start, stop in blocks(*rows.shape):
            bits = self.law.draw(self.domain.fractions(rows.block(start, stop)), randomness)
            # The last byte is padded with zeros, which `_bits` drops again.
            packed[start:stop] = np.packbits(bits, axis=1)
        return OneBitReports(torch.from_numpy(packed))

    def centred(self, reports: OneBitReports) -> npt.NDArray[np.float32]:
        """The unbiased estimate minus `midpoint`: float32 [n, d], every entry +-`scale`. Raises InputError where the
        reports do not fit, or n d exceeds 2^30.
        """
        self._check(reports)
        _validate.require_dense_size(len(reports), self.dimension, "the estimate")
        return (self._bits(reports, 0, len(reports)) * np.float32(2) - 1) * np.float32(self.scale)

    def _log_likelihood(self, reports: OneBitReports, rows: Rows, start: int, stop: int) -> FloatArray:
        bits, fractions = self._bits(reports, start, stop), self.domain.fractions(rows.block(start, stop))
        # Coordinates draw words of their own, so the log of a report is the sum of theirs.
        logs: FloatArray = self.law.log_probability(fractions, bits).sum(axis=1)
        return logs

    def variances(self, values: Values) -> FloatArray:
        """The variance of the estimate of each coordinate, float64 [n, d]: scale^2 - (x - midpoint)^2."""
        return self._multibit.variances(values)

    def every_report(self) -> OneBitReports:
        _, bits = every_subset(self.dimension, self.dimension, 2)
        return OneBitReports(torch.from_numpy(np.packbits(bits.astype(np.uint8), axis=1)))

    @property
    def law(self) -> BitLaw:
        """The law of one bit, given where its coordinate lies in the range."""
        return self._multibit.law

    @property
    def _multibit(self) -> MultiBit:
        return MultiBit(
            epsilon=self.epsilon, dimension=self.dimension, low=self.low, high=self.high, sampled=self.dimension
        )

    @property
    def _bytes(self) -> int:
        return -(-self.dimension // 8)

    def _check(self, reports: OneBitReports) -> None:
        # A report that is too short would be padded with bits that its user never sent.
        if reports.packed.shape[1] != self._bytes:
            raise InputError(f"reports hold {reports.packed.shape[1]} bytes", allowed=f"{self._bytes}")

    def _bits(self, reports: OneBitReports, start: int, stop: int) -> BitArray:
        return np.unpackbits(reports.packed.numpy()[start:stop], axis=1, count=self.dimension)
