"""The piecewise mechanism (PM): a number near the value, on a few sampled coordinates.

Source: N. Wang et al., "Collecting and Analyzing Multidimensional Data with Local Differential Privacy", ICDE 2019,
https://arxiv.org/abs/1907.00001, Algorithms 2 and 4, on a grid (see `window`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import scipy.sparse
from torch import Tensor

from graphveil.mechanisms.guarantees import feature_guarantee
from graphveil.mechanisms.sampled import SampledVectors, best_coordinates, require_vectors
from graphveil.mechanisms.sampled_reports import SampledReports
from graphveil.mechanisms.values import Values
from graphveil.mechanisms.window import WindowLaw, window_law
from graphveil.privacy import Guarantee, Randomness

# Where d is large the worst variance is least near epsilon/k = 2.42.
_BEST_SHARE: Final = 2.42


@dataclass(frozen=True, kw_only=True)
class Piecewise:
    """Sends a level near each sampled coordinate e^(epsilon/k) times as likely as one further off.

    Formal guarantees: epsilon-local privacy for the whole vector under replacement, exactly (integer weights on a
    grid, rounded to the private side); the possible reports are the same for all inputs; estimates are unbiased up to
    the rounding of their 32-bit numbers.

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
        return self.sampled or best_coordinates(piecewise_law, self.epsilon, self.dimension, _BEST_SHARE)

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
        law = piecewise_law(self.epsilon, self.coordinates)
        return SampledVectors(self.dimension, self.coordinates, self.low, self.high, law)


def piecewise_law(epsilon: float, parts: int) -> WindowLaw:
    """The law of one of `parts` coordinates that share `epsilon`: t = e^(share / 2)."""
    return window_law(epsilon, parts, 2)
