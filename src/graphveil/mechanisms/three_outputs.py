"""The three-outputs mechanism: minus, nothing or plus, on a few sampled coordinates.

Source: Y. Zhao et al., "Local Differential Privacy-Based Federated Learning for Internet of Things", IEEE Internet of
Things Journal 8(11), 2021, https://arxiv.org/abs/2004.08856. Its law is linear between the values -1, 0 and 1, so a
value is rounded to one of the three at random and a public table of integers does the rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import Final

import numpy as np
import scipy.sparse
from torch import Tensor

from graphveil.mechanisms.bits import PRECISION, WORD, round_up
from graphveil.mechanisms.guarantees import feature_guarantee
from graphveil.mechanisms.sampled import Places, SampledVectors, best_coordinates, independent, require_vectors
from graphveil.mechanisms.sampled_reports import SampledReports
from graphveil.mechanisms.two_weights import exp_share, share_of
from graphveil.mechanisms.values import FloatArray, Values
from graphveil.privacy import Guarantee, Randomness

# Where d is large the worst variance is least near epsilon/k = 2.48.
_BEST_SHARE: Final = 2.48


@dataclass(frozen=True, kw_only=True)
class ThreeOutputs:
    """Sends -C, 0 or C for each sampled coordinate, with the chance of 0 that the paper found best for d = 1.

    Formal guarantees: epsilon-local privacy for the whole vector under replacement, exactly (integer weights on a
    grid, rounded to the private side); the possible reports are the same for all inputs; estimates are unbiased up to
    the rounding of their 32-bit numbers.
    Below a share of log 2 it never sends 0 and is Duchi's mechanism for one coordinate.

    Args:
        epsilon: finite and positive, for the whole vector.
        dimension: number of coordinates d.
        low, high: the declared, public range of every coordinate.
        sampled: coordinates a user reports, each at epsilon / k; default: the number with the least worst variance.

    Raises:
        InputError: a parameter is outside its range, NaN included.
    """

    epsilon: float
    dimension: int
    low: float = 0.0
    high: float = 1.0
    sampled: int | None = None

    def __post_init__(self) -> None:
        require_vectors(self.epsilon, self.dimension, self.low, self.high, self.sampled)

    @property
    def coordinates(self) -> int:
        """k, the coordinates in one report."""
        return self.sampled or best_coordinates(three_outputs_law, self.epsilon, self.dimension, _BEST_SHARE)

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
        """The variance of the estimate of each coordinate, float64 [n, d]: d/k E[v^2 | x] - x^2 in half-ranges."""
        return self._vectors.variance(values)

    @property
    def _vectors(self) -> SampledVectors:
        law = three_outputs_law(self.epsilon, self.coordinates)
        return SampledVectors(self.dimension, self.coordinates, self.low, self.high, law)


@dataclass(frozen=True)
class ThreeOutputsLaw:
    """Words out of 2^64 for each level, in the middle of the range and at its ends.

    Args:
        nothing: for 0 in the middle; what is left goes to -C and C in equal parts.
        nothing_at_end: for 0 at either end.
        wrong: for -C at the high end, and for C at the low one.
    """

    nothing: int
    nothing_at_end: int
    wrong: int

    @property
    def steps(self) -> int:
        """Low end, middle, high end."""
        return 2

    @property
    def levels(self) -> int:
        """-C, 0 and C."""
        return 3

    @property
    def weights(self) -> tuple[tuple[int, int, int], ...]:
        """For every position the words of -C, 0 and C."""
        half, right = (WORD - self.nothing) // 2, WORD - self.nothing_at_end - self.wrong
        low = right, self.nothing_at_end, self.wrong
        return low, (half, self.nothing, half), low[::-1]

    def draw(self, positions: Places, randomness: Randomness) -> Places:
        """Levels for positions [n, k]."""
        words = randomness.uint64(positions.size).reshape(positions.shape)
        first = np.array([minus for minus, _, _ in self.weights], np.uint64)
        second = np.array([minus + nothing for minus, nothing, _ in self.weights], np.uint64)
        above: Places = (words >= first[positions]).astype(np.int64) + (words >= second[positions])
        return above

    def probability(self, levels: Places, positions: Places) -> FloatArray:
        """Pr[level | position]."""
        table = np.array([[weight / WORD for weight in row] for row in self.weights])
        chances: FloatArray = table[positions, levels]
        return chances

    def log_likelihood(self, levels: Places, below: Places, carry: FloatArray) -> FloatArray:
        """log Pr[row of levels]."""
        return independent(self.probability, levels, below, carry, self.steps)

    def values(self) -> FloatArray:
        """-C, 0 and C, with C the inverse of how much more often than the wrong one the right end is sent."""
        size = WORD / (WORD - self.nothing_at_end - 2 * self.wrong)
        return np.array([-size, 0.0, size])

    def second_moments(self) -> FloatArray:
        """C^2 times the chance of not sending 0."""
        silent = np.array([nothing / WORD for _, nothing, _ in self.weights])
        squares: FloatArray = self.values()[2] ** 2 * (1 - silent)
        return squares


@lru_cache(maxsize=256)
def three_outputs_law(epsilon: float, parts: int) -> ThreeOutputsLaw:
    """The law of one of `parts` coordinates that share `epsilon`; what is rarer is rounded up, to the private side."""
    with localcontext(PRECISION):
        ratio = exp_share(epsilon, parts)
        nothing = 2 * int(WORD * _silence(share_of(epsilon, parts), ratio) / 2)
        at_end = round_up(nothing / ratio) if nothing else 0
        wrong = round_up((WORD - at_end) / (ratio + 1))
    # Only where the ratio exceeds 2^64 / 2 is the middle left with fewer words for an end than the far end has.
    return ThreeOutputsLaw(min(nothing, WORD - 2 * wrong), at_end, wrong)


def _silence(share: float, ratio: Decimal) -> Decimal:
    """a, the chance of 0 in the middle of the range that gives the least worst variance for d = 1."""
    if share < math.log(2):
        return Decimal(0)
    if share >= math.log(5.53):
        return ratio / (ratio + 2)
    e = math.exp(share)
    first = e**4 + 14 * e**3 + 50 * e**2 - 2 * e + 25
    second = -2 * e**6 - 42 * e**5 - 270 * e**4 - 404 * e**3 - 918 * e**2 + 30 * e - 250
    angle = math.pi / 3 + math.acos(max(-1.0, min(1.0, -second / (2 * first**1.5)))) / 3
    return Decimal(max(0.0, -(-(e**2) - 4 * e - 5 + 2 * math.sqrt(first) * math.cos(angle)) / 6))
