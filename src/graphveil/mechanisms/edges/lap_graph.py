"""A noisy number of edges, placed where noisy cells are largest (LapGraph), in time proportional to the edges.

How likely a set of cells is to be the k largest is one integral over where the k-th largest lies. With a number u in
[0, 1) that ranks equal cells at random, a cell's place is its level + u. A set is the largest if its lowest place t
lies above all others: the integral over t of (a1 f1 / S1 + a0 f0 / S0) S1^a1 S0^a0 F1^b1 F0^b0. Here a1 (a0) cells of
the set and b1 (b0) others hold 1 (0), and f, S, F are density, upper and lower tail of a place. Inside a level S and F
are linear in u, so the powers are polynomials, and their product is log-concave: each level is integrated by Gauss and
Legendre on both sides of its peak, as far as it is not negligible.

Source: F. Wu, Y. Long, C. Zhang, B. Li, "LinkTeller: Recovering Private Edges from Graph Neural Networks via Influence
Analysis", IEEE S&P 2022, https://arxiv.org/abs/2108.06504; the noise is two-sided geometric instead of Laplace's, equal
cells are ranked at random. The linear-time idea: H. H. Nguyen, A. Imine, M. Rusinowitch, "Differentially Private
Publication of Social Graphs at Linear Cost", ASONAM 2015.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from graphveil.engine import LOCAL, Engine
from graphveil.errors import InputError
from graphveil.mechanisms.base import _validate
from graphveil.mechanisms.base.guarantees import PairMechanism
from graphveil.mechanisms.base.values import FloatArray
from graphveil.mechanisms.edges.edge_sampling import place_blocks
from graphveil.mechanisms.edges.neighbour_lists import PairEstimate
from graphveil.mechanisms.edges.noisy_top_k import noisy_top_k
from graphveil.mechanisms.edges.pair_domain import PairDomain, Pairs, pairs_of
from graphveil.mechanisms.samplers.geometric import TwoSided, two_sided
from graphveil.privacy import Randomness
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.runtime.checks import require_number
from graphveil.runtime.late import special, torch
from graphveil.runtime.sorted_arrays import contains

if TYPE_CHECKING:
    from torch import Tensor

# Levels below e^-50 of the largest are left out; the first factor and the width of a level may add another e^50.
_NEGLIGIBLE: Final = 50.0
_HALVINGS: Final = 45
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)


@dataclass(frozen=True)
class Side:
    """The cells that hold the same value: `largest` of them are among the largest, `rest` are not."""

    largest: int
    rest: int
    mass: FloatArray
    above: FloatArray
    below: FloatArray

    def log_product(self, u: FloatArray) -> FloatArray:
        """log S^a F^b at u [levels, ...]."""
        upper, lower = self._tails(u)
        result: FloatArray = self.largest * _log_probability(upper, lower) + self.rest * _log_probability(lower, upper)
        return result

    def slope(self, u: FloatArray) -> FloatArray:
        upper, lower = self._tails(u)
        return _broadcast(self.mass, u) * (self.rest / lower - self.largest / upper)

    def rate(self, u: FloatArray) -> FloatArray:
        """a f / S."""
        return self.largest * _broadcast(self.mass, u) / self._tails(u)[0]

    def at(self, near: npt.NDArray[np.bool_]) -> Side:
        return Side(self.largest, self.rest, self.mass[near], self.above[near], self.below[near])

    def _tails(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        mass = _broadcast(self.mass, u)
        return _broadcast(self.above, u) + mass * (1 - u), _broadcast(self.below, u) + mass * u


@lru_cache(maxsize=4096)
def log_probability_of_top_k(largest: tuple[int, int], rest: tuple[int, int], noise: TwoSided) -> float:
    """log Pr[these cells are the largest]; equal cells are ranked uniformly at random.

    Args:
        largest: how many cells of the set hold 0, and 1.
        rest: how many other cells hold 0, and 1.
    """
    # With nothing on one side there is one set only, and it has probability 1.
    if not (sum(largest) and sum(rest)):
        return 0.0
    # The largest of all cells lies beyond this with probability below e^-60: such levels add nothing.
    reach = math.ceil((math.log(sum(largest) + sum(rest)) + _NEGLIGIBLE + 10) / noise.rate) + 2
    levels = np.arange(-reach, reach + 1)
    sides = [_side(a, b, levels - value, noise) for value, (a, b) in enumerate(zip(largest, rest, strict=True))]
    # Where the product is largest on each level: its logarithm is concave, so by bisection of the slope. 45 halvings
    # place the peak to 3e-14 of a level, far finer than the rule of integration needs.
    peak, high = np.zeros(len(levels)), np.ones(len(levels))
    for _ in range(_HALVINGS):
        middle = (peak + high) / 2
        rises = sides[0].slope(middle) + sides[1].slope(middle) > 0
        peak, high = np.where(rises, middle, peak), np.where(rises, high, middle)
    near = _product(sides, peak) > _product(sides, peak).max() - 2 * _NEGLIGIBLE
    sides, peak = [side.at(near) for side in sides], peak[near]
    # Cut at the peak: on either side of it the product is monotone, and 64 nodes are enough.
    parts = [
        _integral(sides, *sorted_ends)
        for sorted_ends in ((_negligible_from(sides, peak, 0.0), peak), (peak, _negligible_from(sides, peak, 1.0)))
    ]
    return float(special.logsumexp(np.concatenate(parts)))


def _side(largest: int, rest: int, levels: npt.NDArray[np.int64], noise: TwoSided) -> Side:
    """The cells that hold one value, given the noise `levels` at which they reach each level."""
    mass, above, below = (
        np.exp(part) for part in (noise.log_pmf(levels), noise.log_tail(levels + 1), noise.log_tail(1 - levels))
    )
    return Side(largest, rest, mass, above, below)


def _product(sides: list[Side], u: FloatArray) -> FloatArray:
    return sides[0].log_product(u) + sides[1].log_product(u)


def _negligible_from(sides: list[Side], peak: FloatArray, end: float) -> FloatArray:
    """The last point from the peak towards the end at which the product is not negligible."""
    inside, outside, least = peak, np.full_like(peak, end), _product(sides, peak) - _NEGLIGIBLE
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        relevant = _product(sides, middle) > least
        inside, outside = np.where(relevant, middle, inside), np.where(relevant, outside, middle)
    return outside


def _integral(sides: list[Side], start: FloatArray, stop: FloatArray) -> FloatArray:
    half = (stop - start)[:, None] / 2
    u = start[:, None] + half * (1 + _NODES)
    with np.errstate(divide="ignore"):
        weights = np.log(half * _WEIGHTS)
    terms = _product(sides, u) + np.log(sides[0].rate(u) + sides[1].rate(u)) + weights
    result: FloatArray = special.logsumexp(terms, axis=1)
    return result


def _log_probability(part: FloatArray, rest: FloatArray) -> FloatArray:
    """The logarithm of a probability, from the smaller of `part` and its complement `rest`."""
    # Near 1 from the complement: 1 - 1e-20 is 1 in floating point, and the exponents are in the millions.
    result: FloatArray = np.where(rest < 0.5, np.log1p(-np.minimum(rest, 0.5)), np.log(part))
    return result


def _broadcast(levels: FloatArray, u: FloatArray) -> FloatArray:
    """Numbers by level, in a shape that broadcasts against u [levels, ...]."""
    return levels if u.ndim == 1 else levels[:, None]


# Below this part of epsilon a noisy level would not fit into 64 bits.
_SMALLEST_PART: float = 1e-9


@dataclass(frozen=True, kw_only=True)
class LapGraph(PairMechanism):
    """Releases as many pairs as there are edges, up to noise: those whose noisy cells are largest. With e1 =
    count_share epsilon and e2 the rest: the number of private edges with noise of e1, cut to what is possible, says how
    many pairs are released; each protected pair's cell, 1 if related and else 0, gets noise of e2. Raises InputError
    where a parameter is outside its range, NaN included, or a part of epsilon is below 1e-9.

    Formal guarantees: epsilon for one private undirected edge, which moves the number by 1 and one cell by 1; the noise
    is exact, and every set of protected pairs is possible for every graph.

    Args:
        epsilon: finite and positive, for one private edge.
        count_share: the part of epsilon for the number of edges, in (0, 1).

    >>> import torch
    >>> from graphveil.mechanisms import PairDomain
    >>> from graphveil.privacy import SeededRandomness
    >>> mechanism = LapGraph(epsilon=8.0, domain=PairDomain(5), count_share=0.5)
    >>> mechanism.randomize(torch.tensor([[0, 1], [1, 2]]), randomness=SeededRandomness(7))
    tensor([[0, 1],
            [1, 2]])
    """

    epsilon: float
    domain: PairDomain
    count_share: float = 0.01

    def __post_init__(self) -> None:
        _validate.require_epsilon(self.epsilon)
        share = self.count_share
        require_number("(0, 1)", count_share=share)
        if min(share, 1 - share) * self.epsilon < _SMALLEST_PART:
            raise InputError(
                f"epsilon {rounded_up(self.epsilon)} with count_share {share:g} leaves too little for one part",
                allowed=f"at least {_SMALLEST_PART:g} each",
            )

    def randomize(self, pairs: Pairs, *, randomness: Randomness, engine: Engine = LOCAL) -> Tensor:
        """The synthetic private edges. Returns int64 [2, S], u < v, distinct protected pairs in ascending order. Raises
        InputError where a pair is not protected; nothing is drawn.

        Args:
            pairs: the private edges, integers [2, m], u < v; what is listed twice counts once.
        """
        true, size = self._ranks(pairs), self.domain.size
        # The number is private and paid for on its own; cutting it to what is possible looks at nothing private.
        noisy = len(true) + int(self._count_noise.draw(1, randomness)[0])
        # The cells have noise of their own, so that number and cells compose by adding up: one edge moves each by 1.
        released = min(max(noisy, 0), size)
        blocks = place_blocks(size, released, people=1)
        chosen = noisy_top_k(true, blocks, released, self._cell_noise, randomness, engine=engine)
        return torch.from_numpy(pairs_of(chosen, *self.domain.arrays))

    def estimate(self, released: Pairs) -> PairEstimate:
        """The released pairs as they are: 1 for each, 0 for all others.
        Its `total` is unbiased unless the number was cut; single pairs are not: what is largest was selected.
        """
        return PairEstimate(self.domain.unrank(self._ranks(released)), 1.0, 0.0, self.domain.size)

    def log_likelihood(self, released: Pairs, pairs: Pairs) -> Tensor:
        """log Pr[released | private edges], float64 []: the number's, and one integral over the cells' threshold.

        Args:
            released: [2, S], u < v, protected pairs in any order.
            pairs: [2, m], u < v, the private edges.
        """
        reported, true, size = self._ranks(released), self._ranks(pairs), self.domain.size
        common = int(contains(true, reported).sum())
        # Only how many cells of each kind were chosen matters: cells of a kind are exchangeable.
        largest = len(reported) - common, common
        rest = size - len(reported) - (len(true) - common), len(true) - common
        cells = log_probability_of_top_k(largest, rest, self._cell_noise)
        count = 0.0
        if size:
            noise, distance = self._count_noise, np.array([abs(len(reported) - len(true))])
            # Clamped at both ends, which collect all noise beyond them.
            at_end = len(reported) in (0, size)
            count = float((noise.log_tail(distance) if at_end else noise.log_pmf(distance))[0])
        return torch.tensor(count + cells, dtype=torch.float64)

    @property
    def _count_noise(self) -> TwoSided:
        return two_sided(self.count_share * self.epsilon)

    @property
    def _cell_noise(self) -> TwoSided:
        return two_sided((1 - self.count_share) * self.epsilon)
