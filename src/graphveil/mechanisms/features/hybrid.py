"""The hybrid mechanism (HM): by a public coin either the piecewise mechanism or one private sign.

Of each sampled coordinate it sends a piecewise level with probability 1 - e^(-epsilon/2k), a private sign otherwise,
and which of the two. Up to epsilon/k = 0.61 it sends signs alone.

Source: N. Wang et al., "Collecting and Analyzing Multidimensional Data with Local Differential Privacy", ICDE 2019,
https://arxiv.org/abs/1907.00001, section III-C and Algorithm 4, on a grid (see `laws`).
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import localcontext
from functools import lru_cache, partial
from typing import Final

import numpy as np
import numpy.typing as npt

from graphveil.mechanisms.base.values import FloatArray
from graphveil.mechanisms.features.sampled import SamplingKind
from graphveil.mechanisms.samplers import laws
from graphveil.mechanisms.samplers.bits import PRECISION, WORD
from graphveil.privacy import Randomness

# Where d is large the worst variance is least near epsilon/k = 2.16.
_BEST_SHARE: Final = 2.16
# Up to this share of epsilon signs alone have the least worst variance.
_SIGNS_ALONE: Final = 0.61

Words = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class HybridLaw(laws.IndependentLaw):
    """Levels 0 and 1 are the private signs, those from 2 on the levels of the window.

    Args:
        window: the piecewise law; None where signs alone are sent.
        sign: the weights of the right and the wrong sign.
        chance: words out of 2^64 that choose the window.
    """

    window: laws.WindowLaw | None
    sign: laws.TwoWeights
    chance: int

    @property
    def steps(self) -> int:
        """The window's positions; signs alone have the two ends of the range."""
        return self.window.steps if self.window else 1

    @property
    def levels(self) -> int:
        return 2 + (self.window.levels if self.window else 0)

    def draw(self, positions: laws.Places, randomness: Randomness) -> laws.Places:
        """Levels for positions [n, k]: one word chooses the branch, one decides in it.

        Args:
            positions: int64 [n, k], 0 to steps.
        """
        # Both words are always drawn, so that how much randomness is used reveals nothing.
        coin, word = randomness.uint64(2 * positions.size).reshape(2, *positions.shape)
        sign: laws.Places = (word < self._thresholds(positions)).astype(np.int64)
        if self.window is None:
            return sign
        level: laws.Places = 2 + self.window.level_of(positions, self.window.weights.outcome_of(word))
        return np.where(coin < np.uint64(self.chance), level, sign).astype(np.int64)

    def probability(self, levels: laws.Places, positions: laws.Places) -> FloatArray:
        plus = self._thresholds(positions).astype(np.float64) / WORD
        sign = (1 - self.chance / WORD) * np.where(levels == 1, plus, 1 - plus)
        if self.window is None:
            return sign
        level = self.chance / WORD * self.window.probability(levels - 2, positions)
        return np.where(levels < 2, sign, level)

    def values(self) -> FloatArray:
        """The value of each sign and level in its own mechanism: each mechanism is unbiased by itself."""
        signs = np.array([-1.0, 1.0]) / self.sign.lean
        return np.concatenate([signs, self.window.values()]) if self.window else signs

    def second_moments(self) -> FloatArray:
        sign = np.full(self.steps + 1, self.sign.lean**-2)
        if self.window is None:
            return sign
        chance = self.chance / WORD
        return chance * self.window.second_moments() + (1 - chance) * sign

    def _thresholds(self, positions: laws.Places) -> Words:
        """low + (high - low) position / steps in integers: the words that make a sign plus."""
        # Divided first: the product of a 64-bit weight with a position would overflow.
        whole, rest = divmod(self.sign.high - self.sign.low, self.steps)
        position = positions.astype(np.uint64)
        words: Words = (
            np.uint64(self.sign.low) + np.uint64(whole) * position + np.uint64(rest) * position // np.uint64(self.steps)
        )
        return words


@lru_cache(maxsize=256)
def hybrid_law(epsilon: float, parts: int) -> HybridLaw:
    """The law of one of `parts` coordinates that share `epsilon`."""
    sign = laws.two_weights(1, 1, epsilon, parts)
    if laws.share_of(epsilon, parts) <= _SIGNS_ALONE:
        return HybridLaw(None, sign, 0)
    with localcontext(PRECISION):
        # The branch does not depend on the value: any whole number of words is as private.
        chance = int(WORD * (1 - 1 / laws.exp_share(epsilon, 2 * parts)))
    return HybridLaw(laws.window_law(epsilon, parts, 2), sign, chance)


Hybrid: Final = SamplingKind("Hybrid", hybrid_law, partial(laws.best_coordinates, hybrid_law, share=_BEST_SHARE))
