"""The Laplace mechanism on an integer grid.

Source: C. Dwork, F. McSherry, K. Nissim, A. Smith, "Calibrating Noise to Sensitivity in Private Data
Analysis", TCC 2006, Proposition 1, with two-sided geometric noise in place of the continuous one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from graphveil.errors import InputError
from graphveil.mechanisms.base import _validate
from graphveil.mechanisms.base.lattice import Lattice, LatticeMechanism
from graphveil.mechanisms.samplers.geometric import TwoSidedGeometric
from graphveil.privacy.accounting.printed import rounded_up

# The grid is the coarsest whose noise is still this many steps: rounding then adds nothing that matters.
_STEPS_OF_NOISE: Final = 64
# Reports reach this many noise scales beyond the range; noise further out has probability e^-40.
_REACH: Final = 40
# More than 32 a coordinate hides nothing and gains nothing: the noise is then half a thousandth of the range.
_LARGEST_SHARE: Final = 32.0
# Subtracted from epsilon: far more than finite thresholds and finite support can add to it.
_SLACK: Final = 1e-12


@dataclass(frozen=True, kw_only=True)
class Laplace(LatticeMechanism):
    """Adds two-sided geometric noise at epsilon / dimension to every coordinate. Raises InputError where a parameter is
    outside its range, NaN included, or d / epsilon exceeds 10^7.

    Formal guarantees: epsilon-local privacy for the whole vector under replacement; the possible reports are the same
    for all inputs; estimates are unbiased up to e^-40 of the noise.

    >>> import torch
    >>> from graphveil.privacy import SeededRandomness
    >>> mechanism = Laplace(epsilon=1.0, dimension=1)
    >>> mechanism.step
    0.015625
    >>> mechanism.estimate(mechanism.randomize(torch.tensor([[0.5]]), randomness=SeededRandomness(7)))
    tensor([[1.5938]])
    """

    epsilon: float
    dimension: int
    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        _ = self.domain
        _validate.require_epsilon(self.epsilon, per=self.dimension)
        if self.dimension / self.epsilon > 1e7:
            raise InputError(
                f"epsilon {rounded_up(self.epsilon)} for {self.dimension} coordinates means noise of "
                f"{self.dimension / self.epsilon:g} ranges",
                allowed="at most 1e7",
                remedy="use MultiBit",
            )

    @property
    def lattice(self) -> Lattice:
        # In grid steps the noise has scale steps / share; reports beyond 40 scales are clamped.
        reach = math.ceil(_REACH * self._steps / self._share)
        # Twice as far as any report reaches: what the finite support changes there is below e^-80.
        support = 2 * (reach + self._steps)
        noise = TwoSidedGeometric(self._share / self._steps, support.bit_length())
        return Lattice(self.domain, noise, self._steps, reach)

    @property
    def _share(self) -> float:
        """Epsilon for one coordinate."""
        # L1 sensitivity of a whole vector is d ranges; an even split over coordinates is the same noise in each.
        return min(self.epsilon / self.dimension, _LARGEST_SHARE) * (1 - _SLACK)

    @property
    def _steps(self) -> int:
        """Grid steps in the range, a power of two."""
        # A power of two, so that grid points of [0, 1] are exact in floating point; public, from epsilon and d alone.
        return 1 << max(0, math.ceil(math.log2(_STEPS_OF_NOISE * self._share)))
