"""Duchi et al.'s mechanism for vectors of signs, on a few sampled coordinates.

Sampled coordinates are rounded to signs, and signs that agree with most of them are sent e^epsilon times as likely as
others. The signs of one report share the whole epsilon; nothing is split.

Source: J. C. Duchi, M. I. Jordan, M. J. Wainwright, "Minimax Optimal Procedures for Locally Private Estimation", JASA
113(521), 2018, https://arxiv.org/abs/1604.02390, section 4.2.3, in the form of N. Wang et al., "Collecting and
Analyzing Multidimensional Data with Local Differential Privacy", ICDE 2019, https://arxiv.org/abs/1907.00001,
Algorithms 1 and 3. Ties, which an even number of coordinates has, are on the unlikely side alone: the common version
that counts them on both sides costs log(1 + e^epsilon).

>>> import torch
>>> from graphveil.privacy import SeededRandomness
>>> mechanism = Duchi(epsilon=2.0, dimension=4)
>>> reports = mechanism.randomize(torch.tensor([[0.0, 0.5, 1.0, 1.0]]), randomness=SeededRandomness(7))
>>> reports.indices, reports.levels
(tensor([[1, 2]], dtype=torch.int32), tensor([[1, 1]], dtype=torch.int16))
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from graphveil.mechanisms.base.values import FloatArray
from graphveil.mechanisms.features.sampled import SamplingKind
from graphveil.mechanisms.samplers.bits import WORD
from graphveil.mechanisms.samplers.laws import Places, TwoWeights, two_weights
from graphveil.privacy import Randomness

# The variance B_k(epsilon)^2 d / k is least at k = 1 (epsilon below 1.34) or k = 2; never above.
_USEFUL_COUNTS: Final = (1, 2)
_MOST_SIGNS: Final = 8


@dataclass(frozen=True)
class SignsLaw:
    """k signs at once: those that agree with more than half of the true ones are near, all others far."""

    signs: int
    weights: TwoWeights

    @property
    def steps(self) -> int:
        """Entries are rounded to the ends of the range: a true sign."""
        return 1

    @property
    def levels(self) -> int:
        return 2

    def draw(self, positions: Places, randomness: Randomness) -> Places:
        """Signs to send for true signs [n, k].

        Args:
            positions: int64 [n, k], 0 for minus and 1 for plus.
        """
        # The number of flipped signs decides the probability: which signs are flipped is drawn, then applied.
        reported: Places = positions ^ _flips(self.signs)[self.weights.draw(len(positions), randomness)]
        return reported

    def log_likelihood(self, levels: Places, below: Places, carry: FloatArray) -> FloatArray:
        """log Pr[signs], by the number of true signs that each row of signs agrees with.

        Args:
            levels: int64 [n, k], the signs that were sent.
            below, carry: the true signs before rounding, see `laws.Law.log_likelihood`.
        """
        plus = below + carry
        agrees = np.where(levels == 1, plus, 1 - plus)
        agreement = np.zeros((len(levels), self.signs + 1))
        agreement[:, 0] = 1.0
        # The number of agreeing signs is Poisson-binomial: its law is built up sign by sign.
        for sign in range(self.signs):
            p = agrees[:, sign : sign + 1]
            agreement[:, 1:] = agreement[:, 1:] * (1 - p) + agreement[:, :-1] * p
            agreement[:, :1] *= 1 - p
        near = agreement[:, self.signs // 2 + 1 :].sum(axis=1)
        logs: FloatArray = np.log(self.weights.low / WORD + near * self.weights.lean)
        return logs

    def values(self) -> FloatArray:
        """-B and B, with B the inverse of the probability that a sent sign is true minus that it is false."""
        # A sign is right in C(k-1, k//2) more of the near patterns than it is wrong: the rest cancels in pairs.
        gain = 1 / (self.weights.lean * math.comb(self.signs - 1, self.signs // 2))
        return np.array([-gain, gain])

    def second_moments(self) -> FloatArray:
        return np.square(self.values())


@lru_cache(maxsize=256)
def signs_law(epsilon: float, signs: int) -> SignsLaw:
    """The law of `signs` signs under one epsilon."""
    # Agreeing with exactly half is far: counting ties on both sides would cost log(1 + e^epsilon).
    near = sum(math.comb(signs, agreeing) for agreeing in range(signs // 2 + 1, signs + 1))
    return SignsLaw(signs, two_weights(near, 2**signs - near, epsilon))


@lru_cache(maxsize=_MOST_SIGNS)
def _flips(signs: int) -> Places:
    """Which signs each outcome flips, [2^k, k]: the outcomes that flip fewer than half come first."""
    patterns = (np.arange(2**signs)[:, None] >> np.arange(signs)) & 1
    result = patterns[np.argsort(patterns.sum(axis=1), kind="stable")].astype(np.int64)
    result.setflags(write=False)
    return result


@lru_cache(maxsize=64)
def _best_count(epsilon: float, dimension: int) -> int:
    return min(_USEFUL_COUNTS[:dimension], key=lambda k: signs_law(epsilon, k).second_moments()[0] / k)


Duchi: Final = SamplingKind("Duchi", signs_law, _best_count, most=_MOST_SIGNS)
