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
from graphveil.mechanisms.base.in_range import InRange
from graphveil.mechanisms.base.reports import OneBitReports, require_pairs
from graphveil.mechanisms.base.values import FloatArray, Values, blocks
from graphveil.mechanisms.features.multibit import MultiBit
from graphveil.mechanisms.samplers.bits import BitArray, BitLaw
from graphveil.mechanisms.samplers.subsets import every_subset
from graphveil.privacy import Guarantee, Randomness
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class OneBit(InRange):
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
        """The largest variance of one coordinate's estimate, that of a value in the middle of the range."""
        return self._multibit.worst_variance

    @property
    def report_bytes(self) -> float:
        """Bytes of one report: one bit a coordinate."""
        return self.dimension / 8

    @property
    def guarantee(self) -> Guarantee:
        """What one report protects."""
        return self.domain.guarantee(self.epsilon)

    def randomize(self, values: Values, *, randomness: Randomness) -> OneBitReports:
        """What the devices send: ceil(d/8) bytes each.

        Args:
            values: [n, d], dense or sparse rows, every entry in [low, high].

        Raises:
            InputError: an entry is NaN, infinite or out of range; it is named and nothing is encoded.
        """
        rows = self.open(values)
        # Eight answers a byte: an unpacked report of d coordinates would be the size of the vector itself.
        packed = np.empty((rows.shape[0], self._bytes), np.uint8)
        for start, stop in blocks(*rows.shape):
            bits = self.law.draw(self.domain.fractions(rows.block(start, stop)), randomness)
            # The last byte is filled up with zeros, which are no answers and are dropped again in `_bits`.
            packed[start:stop] = np.packbits(bits, axis=1)
        return OneBitReports(torch.from_numpy(packed))

    def centred(self, reports: OneBitReports) -> npt.NDArray[np.float32]:
        """The unbiased estimate minus `midpoint`: float32 [n, d], every entry +-`scale`.

        Raises:
            InputError: the reports do not fit, or n d exceeds 2^30.
        """
        _validate.fits_in_memory(len(reports), self.dimension, "the estimate")
        return (self._bits(reports, 0, len(reports)) * np.float32(2) - 1) * np.float32(self.scale)

    def estimate(self, reports: OneBitReports) -> Tensor:
        """The unbiased estimate of the values, dense float32 [n, d]; raises as `centred`."""
        return self.domain.uncentred(self.centred(reports))

    def log_likelihood(self, reports: OneBitReports, values: Values) -> Tensor:
        """log Pr[report | value] for each row, float64 [n]; exact: it uses the sampler's own thresholds.

        Args:
            reports: n of them.
            values: [n, d], what each was made from.
        """
        rows = self.domain.open(values)
        require_pairs(len(reports), rows.shape[0])
        result = np.empty(rows.shape[0])
        for start, stop in blocks(*rows.shape):
            bits, fractions = self._bits(reports, start, stop), self.domain.fractions(rows.block(start, stop))
            # Coordinates draw words of their own, so the log of a report is the sum of theirs.
            result[start:stop] = self.law.log_probability(fractions, bits).sum(axis=1)
        return torch.from_numpy(result)

    def variance(self, values: Values) -> Tensor:
        """The variance of the estimate of each coordinate as a tensor, see `variances`."""
        return torch.from_numpy(self.variances(values))

    def variances(self, values: Values) -> FloatArray:
        """The variance of the estimate of each coordinate, float64 [n, d]: scale^2 - (x - midpoint)^2."""
        return self._multibit.variances(values)

    def every_report(self) -> OneBitReports:
        """Every report that a device can send, one a user.

        For audits of small mechanisms.

        Raises:
            InputError: there are more than a million.
        """
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

    def _bits(self, reports: OneBitReports, start: int, stop: int) -> BitArray:
        packed = reports.packed.numpy()
        # Too short a report would otherwise be filled up with answers that its user never gave.
        if packed.shape[1] != self._bytes:
            raise InputError(f"reports hold {packed.shape[1]} bytes", allowed=f"{self._bytes}")
        return np.unpackbits(packed[start:stop], axis=1, count=self.dimension)
