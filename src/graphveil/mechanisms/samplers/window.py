"""The law of the piecewise mechanisms on a grid: a window of likely levels that moves with the value.

Of width + steps levels in a row, the `width` levels from the input position on are near, all others far. The continuous
mechanisms (windows [l, r] in [-C, C]) differ in the ratio t of the room outside the window to the window alone:
e^(epsilon/2) for PM, e^(epsilon/3) for PM-SUB; given t, the window's probability follows from epsilon. On the grid the
mean of a level is linear in the position, exactly; worst variances are within 0.2% of the continuous ones up to a share
of 8, and above they come down to that of rounding to 2^14 steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from graphveil.mechanisms.base.values import FloatArray
from graphveil.mechanisms.samplers.bits import WORD
from graphveil.mechanisms.samplers.laws import Places, TwoWeights, independent, share_of, two_weights
from graphveil.privacy import Randomness

# Levels in the window, a power of two so that the weights come out whole; fewer where that keeps the steps below.
_WIDTH: Final = 64
_MOST_STEPS: Final = 1 << 14


@dataclass(frozen=True)
class WindowLaw:
    """Levels position..position + width - 1 are near."""

    weights: TwoWeights

    @property
    def steps(self) -> int:
        """The last position: with it the window ends at the last level."""
        return self.weights.far

    @property
    def levels(self) -> int:
        """Levels inside and outside the window."""
        return self.weights.near + self.weights.far

    def draw(self, positions: Places, randomness: Randomness) -> Places:
        """Levels for positions [n, k].

        Args:
            positions: int64 [n, k], 0 to steps.
        """
        # The outcome is drawn before the position is looked at; the position only says which level it stands for.
        outcome = self.weights.draw(positions.size, randomness).reshape(positions.shape)
        return self.place(positions, outcome)

    def place(self, positions: Places, outcome: Places) -> Places:
        """The level of each outcome: the near ones fill the window, the far ones what is left, in order.

        Args:
            positions: int64, 0 to steps.
            outcome: int64 in the same shape, as `TwoWeights` draws them.
        """
        left = outcome - self.weights.near
        # Far levels keep their order around the window: those from its place on come after its last level.
        outside = left + (left >= positions) * self.weights.near
        return np.where(left < 0, positions + outcome, outside)

    def probability(self, levels: Places, positions: Places) -> FloatArray:
        """Pr[level | position].

        Args:
            levels, positions: int64 of one shape.
        """
        near = (levels >= positions) & (levels < positions + self.weights.near)
        high, low = np.float64(self.weights.high / WORD), np.float64(self.weights.low / WORD)
        return np.where(near, high, low)

    def log_likelihood(self, levels: Places, below: Places, carry: FloatArray) -> FloatArray:
        """log Pr[row of levels].

        Args:
            levels: int64 [n, k].
            below, carry: positions before rounding, see `laws.Law.log_likelihood`.
        """
        return independent(self.probability, levels, below, carry, self.steps)

    def values(self) -> FloatArray:
        """Equally spaced around 0, and so far apart that means are right."""
        return (2 * np.arange(self.levels, dtype=np.float64) - (self.levels - 1)) * self._spacing

    def second_moments(self) -> FloatArray:
        """The far part of the weight on all levels, the rest on the window."""
        levels, width = self.levels, self.weights.near
        # Sums of squares of the centred odd or even numbers in closed form, so that no table of levels is made.
        everywhere = levels * (levels**2 - 1) / 3
        window = width * ((2 * np.arange(self.steps + 1, dtype=np.float64) - self.steps) ** 2 + (width**2 - 1) / 3)
        return self._spacing**2 * (self.weights.low / WORD * everywhere + self.weights.lean * window)

    @property
    def _spacing(self) -> float:
        """Half the distance of two levels."""
        return 1 / (self.steps * self.weights.near * self.weights.lean)


@lru_cache(maxsize=256)
def window_law(epsilon: float, parts: int, root: int) -> WindowLaw:
    """The law of one of `parts` coordinates that share `epsilon`, with t = e^(epsilon / parts / root).

    Args:
        epsilon: of all coordinates together.
        parts: how many share it.
        root: 2 for PM, 3 for PM-SUB.
    """
    room = math.exp(share_of(epsilon, parts) / root)
    width = _WIDTH
    # The width stays a power of two: near and far counts must have no other common factor (see `two_weights`).
    while width > 1 and width * room > _MOST_STEPS:
        width //= 2
    # Rounding t moves the variance only: what epsilon allows is settled by `two_weights` for whatever counts come out.
    steps = min(max(1, round(width * room)), _MOST_STEPS)
    return WindowLaw(two_weights(width, steps, epsilon, parts))
