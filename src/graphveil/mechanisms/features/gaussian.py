"""The analytic Gaussian mechanism on an integer grid.

Source: B. Balle, Y.-X. Wang, "Improving the Gaussian Mechanism for Differential Privacy: Analytical
Calibration and Optimal Denoising", ICML 2018, https://arxiv.org/abs/1805.06530v2, Algorithm 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from graphveil.errors import InputError
from graphveil.mechanisms.base import _validate
from graphveil.mechanisms.base.lattice import Lattice, LatticeMechanism
from graphveil.mechanisms.samplers.rounded_normal import RELATIVE_ERROR, RoundedNormal
from graphveil.privacy import Guarantee, analytic_gaussian_sigma
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.runtime.late import special

# The grid is no finer than this many steps for one sigma: more would only make the table slower.
_MOST_STEPS: Final = 1 << 10
_FINEST_POWER: Final = 8
_LARGEST_TABLE: Final = 1 << 21
# A larger epsilon hides nothing and gains little; this cap keeps the tails within the table's digits.
_LARGEST_EPSILON: Final = 32.0
_SMALLEST_DELTA: Final = 1e-30
# The part of delta that pays for cutting the noise's tails.
_TAIL_SHARE: Final = 1e-3


class _Calibration(NamedTuple):
    """sigma in grid steps, grid steps in the range, and how far beyond the range reports may lie."""

    sigma: float
    steps: int
    reach: int


@dataclass(frozen=True, kw_only=True)
class AnalyticGaussian(LatticeMechanism):
    """Adds rounded normal noise, calibrated to the whole vector, to every coordinate. Raises InputError where a
    parameter is outside its range, NaN included, or the table exceeds 2^21 entries.

    Formal guarantees: (epsilon, delta)-local privacy for the whole vector under replacement; it covers what the table's
    rounding and cut tails can add; the possible reports are the same for all inputs.

    Args:
        epsilon: finite and positive, for the whole vector.
        delta: in [1e-30, 1).

    >>> import torch
    >>> from graphveil.privacy import SeededRandomness
    >>> mechanism = AnalyticGaussian(epsilon=1.0, delta=1e-6, dimension=2)
    >>> round(mechanism.sigma, 3)
    5.975
    >>> mechanism.estimate(mechanism.randomize(torch.zeros(1, 2), randomness=SeededRandomness(7)))
    tensor([[ 2.3125, 10.2500]])
    """

    epsilon: float
    delta: float
    dimension: int
    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        _ = self.domain
        _validate.require_epsilon(self.epsilon)
        _validate.require_delta(_SMALLEST_DELTA, delta=self.delta)
        _calibrate(self.epsilon, self.delta, self.dimension)

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise before rounding, in the unit of the values."""
        return self.noise.sigma * self.step

    @property
    def guarantee(self) -> Guarantee:
        return self.domain.guarantee(self.epsilon, self.delta)

    @property
    def lattice(self) -> Lattice:
        return Lattice(self.domain, self.noise, *_calibrate(self.epsilon, self.delta, self.dimension)[1:])

    @property
    def noise(self) -> RoundedNormal:
        """The noise, in grid steps."""
        sigma, steps, reach = _calibrate(self.epsilon, self.delta, self.dimension)
        # The noise reaches past the far end of the range, so that all inputs have the same reports.
        return RoundedNormal(sigma, reach + steps)


@lru_cache(maxsize=64)
def _calibrate(epsilon: float, delta: float, dimension: int) -> _Calibration:
    """The noise and the grid for (epsilon, delta), after subtracting from both what the table can add.

    With cell probabilities right up to a factor e^t, and a mass of c cut off the tails of each of d
    coordinates, the table is (e0 + 2 d t, e^(d t) (d0 + d c (1 + e^e0)))-private where the rounded normal is
    (e0, d0)-private. The sensitivity is sqrt(d) ranges.
    """
    rounding = 2 * dimension * RELATIVE_ERROR
    # The table's rounding and cut tails are subtracted from (epsilon, delta) first; the noise is for the rest.
    reduced_epsilon = min(epsilon, _LARGEST_EPSILON) - rounding
    if rounding > epsilon / 10:
        raise InputError(
            f"epsilon {rounded_up(epsilon)} is too small for {dimension} coordinates", remedy="use MultiBit"
        )
    multiplier = analytic_gaussian_sigma(
        reduced_epsilon, delta * (1 - 2 * _TAIL_SHARE - rounding), math.sqrt(dimension)
    )
    # A power of two keeps the grid points of [0, 1] exact in floating point.
    power = max(0, min(_FINEST_POWER, math.floor(math.log2(_MOST_STEPS / multiplier))))
    # Twice the rounding of the square root and the product.
    sigma = multiplier * 2**power * (1 + 1e-15)
    # Standard deviations beyond which the tails of all coordinates weigh at most their part of delta.
    # A union over coordinates, and e^epsilon for the neighbour's side; in logs, since delta may be 1e-30.
    log_tail_mass = math.log(_TAIL_SHARE * delta / dimension) - math.log1p(math.exp(reduced_epsilon))
    # At least 7, which are exceeded with probability 3e-12, so that clamping costs no accuracy.
    deviations = 7.0
    while math.log(2) + float(special.log_ndtr(-deviations)) > log_tail_mass:
        deviations += 0.25
    reach = math.ceil(sigma * deviations)
    if 2 * reach > _LARGEST_TABLE:
        raise InputError(
            f"epsilon {rounded_up(epsilon)} for {dimension} coordinates means noise of {multiplier:g} ranges",
            allowed=f"a table of at most {_LARGEST_TABLE} entries",
            remedy="use MultiBit",
        )
    return _Calibration(sigma, 2**power, reach)
