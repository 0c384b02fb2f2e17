"""One private bit: answers 1 with a probability that grows linearly with the value, from integer thresholds.

The low threshold is T0 = ceil(2^64 / (e^eps + 1)) and the high one 2^64 - T0, so the probabilities of an
answer under any two values differ by a factor of at most (2^64 - T0) / T0 <= e^eps, no rounding left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from graphveil.mechanisms.base.values import FloatArray
from graphveil.privacy import Randomness

WORD: Final = 1 << 64
#: Bits of a word that name an entry of a sampler's table, of 16 bits each. Twice as many entries leave fewer draws
#: undecided, but then look-ups leave the cache.
ENTRY_BITS: Final = 15
#: Bits of a 32-bit word that come after its entry.
REST_BITS: Final = 32 - ENTRY_BITS
#: Draws of a tile, and how many numbers it has for those of them that their first 32 bits leave open.
TILE: Final = 1 << 10
FURTHER_WORDS: Final = 1 << 6
_HALF_WORD: Final = np.uint64(32)
_LOW_BITS: Final = np.uint64((1 << 32) - 1)
# e^50 > 2^64: from here on the smallest threshold there is, 1, is already private enough.
_LARGEST_EXPONENT: Final = 50
PRECISION: Final = Context(prec=60)

BitArray = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class BitLaw:
    """Probabilities (as multiples of 2^-64) with which a bit answers 1; `low` is for the low end."""

    low: int

    @property
    def span(self) -> int:
        """How much higher the probability is at the high end of the range."""
        return WORD - 2 * self.low

    @property
    def gain(self) -> float:
        """By how much a bit in {-1, 1} must be multiplied so that it is 1 on average at the high end."""
        return WORD / self.span

    def thresholds(self, fractions: FloatArray) -> npt.NDArray[np.uint64]:
        """low + span * fraction in integers, for fractions in [0, 1] rounded to multiples of 2^-32."""
        # Multiples of 2^-32 move an estimate by 2^-32 of the range, and no threshold beyond those of the two ends.
        steps = np.rint(fractions * 2.0**32).astype(np.uint64)
        upper, lower = np.uint64(self.span >> 32), np.uint64(self.span) & _LOW_BITS
        # (upper 2^32 + lower) steps / 2^32 without ever exceeding 64 bits.
        return np.uint64(self.low) + upper * steps + ((lower * steps) >> _HALF_WORD)

    def draw(self, fractions: FloatArray, randomness: Randomness) -> BitArray:
        """One private bit for each fraction, 0 or 1.

        Args:
            fractions: any shape, in [0, 1]: where each value lies in its range.
        """
        uniform = randomness.uint64(fractions.size).reshape(fractions.shape)
        return (uniform < self.thresholds(fractions)).view(np.uint8)

    def log_probability(self, fractions: FloatArray, bits: BitArray) -> FloatArray:
        """The logarithm of the probability of each bit given its fraction.

        Args:
            fractions: any shape, in [0, 1].
            bits: 0 or 1, in the same shape.
        """
        thresholds = self.thresholds(fractions)
        # 0 - t is 2^64 - t in unsigned arithmetic: the outcomes that answer 0.
        chosen = np.where(bits == 1, thresholds, np.uint64(0) - thresholds)
        return np.log(chosen.astype(np.float64) / WORD)


@lru_cache(maxsize=64)
def bit_law(epsilon: float, bits: int) -> BitLaw:
    """The law of one of `bits` bits that share `epsilon` equally; rounding goes to the private side."""
    # Decimals, since 2^64 / (e^eps + 1) in floating point could round to the side that is not private.
    with localcontext(PRECISION):
        share = Decimal(epsilon) / bits
        # exp of a huge share would overflow even Decimals, and the answer is known: one outcome in 2^64.
        if share > _LARGEST_EXPONENT:
            return BitLaw(1)
        return BitLaw(round_up(WORD / (share.exp() + 1)))


def round_up(exact: Decimal) -> int:
    """The integer at or above a number of outcomes that was computed to 60 digits."""
    # Far more than the digits can be wrong by, far less than one outcome.
    return int((exact + Decimal("1e-30")).to_integral_value(ROUND_CEILING))
