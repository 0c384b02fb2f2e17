"""Duchi et al.'s mechanism for vectors of signs, on a few sampled coordinates.

Source: J. C. Duchi, M. I. Jordan, M. J. Wainwright, "Minimax Optimal Procedures for Locally Private Estimation", JASA
113(521), 2018, https://arxiv.org/abs/1604.02390, section 4.2.3, in the form of N. Wang et al., "Collecting and
Analyzing Multidimensional Data with Local Differential Privacy", ICDE 2019, https://arxiv.org/abs/1907.00001,
Algorithms 1 and 3. Ties, which an even number of coordinates has, are on the unlikely side alone: the common version
that counts them on both sides costs log(1 + e^epsilon).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import scipy.sparse
from torch import Tensor

from graphveil.mechanisms.bits import WORD
from graphveil.mechanisms.guarantees import feature_guarantee
from graphveil.mechanisms.sampled import Places, SampledVectors, require_vectors
from graphveil.mechanisms.sampled_reports import SampledReports
from graphveil.mechanisms.two_weights import TwoWeights, two_weights
from graphveil.mechanisms.values import FloatArray, Values
from graphveil.privacy import Guarantee, Randomness

# The variance B_k(epsilon)^2 d / k is least at k = 1 (epsilon below 1.34) or k = 2; never above.
_USEFUL: Final = (1, 2)
_MOST: Final = 8


@dataclass(frozen=True, kw_only=True)
class Duchi:
    """Rounds sampled coordinates to signs and sends signs that agree with most of them e^epsilon times as likely.

    The signs of one report share the whole epsilon; nothing is split. Formal guarantees: epsilon-local privacy for the
    whole vector under replacement, exactly (integer weights, rounded to the private side); the possible reports are the
    same for all inputs; estimates are unbiased up to the rounding of their 32-bit numbers.

    Args:
        epsilon: finite and positive, for the whole vector.
        dimension: number of coordinates d.
        low, high: the declared, public range of every coordinate.
        sampled: coordinates a user reports, at most 8; default: the number, 1 or 2, with the least worst variance.

    Raises:
        InputError: a parameter is outside its range, NaN included.
    """

    epsilon: float
    dimension: int
    low: float = 0.0
    high: float = 1.0
    sampled: int | None = None

    def __post_init__(self) -> None:
        require_vectors(self.epsilon, self.dimension, self.low, self.high, self.sampled, most=_MOST)

    @property
    def coordinates(self) -> int:
        """k, the coordinates in one report."""
        if self.sampled is not None:
            return self.sampled
        return min(_USEFUL[: self.dimension], key=lambda k: signs_law(self.epsilon, k).second_moments()[0] / k)

    @property
    def midpoint(self) -> float:
        """The middle of the range, which `centred` leaves out."""
        return self._vectors.midpoint

    @property
    def largest(self) -> float:
        """The largest size of a number of `centred`."""
        return self._vectors.largest

    @property
    def worst_variance(self) -> float:
        """The largest variance of one coordinate's estimate over all inputs in the range."""
        return self._vectors.worst_variance

    @property
    def report_bytes(self) -> float:
        """Bytes of one report, its indices and levels packed."""
        return self._vectors.report_bytes

    @property
    def guarantee(self) -> Guarantee:
        """What one report protects."""
        return feature_guarantee(self.epsilon, 0.0, self.dimension, self.low, self.high)

    def randomize(self, values: Values, *, randomness: Randomness) -> SampledReports:
        """What the devices send: the only place that touches private values.

        Args:
            values: [n, d], dense or sparse rows, every entry in [low, high].
            randomness: the source of the noise.

        Raises:
            InputError: an entry is NaN, infinite or out of range; it is named and nothing is encoded.
        """
        return self._vectors.randomize(values, randomness)

    def centred(self, reports: SampledReports) -> scipy.sparse.csr_matrix:
        """The unbiased estimate minus `midpoint`: float32 [n, d] with k numbers a row."""
        return self._vectors.centred(reports)

    def estimate(self, reports: SampledReports) -> Tensor:
        """The unbiased estimate of the values, dense float32 [n, d]; prefer `centred` where d is large.

        Raises:
            InputError: the reports do not fit, or n d exceeds 50,000,000.
        """
        return self._vectors.estimate(reports)

    def log_likelihood(self, reports: SampledReports, values: Values) -> Tensor:
        """log Pr[report | value] for each row, float64 [n]; exact: it uses the sampler's own integers."""
        return self._vectors.log_likelihood(reports, values)

    def variance(self, values: Values) -> Tensor:
        """The variance of the estimate of each coordinate, float64 [n, d]: d/k B^2 - x^2 in half-ranges."""
        return self._vectors.variance(values)

    @property
    def _vectors(self) -> SampledVectors:
        law = signs_law(self.epsilon, self.coordinates)
        return SampledVectors(self.dimension, self.coordinates, self.low, self.high, law)


@dataclass(frozen=True)
class SignsLaw:
    """k signs at once: those that agree with more than half of the true ones are near, all others far."""

    signs: int
    weights: TwoWeights

    @property
    def steps(self) -> int:
        """Entries are rounded to the ends of the range: a true sign."""
        return 1

    @property
    def levels(self) -> int:
        """Minus and plus."""
        return 2

    def draw(self, positions: Places, randomness: Randomness) -> Places:
        """Signs to send for true signs [n, k]."""
        sent: Places = positions ^ _flips(self.signs)[self.weights.draw(len(positions), randomness)]
        return sent

    def log_likelihood(self, levels: Places, below: Places, carry: FloatArray) -> FloatArray:
        """log Pr[signs], by the number of true signs that each row of signs agrees with."""
        plus = below + carry
        agrees = np.where(levels == 1, plus, 1 - plus)
        number = np.zeros((len(levels), self.signs + 1))
        number[:, 0] = 1.0
        for place in range(self.signs):
            p = agrees[:, place : place + 1]
            number[:, 1:] = number[:, 1:] * (1 - p) + number[:, :-1] * p
            number[:, :1] *= 1 - p
        near = number[:, self.signs // 2 + 1 :].sum(axis=1)
        logs: FloatArray = np.log(self.weights.low / WORD + near * self.weights.lean)
        return logs

    def values(self) -> FloatArray:
        """-B and B, the inverse of how much more often than not a sent sign is the true one."""
        gain = 1 / (self.weights.lean * math.comb(self.signs - 1, self.signs // 2))
        return np.array([-gain, gain])

    def second_moments(self) -> FloatArray:
        """B^2, whatever the input."""
        return np.square(self.values())


@lru_cache(maxsize=256)
def signs_law(epsilon: float, signs: int) -> SignsLaw:
    """The law of `signs` signs under one epsilon."""
    near = sum(math.comb(signs, agreeing) for agreeing in range(signs // 2 + 1, signs + 1))
    return SignsLaw(signs, two_weights(near, 2**signs - near, epsilon))


@lru_cache(maxsize=_MOST)
def _flips(signs: int) -> Places:
    """Which signs each outcome turns around, [2^k, k]: the outcomes that turn fewer than half come first."""
    patterns = (np.arange(2**signs)[:, None] >> np.arange(signs)) & 1
    result = patterns[np.argsort(patterns.sum(axis=1), kind="stable")].astype(np.int64)
    result.setflags(write=False)
    return result
