"""The law of a report that names one of K codewords: the t closest to the value share most of the probability.

Each of the 2^64 outcomes of one draw belongs to one place in the order of closeness: `inside` outcomes to each of the
t closest codewords, `outside` to each of the others, `inside` at most e^eps times `outside` in whole numbers. Whatever
the value, exactly t codewords are the closest, so this is the whole proof of privacy.

The codewords are the 2m vectors +g_1, -g_1, ..., +g_m, -g_m of a Gaussian codebook. Seen from a unit vector v their
closeness is +-w_i with independent standard normal w_i, so that all averages follow from order statistics of |w|.

Source: A. Bhowmick et al., "Protection Against Reconstruction and Its Applications in Private Federated Learning",
2018, https://arxiv.org/abs/1812.00984 (PrivUnit); H. Asi, V. Feldman, K. Talwar, "Optimal Algorithms for Mean
Estimation under Local Differential Privacy", ICML 2022, https://arxiv.org/abs/2205.02466 (its optimum, and Gaussian
vectors); B. Isik et al., "Exact Optimality of Communication-Privacy-Utility Tradeoffs in Distributed Mean
Estimation", NeurIPS 2023, https://arxiv.org/abs/2306.04924 (the k closest of a symmetric codebook).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from graphveil.mechanisms.base.values import FloatArray
from graphveil.mechanisms.samplers.bits import PRECISION, WORD, round_up
from graphveil.runtime.late import special

# The largest codebook by default, and the factor in variance by which a smaller one may be worse.
_LARGEST_DEFAULT: Final = 1024
_TOLERANCE: Final = 1.03
# Standard normal numbers beyond 10 have probability below 2e-23.
_FARTHEST: Final = 10.0

Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class CapLaw:
    """Outcomes (of 2^64) of each of the `closest` codewords and of each of the others."""

    codewords: int
    closest: int
    inside: int
    outside: int

    @property
    def gain(self) -> float:
        """The mean component of a report's codeword in the direction of the value: E[g_sent . v]."""
        return (self.inside - self.outside) / WORD * float(_order_statistics(self.codewords)[0][self.closest - 1])

    @property
    def second_moment(self) -> float:
        """E[(g_sent . v)^2]."""
        squares = float(_order_statistics(self.codewords)[1][self.closest - 1])
        return self.inside / WORD * squares + self.outside / WORD * (self.codewords - squares)

    def places(self, uniform: npt.NDArray[np.uint64]) -> Places:
        """The place in the order of closeness, 0..codewords - 1, that each outcome belongs to."""
        distant = self.codewords - self.closest
        # The first outcomes belong to the far codewords, the rest to the closest: one word decides.
        beyond = uniform < np.uint64(distant * self.outside)
        far = np.uint64(self.closest) + uniform // np.uint64(self.outside)
        near = (uniform - np.uint64(distant * self.outside)) // np.uint64(self.inside)
        return np.where(beyond, far, near).astype(np.int64)

    def log_probability(self, near: npt.NDArray[np.bool_]) -> FloatArray:
        """The logarithm of the probability of one codeword, by whether it is among the closest."""
        inside, outside = (math.log(outcomes) - math.log(WORD) for outcomes in (self.inside, self.outside))
        return np.where(near, inside, outside)


@lru_cache(maxsize=256)
def cap_law(epsilon: float, codewords: int | None = None) -> CapLaw:
    """The law with the least variance among those of `codewords` codewords, a power of two.
    By default their number is the smallest whose variance is within 3% of that of 1024 codewords.

    Args:
        codewords: K; None: the number that the 3% rule chooses.
    """
    if codewords is not None:
        return _law_in_outcomes(epsilon, codewords, _best_closest(epsilon, codewords)[0])
    limit = _best_closest(epsilon, _LARGEST_DEFAULT)[1] * _TOLERANCE
    sizes = (2**power for power in range(1, _LARGEST_DEFAULT.bit_length()))
    smallest = next(size for size in sizes if _best_closest(epsilon, size)[1] <= limit)
    return cap_law(epsilon, smallest)


def _best_closest(epsilon: float, codewords: int) -> tuple[int, float]:
    """The number of closest codewords with the least 1 / gain^2, and that value."""
    # At most half: of a codeword and its opposite one points towards the value; more could only lower the gain.
    closest = np.arange(1, codewords // 2 + 1)
    decay = math.exp(-epsilon)
    # Gain of t closest codewords: their probability less what they would have anyway, times how close they are.
    gains = -math.expm1(-epsilon) / (closest + (codewords - closest) * decay) * _order_statistics(codewords)[0]
    index = int(np.argmax(gains))
    return index + 1, float(gains[index]) ** -2


def _law_in_outcomes(epsilon: float, codewords: int, closest: int) -> CapLaw:
    """The probabilities in whole outcomes: all 2^64 are given out, and rounding goes to the private side."""
    with localcontext(PRECISION):
        # Beyond e^50 each codeword further off has next to no outcome, whatever the number of codewords.
        least = round_up(WORD / (Decimal(min(epsilon, 50.0)).exp() * closest + codewords - closest))
    distant = codewords - closest
    # The first count that leaves a multiple of `closest`; there is one, as the number of codewords is a power of two.
    outside = next(count for count in range(least, least + closest) if (WORD - distant * count) % closest == 0)
    return CapLaw(codewords, closest, (WORD - distant * outside) // closest, outside)


@lru_cache(maxsize=32)
def _order_statistics(codewords: int) -> tuple[FloatArray, FloatArray]:
    """Sums of E|w| and of E[w^2] over the t = 1, 2, ..., codewords/2 largest of as many |w|.
    Each is the number of |w| times the integral of x (or x^2) against the density of |w|, times the probability that
    fewer than t of the others are larger than x, by Gauss and Legendre's rule.
    """
    count = codewords // 2
    nodes, weights = np.polynomial.legendre.leggauss(400)
    x, weights = (nodes + 1) * _FARTHEST / 2, weights * _FARTHEST / 2
    density = math.sqrt(2 / math.pi) * np.exp(-(x**2) / 2)
    larger = np.arange(1, count)
    # A sum of binomial probabilities as one incomplete beta function, which keeps its digits where they all are tiny.
    few = np.ones((len(x), count))
    few[:, :-1] = special.betainc(count - larger, larger, 1 - 2 * special.ndtr(-x)[:, None])
    return count * (weights * density * x) @ few, count * (weights * density * x**2) @ few
