"""Laws of sampled coordinates: how a position on a public grid becomes a level, and what that costs in variance.

A law has finitely many inputs and outputs, all probabilities whole multiples of 2^-64. Averages of the levels' values
are linear in the position, so estimates are unbiased, and E[v^2 | x] is linear between two positions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Protocol

import numpy as np
import numpy.typing as npt

from graphveil.mechanisms.base.values import FloatArray
from graphveil.privacy import Randomness

Places = npt.NDArray[np.int64]


class Law(Protocol):
    """Randomizes the positions 0..steps of k coordinates of each user; values are in half-ranges around the middle."""

    @property
    def steps(self) -> int:
        """The last input position, which stands for the high end; 0 stands for the low end."""
        ...

    @property
    def levels(self) -> int:
        """How many output levels a coordinate has."""
        ...

    def draw(self, positions: Places, randomness: Randomness) -> Places:
        """Output levels for input positions [n, k]; the number of words used depends on n and k alone.

        Args:
            positions: int64 [n, k], 0 to steps.
        """
        ...

    def log_likelihood(self, levels: Places, below: Places, carry: FloatArray) -> FloatArray:
        """log Pr[row of levels] when each entry is at below + 1 with probability carry, at below otherwise.

        Args:
            levels: int64 [n, k], what was sent.
            below: int64 [n, k], the grid point below each entry.
            carry: float64 [n, k], the probability of rounding up.

        Returns:
            float64 [n].
        """
        ...

    def values(self) -> FloatArray:
        """What each level adds to the estimate: at position s its average is 2 s / steps - 1."""
        ...

    def second_moments(self) -> FloatArray:
        """The average square of the value at every position, [steps + 1]."""
        ...


def independent(
    probability: Callable[[Places, Places], FloatArray], levels: Places, below: Places, carry: FloatArray, steps: int
) -> FloatArray:
    """`Law.log_likelihood` of a law that treats the coordinates one by one.

    Args:
        probability: Pr[level | position] of one coordinate.
        levels, below, carry: as there.
        steps: the last position.
    """
    # Rounding is part of the law: the probability of a level is the mixture over both positions it may have been
    # rounded to.
    mixed = (1 - carry) * probability(levels, below)
    mixed += carry * probability(levels, np.minimum(below + 1, steps))
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

    Args:
        law: of the coordinates that are sent.
        dimension: d.
        coordinates: k, how many of them are sent.

    Returns:
        In squared half-ranges.
    """
    # d/k, not its square: the estimate multiplies by d/k, and is 0 with probability 1 - k/d.
    squares = law.second_moments() * (dimension / coordinates)
    ends = np.linspace(-1.0, 1.0, law.steps + 1)
    slopes = np.diff(squares) * (law.steps / 2)
    # On each piece the variance is a parabola that opens down: its peak, or the nearer end of the piece.
    peaks = np.clip(slopes / 2, ends[:-1], ends[1:])
    return float((squares[:-1] + slopes * (peaks - ends[:-1]) - peaks**2).max())
