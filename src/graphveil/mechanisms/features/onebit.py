"""The 1-bit mechanism: every coordinate as one private bit, the budget split evenly over all of them.

Source: B. Ding, J. Kulkarni, S. Yekhanin, "Collecting Telemetry Data Privately", NeurIPS 2017,
https://arxiv.org/abs/1712.01524, equation 1 (1BitMean), with epsilon/d for each coordinate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from graphveil.errors import InputError
from graphveil.mechanisms.base import _validate
from graphveil.mechanisms.base.mechanism import FeatureMechanism
from graphveil.mechanisms.base.reports import OneBitReports
from graphveil.mechanisms.base.values import FloatArray, Rows, Values, blocks
from graphveil.mechanisms.features.multibit import MultiBit
from graphveil.mechanisms.samplers.bits import BitArray, BitLaw
from graphveil.mechanisms.samplers.subsets import every_subset
from graphveil.privacy import Randomness
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, kw_only=True)
class OneBit(FeatureMechanism[OneBitReports]):
    """Reports every coordinate as one private bit at epsilon / dimension.

    Formal guarantees: as `MultiBit`'s, of which it is the case m = d.

    Args:
        epsilon: finite and positive, for the whole vector.
        dimension: number of coordinates d.
        low, high: the declared, public range of every coordinate.

    Raises:
        InputError: a parameter is outside its range, NaN included.

    >>> import torch
    >>> from graphveil.privacy import SeededRandomness
    >>> mechanism = OneBit(epsilon=8.0, dimension=4)
    >>> reports = mechanism.randomize(torch.tensor([[0.0, 0.5, 1.0, 1.0]]), randomness=SeededRandomness(7))
    >>> reports.packed
    tensor([[32]], dtype=torch.uint8)
    """

    epsilon: float
    dimension: int
    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        _ = self.domain
        _validate.positive_epsilon(self.epsilon, per=self.dimension)

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
        # Eight answers a byte: an unpacked report of d coordinates would be the size of the vector itself.
        packed = np.empty((rows.shape[0], self._bytes), np.uint8)
        for start, stop in blocks(*rows.shape):
            bits = self.law.draw(self.domain.fractions(rows.block(start, stop)), randomness)
            # The last byte is filled up with zeros, which are no answers and are dropped again in `_bits`.
            packed[start:stop] = np.packbits(bits, axis=1)
        return OneBitReports(torch.from_numpy(packed))

    def centred(self, reports: OneBitReports) -> npt.NDArray[np.float32]:
        """The unbiased estimate minus `midpoint`: float32 [n, d], every entry +-`scale`."""
        self._check(reports)
        _validate.fits_in_memory(len(reports), self.dimension, "the estimate")
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
        """The multi-bit mechanism of which this is the case that every coordinate is sampled."""
        return MultiBit(
            epsilon=self.epsilon, dimension=self.dimension, low=self.low, high=self.high, sampled=self.dimension
        )

    @property
    def _bytes(self) -> int:
        return -(-self.dimension // 8)

    def _check(self, reports: OneBitReports) -> None:
        # Too short a report would otherwise be filled up with answers that its user never gave.
        if reports.packed.shape[1] != self._bytes:
            raise InputError(f"reports hold {reports.packed.shape[1]} bytes", allowed=f"{self._bytes}")

    def _bits(self, reports: OneBitReports, start: int, stop: int) -> BitArray:
        return np.unpackbits(reports.packed.numpy()[start:stop], axis=1, count=self.dimension)
