"""The truncated discrete exponential on k bins, in exact integers.

For true bin t, bin u owns about 2^64 r^|u-t| / C_t of the words; C_t adds up the powers of r over all bins. Every
number off the diagonal is rounded up and the true bin gets the rest, so for every bin the largest number over the
smallest, which lie at the true bin and at an end, is at most r^-(k-1) = e^epsilon.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from graphveil.mechanisms.base.values import FloatArray
from graphveil.mechanisms.samplers.bits import WORD
from graphveil.privacy import Randomness

Words = npt.NDArray[np.uint64]
Bins = npt.NDArray[np.int64]

MOST_BINS: Final = 256
# The rarest bin then still owns some dozens of words.
LARGEST_SHARE: Final = 40.0
# Below this, rounding to 64 bits could hide what little a bin says.
SMALLEST_SHARE: Final = 1e-9
# Taken off epsilon, far more than shares in floating point can add up to too much.
_SLACK: Final = 1e-12
# Far more than floating point can be wrong by in 256 terms.
_RAISE: Final = 1 + 1e-12


@dataclass(frozen=True, eq=False)
class BinLaws:
    """One law for each of several epsilons.

    Args:
        last: uint64 [laws, k, 2^b - 1], for each true bin the last word of each bin but the final one; padded.
        chances: float64 [laws, k, k], the probability of each bin (last axis) for each true bin.
        decoded: float64 [laws, k], the value of each bin whose average for true bin t is t / (k - 1).
    """

    last: Words
    chances: FloatArray
    decoded: FloatArray

    @property
    def bins(self) -> int:
        """k."""
        return len(self.decoded[0])

    def draw(self, laws: Bins, true: Bins, randomness: Randomness) -> Bins:
        """A bin for each true bin [n, a] under the law of its column [a]; one word each.

        Args:
            laws: int64 [a], the law of each column.
            true: int64 [n, a], 0 to k - 1.
        """
        # One word for each bin whatever it is: how much randomness is used says nothing of the value.
        words = randomness.uint64(true.size).reshape(true.shape)
        width = self.last.shape[2]
        row, bins = (laws * self.bins + true) * width, np.zeros_like(true)
        # Tables are padded to 2^b - 1 words, so that the bisection takes b steps whatever the word is.
        step = (width + 1) // 2
        while step:  # how many bins end before the word, by bisection
            bins += step * (words > self.last.ravel()[row + bins + (step - 1)])
            step //= 2
        return bins

    def second_moments(self) -> FloatArray:
        """The average square of the decoded value for every true bin, float64 [laws, k]."""
        squares: FloatArray = np.einsum("ltu,lu->lt", self.chances, self.decoded**2)
        return squares


@lru_cache(maxsize=16)
def bin_laws(epsilons: tuple[float, ...], bins: int) -> BinLaws:
    """The laws of these epsilons, each at least `SMALLEST_SHARE`, on `bins` bins.

    Args:
        epsilons: one for each law.
        bins: k, 2 to 256.
    """
    # A larger share is cut, which costs accuracy and no privacy: the law keeps less than it may.
    words = _words(np.minimum(np.array(epsilons), LARGEST_SHARE) * (1 - _SLACK), bins)
    width = (1 << (bins - 1).bit_length()) - 1
    last = np.full((len(epsilons), bins, width), WORD - 1, np.uint64)
    # Last words and not first ones: the sum over all bins, 2^64, does not fit into 64 bits.
    last[:, :, : bins - 1] = np.cumsum(words, axis=2)[:, :, :-1] - np.uint64(1)
    chances = words.astype(np.float64) / WORD
    truth = np.broadcast_to(np.linspace(0.0, 1.0, bins)[:, None], (len(epsilons), bins, 1))
    # The decoded values invert the channel itself, integer weights included: no bias is left from rounding.
    decoded: FloatArray = np.linalg.solve(chances, truth)[:, :, 0].astype(np.float64)
    return BinLaws(last, chances, decoded)


def _words(epsilons: FloatArray, bins: int) -> Words:
    """How many of 2^64 words each bin owns, uint64 [laws, true bin, bin]."""
    distance = np.abs(np.subtract.outer(np.arange(bins), np.arange(bins)))
    powers = np.exp(-epsilons[:, None, None] / (bins - 1) * distance)
    powers /= powers.sum(axis=2, keepdims=True)
    true = np.arange(bins)
    # The true bin's own share is not rounded but left over: rounding others up then lowers the likeliest bin alone.
    powers[:, true, true] = 0.0
    # Every bin owns a word at least: a report that some value cannot send would rule that value out.
    words: Words = np.floor(powers * (_RAISE * 2.0**64)).astype(np.uint64) + np.uint64(1)
    words[:, true, true] = 0
    # Unsigned arithmetic is modulo 2^64, so this is what the others leave over.
    words[:, true, true] = np.uint64(0) - words.sum(axis=2)
    return words
