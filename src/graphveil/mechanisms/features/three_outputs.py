"""The three-outputs mechanism: minus, nothing or plus, on a few sampled coordinates.

-C, 0 or C, with the chance of 0 that the paper found best for d = 1. Below a share of log 2 it never sends 0 and is
Duchi's mechanism for one coordinate.

Source: Y. Zhao et al., "Local Differential Privacy-Based Federated Learning for Internet of Things", IEEE Internet of
Things Journal 8(11), 2021, https://arxiv.org/abs/2004.08856. Its law is linear between the values -1, 0 and 1, so a
value is rounded to one of the three at random and a public table of integers does the rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache, partial
from typing import Final

import numpy as np

from graphveil.mechanisms.base.values import FloatArray
from graphveil.mechanisms.features.sampled import SamplingKind
from graphveil.mechanisms.samplers.bits import PRECISION, WORD, round_up
from graphveil.mechanisms.samplers.laws import IndependentLaw, Places, best_coordinates, exp_share, share_of
from graphveil.privacy import Randomness

# Where d is large the worst variance is least near epsilon/k = 2.48.
_BEST_SHARE: Final = 2.48


@dataclass(frozen=True)
class ThreeOutputsLaw(IndependentLaw):
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
        return 2

    @property
    def levels(self) -> int:
        return 3

    @property
    def weights(self) -> tuple[tuple[int, int, int], ...]:
        """For every position the words of -C, 0 and C."""
        half, right = (WORD - self.nothing) // 2, WORD - self.nothing_at_end - self.wrong
        low = right, self.nothing_at_end, self.wrong
        return low, (half, self.nothing, half), low[::-1]

    def draw(self, positions: Places, randomness: Randomness) -> Places:
        """Levels for positions [n, k].

        Args:
            positions: int64 [n, k], 0 for the low end, 1 for the middle, 2 for the high end.
        """
        words = randomness.uint64(positions.size).reshape(positions.shape)
        first = np.array([minus for minus, _, _ in self.weights], np.uint64)
        second = np.array([minus + nothing for minus, nothing, _ in self.weights], np.uint64)
        above: Places = (words >= first[positions]).astype(np.int64) + (words >= second[positions])
        return above

    def probability(self, levels: Places, positions: Places) -> FloatArray:
        table = np.array([[weight / WORD for weight in row] for row in self.weights])
        chances: FloatArray = table[positions, levels]
        return chances

    def values(self) -> FloatArray:
        """-C, 0 and C, with C the inverse of the probability of the right end minus that of the wrong end."""
        size = WORD / (WORD - self.nothing_at_end - 2 * self.wrong)
        return np.array([-size, 0.0, size])

    def second_moments(self) -> FloatArray:
        silent = np.array([nothing / WORD for _, nothing, _ in self.weights])
        squares: FloatArray = self.values()[2] ** 2 * (1 - silent)
        return squares


@lru_cache(maxsize=256)
def three_outputs_law(epsilon: float, parts: int) -> ThreeOutputsLaw:
    """The law of one of `parts` coordinates that share `epsilon`; what is rarer is rounded up, to the private side."""
    with localcontext(PRECISION):
        ratio = exp_share(epsilon, parts)
        # Even, so that what is left divides into two equal halves for -C and C.
        nothing = 2 * int(WORD * _best_silence(share_of(epsilon, parts), ratio) / 2)
        # The level 0 is at most e^epsilon times as likely in the middle as at the ends, where it is rounded up.
        at_end = round_up(nothing / ratio) if nothing else 0
        # The right end gets e^epsilon times as many of the remaining words as the wrong end.
        wrong = round_up((WORD - at_end) / (ratio + 1))
    # Only where the ratio exceeds 2^64 / 2 is the middle left with fewer words for an end than the far end has.
    return ThreeOutputsLaw(min(nothing, WORD - 2 * wrong), at_end, wrong)


def _best_silence(share: float, ratio: Decimal) -> Decimal:
    """a, the chance of 0 in the middle of the range that gives the least worst variance for d = 1."""
    if share < math.log(2):
        return Decimal(0)
    if share >= math.log(5.53):
        return ratio / (ratio + 2)
    # The paper's closed form between log 2 and log 5.53. In floating point: integers settle what is private.
    e = math.exp(share)
    first = e**4 + 14 * e**3 + 50 * e**2 - 2 * e + 25
    second = -2 * e**6 - 42 * e**5 - 270 * e**4 - 404 * e**3 - 918 * e**2 + 30 * e - 250
    angle = math.pi / 3 + math.acos(max(-1.0, min(1.0, -second / (2 * first**1.5)))) / 3
    return Decimal(max(0.0, -(-(e**2) - 4 * e - 5 + 2 * math.sqrt(first) * math.cos(angle)) / 6))


ThreeOutputs: Final = SamplingKind(
    "ThreeOutputs", three_outputs_law, partial(best_coordinates, three_outputs_law, share=_BEST_SHARE)
)
