"""How likely a set of noisy cells is to be the k largest: one integral over where the k-th largest lies.

With a number u in [0, 1) that ranks equal cells at random, a cell's place is its level + u. A set is the largest if its
lowest place t lies above all others: the integral over t of (a1 f1 / S1 + a0 f0 / S0) S1^a1 S0^a0 F1^b1 F0^b0.
Here a1 (a0) cells of the set and b1 (b0) others hold 1 (0), and f, S, F are density, upper and lower tail of a place.
Inside a level S and F are linear in u, so the powers are polynomials, and their product is log-concave: each level is
integrated by Gauss and Legendre on both sides of its peak, as far as it is not negligible.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from graphveil.mechanisms.base.values import FloatArray
from graphveil.mechanisms.samplers.two_sided import TwoSided
from graphveil.runtime.late import special

# What is below e^-50 of the largest is left out; the first factor and the parts' widths may make up for another e^50.
_DROP: Final = 50.0
_HALVINGS: Final = 45
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)


@dataclass(frozen=True)
class Side:
    """The cells that hold the same: `largest` of them are among the largest, `rest` are not."""

    largest: int
    rest: int
    mass: FloatArray
    above: FloatArray
    below: FloatArray

    def log_product(self, u: FloatArray) -> FloatArray:
        """log S^a F^b at u [levels, ...]."""
        upper, lower = self._tails(u)
        result: FloatArray = self.largest * _log(upper, lower) + self.rest * _log(lower, upper)
        return result

    def slope(self, u: FloatArray) -> FloatArray:
        """The derivative of `log_product`."""
        upper, lower = self._tails(u)
        return _tall(self.mass, u) * (self.rest / lower - self.largest / upper)

    def rate(self, u: FloatArray) -> FloatArray:
        """a f / S."""
        return self.largest * _tall(self.mass, u) / self._tails(u)[0]

    def at(self, near: npt.NDArray[np.bool_]) -> Side:
        """The same on these levels alone."""
        return Side(self.largest, self.rest, self.mass[near], self.above[near], self.below[near])

    def _tails(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        mass = _tall(self.mass, u)
        return _tall(self.above, u) + mass * (1 - u), _tall(self.below, u) + mass * u


@lru_cache(maxsize=4096)
def log_probability_of_top_k(largest: tuple[int, int], rest: tuple[int, int], noise: TwoSided) -> float:
    """log Pr[these cells are the largest]; equal cells are ranked uniformly at random.

    Args:
        largest: how many cells of the set hold 0, and 1.
        rest: how many other cells hold 0, and 1.
        noise: what is added to each cell.
    """
    # With nothing on one side there is one set only, and it has probability 1.
    if not (sum(largest) and sum(rest)):
        return 0.0
    # Beyond this the largest of all cells lies with probability below e^-60: those levels add nothing.
    reach = math.ceil((math.log(sum(largest) + sum(rest)) + _DROP + 10) / noise.rate) + 2
    levels = np.arange(-reach, reach + 1)
    sides = [_side(a, b, levels - value, noise) for value, (a, b) in enumerate(zip(largest, rest, strict=True))]
    peak = _peak(sides, len(levels))
    near = _product(sides, peak) > _product(sides, peak).max() - 2 * _DROP
    sides, peak = [side.at(near) for side in sides], peak[near]
    # Cut at the peak: on either side of it the product is monotone, and 64 nodes are enough.
    parts = [
        _integral(sides, *sorted_ends)
        for sorted_ends in ((_edge(sides, peak, 0.0), peak), (peak, _edge(sides, peak, 1.0)))
    ]
    return float(special.logsumexp(np.concatenate(parts)))


def _side(largest: int, rest: int, levels: npt.NDArray[np.int64], noise: TwoSided) -> Side:
    """The cells whose noise is at `levels` when they are at each level."""
    mass, above, below = (
        np.exp(part) for part in (noise.log_pmf(levels), noise.log_tail(levels + 1), noise.log_tail(1 - levels))
    )
    return Side(largest, rest, mass, above, below)


def _product(sides: list[Side], u: FloatArray) -> FloatArray:
    return sides[0].log_product(u) + sides[1].log_product(u)


def _peak(sides: list[Side], levels: int) -> FloatArray:
    """Where the product is largest on each level: its logarithm is concave, so by bisection of the slope."""
    # 45 halvings place the peak to 3e-14 of a level, far finer than the rule of integration needs.
    low, high = np.zeros(levels), np.ones(levels)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        rises = sides[0].slope(middle) + sides[1].slope(middle) > 0
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    return low


def _edge(sides: list[Side], peak: FloatArray, end: float) -> FloatArray:
    """The last point from the peak towards the end at which the product is not negligible."""
    inside, outside, least = peak, np.full_like(peak, end), _product(sides, peak) - _DROP
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        counts = _product(sides, middle) > least
        inside, outside = np.where(counts, middle, inside), np.where(counts, outside, middle)
    return outside


def _integral(sides: list[Side], start: FloatArray, stop: FloatArray) -> FloatArray:
    """The logarithm of the integral from start to stop, on each level."""
    half = (stop - start)[:, None] / 2
    u = start[:, None] + half * (1 + _NODES)
    with np.errstate(divide="ignore"):
        weights = np.log(half * _WEIGHTS)
    terms = _product(sides, u) + np.log(sides[0].rate(u) + sides[1].rate(u)) + weights
    result: FloatArray = special.logsumexp(terms, axis=1)
    return result


def _log(part: FloatArray, rest: FloatArray) -> FloatArray:
    """The logarithm of a probability, from the smaller of it and what is left."""
    # Near 1 the logarithm is taken of what is missing: 1 - 1e-20 is 1 in floating point, and millions of cells multiply
    # it.
    result: FloatArray = np.where(rest < 0.5, np.log1p(-np.minimum(rest, 0.5)), np.log(part))
    return result


def _tall(levels: FloatArray, u: FloatArray) -> FloatArray:
    """Numbers by level, to be combined with u [levels, ...]."""
    return levels if u.ndim == 1 else levels[:, None]
