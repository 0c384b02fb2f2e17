"""Laws of sampled coordinates: how a position on a public grid becomes a level, and what that costs in variance.

A law has finitely many inputs and outputs, all probabilities whole multiples of 2^-64. Averages of the levels' values
are linear in the position, so estimates are unbiased, and E[v^2 | x] is linear between two positions.

`TwoWeights` is a uniform choice from two groups of outcomes: every near one owns `high` and every far one `low` of the
2^64 equally likely words, so the probabilities of an outcome under any two inputs, near to one and far from the other,
differ by a factor of at most high / low <= e^epsilon.

`WindowLaw` is the law of the piecewise mechanisms: of width + steps levels in a row, the `width` levels from the input
position on are near, all others far. The continuous mechanisms (windows [l, r] in [-C, C]) differ in the ratio t of the
room outside the window to the window alone: e^(epsilon/2) for PM, e^(epsilon/3) for PM-SUB; given t, the window's
probability follows from epsilon. On the grid the mean of a level is linear in the position, exactly; worst variances
are within 0.2% of the continuous ones up to a share of 8, and above they come down to that of rounding to 2^14 steps.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from graphveil.mechanisms.base.values import FloatArray
from graphveil.mechanisms.samplers.bits import PRECISION, WORD, round_up
from graphveil.privacy import Randomness

# e^50 > 2^64: a larger epsilon for one choice cannot make an outcome rarer than one word.
LARGEST_SHARE: Final = 50.0


@dataclass(frozen=True)
class TwoWeights:
    """`near` outcomes of weight `high` and `far` outcomes of weight `low`: near high + far low = 2^64."""

    near: int
    far: int
    high: int
    low: int

    @property
    def lean(self) -> float:
        """By how much the probability of a near outcome exceeds that of a far one."""
        return (self.high - self.low) / WORD

    def draw(self, count: int, randomness: Randomness) -> npt.NDArray[np.int64]:
        """`count` outcomes: the near ones are 0..near-1, the far ones follow."""
        return self.outcome_of(randomness.uint64(count))

    def outcome_of(self, words: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """The outcome that owns each word."""
        edge = self.near * self.high
        far = np.uint64(self.near) + (words - np.uint64(edge)) // np.uint64(self.low)
        return np.where(words < np.uint64(edge), words // np.uint64(self.high), far).astype(np.int64)


def share_of(epsilon: float, parts: int) -> float:
    """The epsilon of one of `parts` equal choices in floating point, to choose sizes; never for probabilities."""
    return min(epsilon / parts, LARGEST_SHARE)


def exp_share(epsilon: float, parts: int) -> Decimal:
    """e^(epsilon / parts) to 60 digits; epsilon / parts counts as at most 50."""
    with localcontext(PRECISION):
        return min(Decimal(epsilon) / parts, Decimal(LARGEST_SHARE)).exp()


@lru_cache(maxsize=256)
def two_weights(near: int, far: int, epsilon: float, parts: int = 1) -> TwoWeights:
    """The weights of the highest ratio that epsilon / parts allows; `low` is rounded up, to the private side.
    `near` and `far` must have no common factor but powers of two.

    Args:
        near, far: how many outcomes there are of each.
    """
    with localcontext(PRECISION):
        # From near high + far low = 2^64 with high = e^epsilon low; a larger `low` is a smaller ratio.
        low = round_up(WORD / (near * exp_share(epsilon, parts) + far))
    # The next weight for which what is left divides evenly among the near outcomes.
    common = math.gcd(near, far)
    modulus, step = near // common, far // common
    # A larger `low` means a smaller ratio high / low, so the search for an even division never costs privacy.
    low += (WORD // common - step * low) * pow(step, -1, modulus) % modulus
    return TwoWeights(near, far, (WORD - far * low) // near, low)


Places = npt.NDArray[np.int64]


class Law(Protocol):
    """Randomizes the positions 0..steps of k coordinates of each user; values are in half-ranges from the middle."""

    @property
    def steps(self) -> int:
        """The last input position, which stands for the high end; 0 stands for the low end."""

    @property
    def levels(self) -> int:
        """How many output levels a coordinate has."""

    def draw(self, positions: Places, randomness: Randomness) -> Places:
        """Output levels for input positions [n, k]; the number of words used depends on n and k alone.

        Args:
            positions: int64 [n, k], 0 to steps.
        """

    def log_likelihood(self, levels: Places, below: Places, carry: FloatArray) -> FloatArray:
        """log Pr[row of levels] when each entry is at below + 1 with probability carry, at below otherwise.
        Returns float64 [n].

        Args:
            levels: int64 [n, k], what was sent.
            below: int64 [n, k], the grid point below each entry.
            carry: float64 [n, k], the probability of rounding up.
        """

    def values(self) -> FloatArray:
        """The value of each level in the estimate: at position s their average is 2 s / steps - 1."""

    def second_moments(self) -> FloatArray:
        """The average square of the value at every position, [steps + 1]."""


class IndependentLaw(ABC):
    """A `Law` that treats the coordinates one by one."""

    @property
    @abstractmethod
    def steps(self) -> int: ...

    @abstractmethod
    def probability(self, levels: Places, positions: Places) -> FloatArray:
        """Pr[level | position] of one coordinate.

        Args:
            levels, positions: int64 of one shape.
        """

    def log_likelihood(self, levels: Places, below: Places, carry: FloatArray) -> FloatArray:
        """As `Law.log_likelihood`."""
        # Rounding is part of the law: a mixture over both positions that the entry may have been rounded to.
        mixed = (1 - carry) * self.probability(levels, below)
        mixed += carry * self.probability(levels, np.minimum(below + 1, self.steps))
        # A level that a position rules out has probability 0 and logarithm -inf, which is the right answer.
        with np.errstate(divide="ignore"):
            logs: FloatArray = np.log(mixed).sum(axis=1)
        return logs


@lru_cache(maxsize=64)
def best_coordinates(make: Callable[[float, int], Law], epsilon: float, dimension: int, share: float) -> int:
    """The number k of sampled coordinates with the least worst variance.

    Args:
        make: the law for (epsilon, k).
        share: the epsilon of one coordinate that is best where d is large; k is within 2 of epsilon / share.
    """
    # Four candidates around the best share of epsilon; that no other k is better is tested, not proved.
    middle = math.floor(min(float(dimension), epsilon / share))
    near = range(max(1, middle - 1), min(dimension, middle + 2) + 1)
    return min(near, key=lambda k: worst_variance(make(epsilon, k), dimension, k))


def worst_variance(law: Law, dimension: int, coordinates: int) -> float:
    """The largest of d/k E[v^2 | x] - x^2 over x in [-1, 1]; between two positions E[v^2 | x] is linear.
    Returns the number in squared half-ranges.
    """
    # d/k, not its square: the estimate multiplies by d/k, and is 0 with probability 1 - k/d.
    squares = law.second_moments() * (dimension / coordinates)
    ends = np.linspace(-1.0, 1.0, law.steps + 1)
    slopes = np.diff(squares) * (law.steps / 2)
    # On each piece the variance is a parabola that opens down: its peak, or the nearer end of the piece.
    peaks = np.clip(slopes / 2, ends[:-1], ends[1:])
    return float((squares[:-1] + slopes * (peaks - ends[:-1]) - peaks**2).max())


# Levels in the window, a power of two so that weights are whole numbers; fewer where steps would exceed the next.
_WIDTH: Final = 64
_MOST_STEPS: Final = 1 << 14


@dataclass(frozen=True)
class WindowLaw(IndependentLaw):
    """Levels position..position + width - 1 are near."""

    weights: TwoWeights

    @property
    def steps(self) -> int:
        """The last position: with it the window ends at the last level."""
        return self.weights.far

    @property
    def levels(self) -> int:
        return self.weights.near + self.weights.far

    def draw(self, positions: Places, randomness: Randomness) -> Places:
        """Levels for positions [n, k]."""
        # The outcome is drawn before the position is looked at; the position only says which level it stands for.
        outcome = self.weights.draw(positions.size, randomness).reshape(positions.shape)
        return self.level_of(positions, outcome)

    def level_of(self, positions: Places, outcome: Places) -> Places:
        """The level of each outcome: the near ones fill the window, the far ones what is left, in order.

        Args:
            positions: int64, 0 to steps.
            outcome: int64 in the same shape, as `TwoWeights` draws them.
        """
        far_index = outcome - self.weights.near
        # Far levels keep their order around the window: those from its place on come after its last level.
        outside = far_index + (far_index >= positions) * self.weights.near
        return np.where(far_index < 0, positions + outcome, outside)

    def probability(self, levels: Places, positions: Places) -> FloatArray:
        near = (levels >= positions) & (levels < positions + self.weights.near)
        high, low = np.float64(self.weights.high / WORD), np.float64(self.weights.low / WORD)
        return np.where(near, high, low)

    def values(self) -> FloatArray:
        """Equally spaced around 0, at the distance that makes means unbiased."""
        return (2 * np.arange(self.levels, dtype=np.float64) - (self.levels - 1)) * self._spacing

    def second_moments(self) -> FloatArray:
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
