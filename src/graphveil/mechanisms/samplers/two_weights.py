"""A uniform choice from two groups of outcomes, the near ones likelier by e^epsilon, in exact integers.

Every near outcome owns `high` and every far one `low` of the 2^64 equally likely words, so the probabilities of an
outcome under any two inputs, near to one and far from the other, differ by a factor of at most high / low <= e^epsilon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from graphveil.mechanisms.samplers.bits import PRECISION, WORD, round_up
from graphveil.privacy import Randomness

# e^50 > 2^64: more epsilon than this for one choice cannot make an outcome any rarer than one word.
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
        """`count` outcomes: the near ones are 0..near-1, the far ones follow.

        Args:
            count: how many.
            randomness: the source of the noise.
        """
        return self.place(randomness.uint64(count))

    def place(self, words: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """The outcome that owns each word."""
        edge = self.near * self.high
        far = np.uint64(self.near) + (words - np.uint64(edge)) // np.uint64(self.low)
        return np.where(words < np.uint64(edge), words // np.uint64(self.high), far).astype(np.int64)


def share_of(epsilon: float, parts: int) -> float:
    """The epsilon of one of `parts` equal choices, in floating point: for sizes, never for privacy.

    Args:
        epsilon: of all choices together.
        parts: how many choices share it.
    """
    return min(epsilon / parts, LARGEST_SHARE)


def exp_share(epsilon: float, parts: int) -> Decimal:
    """e^(epsilon / parts) to 60 digits; epsilon / parts counts as at most 50.

    Args:
        epsilon: of all choices together.
        parts: how many choices share it.
    """
    with localcontext(PRECISION):
        return min(Decimal(epsilon) / parts, Decimal(LARGEST_SHARE)).exp()


@lru_cache(maxsize=256)
def two_weights(near: int, far: int, epsilon: float, parts: int = 1) -> TwoWeights:
    """The weights of the highest ratio that epsilon / parts allows; `low` is rounded up, to the private side.

    `near` and `far` must have no common factor but powers of two.

    Args:
        near, far: how many outcomes there are of each.
        epsilon: of all choices together.
        parts: how many choices share it.
    """
    with localcontext(PRECISION):
        # From near high + far low = 2^64 with high = e^epsilon low; rounded up, since a larger `low` is a smaller
        # ratio.
        low = round_up(WORD / (near * exp_share(epsilon, parts) + far))
    # The next weight for which what is left divides evenly among the near outcomes.
    common = math.gcd(near, far)
    modulus, step = near // common, far // common
    # Raising `low` lowers the ratio high / low, so the search for an even division never costs privacy.
    low += (WORD // common - step * low) * pow(step, -1, modulus) % modulus
    return TwoWeights(near, far, (WORD - far * low) // near, low)
