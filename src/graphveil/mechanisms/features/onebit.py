"""The 1-bit mechanism: every coordinate as one private bit, the budget split evenly over all of them.

Source: B. Ding, J. Kulkarni, S. Yekhanin, "Collecting Telemetry Data Privately", NeurIPS 2017,
https://arxiv.org/abs/1712.01524, equation 1 (1BitMean), with epsilon/d for each coordinate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.mechanisms.base.checks import require_count, require_dense, require_epsilon, require_range
from graphveil.mechanisms.base.guarantees import feature_guarantee
from graphveil.mechanisms.base.reports import OneBitReports, require_pairs
from graphveil.mechanisms.base.values import FloatArray, Rows, Values, blocks, open_rows, open_values
from graphveil.mechanisms.samplers.bits import BitArray, BitLaw, bit_law
from graphveil.mechanisms.samplers.subsets import every_subset
from graphveil.privacy import Guarantee, Randomness


@dataclass(frozen=True, kw_only=True)
class OneBit:
    """Reports every coordinate as one private bit at epsilon / dimension.

    Formal guarantees: as `MultiBit`'s, of which it is the case m = d.

    Args:
        epsilon: finite and positive, for the whole vector.
        dimension: number of coordinates d.
        low, high: the declared, public range of every coordinate.

    Raises:
        InputError: a parameter is outside its range, NaN included.
    """

    epsilon: float
    dimension: int
    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        require_count("dimension", self.dimension, 1, 2**31 - 1)
        require_range(self.low, self.high)
        require_epsilon(self.epsilon, self.dimension)

    @property
    def midpoint(self) -> float:
        """The middle of the range, which `centred` leaves out."""
        return self.low + (self.high - self.low) / 2

    @property
    def scale(self) -> float:
        """The size of the numbers of `centred`: (high - low) / 2 * (e^(eps/d) + 1) / (e^(eps/d) - 1)."""
        return (self.high - self.low) / 2 * self._law.gain

    @property
    def worst_variance(self) -> float:
        """The largest variance of one coordinate's estimate, that of a value in the middle of the range."""
        return self.scale**2

    @property
    def report_bytes(self) -> float:
        """Bytes of one report: one bit a coordinate."""
        return self.dimension / 8

    @property
    def guarantee(self) -> Guarantee:
        """What one report protects."""
        return feature_guarantee(self.epsilon, 0.0, self.dimension, self.low, self.high)

    def randomize(self, values: Values, *, randomness: Randomness) -> OneBitReports:
        """What the devices send: ceil(d/8) bytes each.

        Args:
            values: [n, d], dense or sparse rows, every entry in [low, high].
            randomness: the source of the noise.

        Raises:
            InputError: an entry is NaN, infinite or out of range; it is named and nothing is encoded.
        """
        rows = open_values(values, self.dimension, self.low, self.high)
        packed = np.empty((rows.shape[0], self._bytes), np.uint8)
        for start, stop in blocks(*rows.shape):
            bits = self._law.draw(self._fractions(rows, start, stop), randomness)
            packed[start:stop] = np.packbits(bits, axis=1)
        return OneBitReports(torch.from_numpy(packed))

    def centred(self, reports: OneBitReports) -> npt.NDArray[np.float32]:
        """The unbiased estimate minus `midpoint`: float32 [n, d], every entry +-`scale`.

        Raises:
            InputError: the reports do not fit, or n d exceeds 50,000,000.
        """
        require_dense(len(reports), self.dimension, "the estimate")
        return (self._bits(reports, 0, len(reports)) * np.float32(2) - 1) * np.float32(self.scale)

    def estimate(self, reports: OneBitReports) -> Tensor:
        """The unbiased estimate of the values, dense float32 [n, d]; raises as `centred`."""
        return torch.from_numpy(self.centred(reports)) + self.midpoint

    def log_likelihood(self, reports: OneBitReports, values: Values) -> Tensor:
        """log Pr[report | value] for each row, float64 [n]; exact: it uses the sampler's own thresholds."""
        rows = open_values(values, self.dimension, self.low, self.high)
        require_pairs(len(reports), rows.shape[0])
        result = np.empty(rows.shape[0])
        for start, stop in blocks(*rows.shape):
            bits = self._bits(reports, start, stop)
            result[start:stop] = self._law.log_probability(self._fractions(rows, start, stop), bits).sum(axis=1)
        return torch.from_numpy(result)

    def variance(self, values: Values) -> Tensor:
        """The variance of the estimate of each coordinate, float64 [n, d]: scale^2 - (x - midpoint)^2."""
        rows = open_rows(values, self.dimension)
        require_dense(*rows.shape, "the variance")
        return torch.from_numpy(self.scale**2 - (rows.block(0, rows.shape[0]) - self.midpoint) ** 2)

    def every_report(self) -> OneBitReports:
        """Every report that a device can send, one a user.

        For audits of small mechanisms.

        Raises:
            InputError: there are more than a million.
        """
        _, bits = every_subset(self.dimension, self.dimension, 2)
        return OneBitReports(torch.from_numpy(np.packbits(bits.astype(np.uint8), axis=1)))

    @property
    def _law(self) -> BitLaw:
        return bit_law(self.epsilon, self.dimension)

    @property
    def _bytes(self) -> int:
        return -(-self.dimension // 8)

    def _fractions(self, rows: Rows, start: int, stop: int) -> FloatArray:
        return np.clip((rows.block(start, stop) - self.low) / (self.high - self.low), 0.0, 1.0)

    def _bits(self, reports: OneBitReports, start: int, stop: int) -> BitArray:
        packed = reports.packed.numpy()
        if packed.shape[1] != self._bytes:
            raise InputError(f"reports hold {packed.shape[1]} bytes", allowed=f"{self._bytes}")
        return np.unpackbits(packed[start:stop], axis=1, count=self.dimension)
