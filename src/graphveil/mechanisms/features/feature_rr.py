"""FeatureRR: every feature in a bin near the true one, with a budget of its own.

For true bin t, bin u owns about 2^64 r^|u-t| / C_t of the words with r = e^(-epsilon_i / (k-1)); C_t adds up the powers
of r over all k bins. Every number off the diagonal is rounded up and the true bin gets the rest, so for every bin the
largest number over the smallest, which lie at the true bin and at an end, is at most r^-(k-1) = e^epsilon_i.

Source: K. Tran, P. Lai, N. Phan, I. Khalil, Y. Ma, A. Khreishah, M. T. Thai, X. Wu, "Heterogeneous Randomized Response
for Differential Privacy in Graph Neural Networks", IEEE Big Data 2022, Algorithm 1, Theorem 3 and equation 7. Two
corrections: values are rounded to bins at random without bias, not up, and reports can be decoded without bias. The sum
over features is plain addition, so with many features the noise is far above that of mechanisms that send a few sampled
ones.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from graphveil.errors import InputError
from graphveil.mechanisms.base import _validate
from graphveil.mechanisms.base.mechanism import WORDS, FeatureMechanism
from graphveil.mechanisms.base.reports import NamedTensors, require_inside
from graphveil.mechanisms.base.values import FloatArray, Rows, Values, blocks
from graphveil.mechanisms.samplers.bits import WORD
from graphveil.privacy import Guarantee, Randomness, assume
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.runtime.checks import is_number, require_whole
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor

Words = npt.NDArray[np.uint64]
Bins = npt.NDArray[np.int64]

MOST_BINS: Final = 256
# The rarest bin then still owns some dozens of words.
LARGEST_SHARE: Final = 40.0
# Below this, rounding to 64 bits could exceed the information in a bin.
SMALLEST_SHARE: Final = 1e-9
# Subtracted from epsilon: far more than the rounding of shares can add to their sum.
_EPSILON_SLACK: Final = 1e-12
# Far more than the rounding error of a sum of 256 terms.
_UP: Final = 1 + 1e-12


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
        return len(self.decoded[0])

    def draw(self, laws: Bins, true: Bins, randomness: Randomness) -> Bins:
        """A bin for each true bin [n, a] under the law of its column [a]; one word each.

        Args:
            laws: int64 [a], the law of each column.
            true: int64 [n, a], 0 to k - 1.
        """
        # One word for each bin, whatever the value: how much randomness is used reveals nothing.
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
    """The laws of these epsilons, each at least `SMALLEST_SHARE`, on `bins` bins."""
    # A larger share is capped, which costs accuracy and no privacy: the law uses less epsilon than it may.
    words = _words(np.minimum(np.array(epsilons), LARGEST_SHARE) * (1 - _EPSILON_SLACK), bins)
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
    # The true bin gets what is left over: rounding all other bins up then lowers only the likeliest bin.
    powers[:, true, true] = 0.0
    # Every bin owns at least one word: a bin that some value cannot send would rule that value out.
    words: Words = np.floor(powers * (_UP * 2.0**64)).astype(np.uint64) + np.uint64(1)
    words[:, true, true] = 0
    # Unsigned arithmetic is modulo 2^64, so this is what all other bins leave over.
    words[:, true, true] = np.uint64(0) - words.sum(axis=2)
    return words


# The most numbers in all tables of probabilities, one table for each distinct share.
_LARGEST_TABLE = 1 << 24


@dataclass(frozen=True, eq=False)
class BinReports(NamedTensors, bins=("uint8", 2)):
    """The bin of each sent feature, in the features' order: bins uint8 [n, a]."""

    bins: Tensor


@dataclass(frozen=True, kw_only=True)
class FeatureRR(FeatureMechanism[BinReports]):
    """Sends the bin of every feature, bins nearer to the true one being likelier, by powers of r. Raises InputError
    where a parameter is outside its range, NaN included, or a feature's part of epsilon is below 1e-9.

    Formal guarantees: epsilon-local privacy for the whole vector under replacement, exactly (integer tables, rounded to
    the private side), epsilon times its share for one feature; the possible reports are the same for all inputs;
    estimates are unbiased up to the rounding of their 32-bit numbers.

    Args:
        epsilon: finite and positive, for the whole vector.
        bins: k, the levels of a coordinate, 2 to 256; bin 0 stands for `low` and bin k - 1 for `high`.
        shares: d numbers of at least 0, divided by their sum: the part of epsilon of each feature. They are public, the
            same for all users, and fixed before anything is collected; read off private data, or chosen for each user,
            they void the guarantee. A feature with share 0 is not sent. None: all alike.

    >>> import torch
    >>> from graphveil.privacy import SeededRandomness
    >>> mechanism = FeatureRR(epsilon=8.0, dimension=3)
    >>> mechanism.randomize(torch.tensor([[0.0, 0.5, 1.0]]), randomness=SeededRandomness(7)).bins
    tensor([[0, 0, 6]], dtype=torch.uint8)
    """

    epsilon: float
    dimension: int
    low: float = 0.0
    high: float = 1.0
    bins: int = 10
    shares: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        _ = self.domain
        require_whole(2, MOST_BINS, bins=self.bins)
        _validate.require_epsilon(self.epsilon)
        if self.shares is not None:
            if not isinstance(self.shares, tuple) or len(self.shares) != self.dimension:
                raise InputError("the shares do not match the features", allowed=f"a tuple of {self.dimension} numbers")
            invalid = [k for k, share in enumerate(self.shares) if not is_number(share)]
            invalid += [k for k, share in enumerate(self.shares) if not (k in invalid or 0 <= share < math.inf)]
            if invalid:
                raise InputError(
                    "a share is not a number", where=f"shares, feature {invalid[0]}", allowed="finite, at least 0"
                )
            if not 0 < math.fsum(self.shares) < math.inf:
                raise InputError("no feature has a share", where="shares", allowed="at least one above 0")
        # Each feature by its own part: with a tiny share the estimate would divide by rounding errors.
        least = min(self._epsilons)
        if least < SMALLEST_SHARE:
            raise InputError(
                f"epsilon {rounded_up(self.epsilon)} leaves {least:g} for one feature",
                allowed=f"at least {SMALLEST_SHARE:g}",
                remedy="give the feature no share, or use a mechanism that samples features, such as MultiBit",
            )
        if len(self._epsilons) * self.bins**2 > _LARGEST_TABLE:
            raise InputError(
                f"{len(self._epsilons)} distinct shares with {self.bins} bins make tables of "
                f"{len(self._epsilons) * self.bins**2:,} numbers",
                allowed=f"at most {_LARGEST_TABLE:,}",
                remedy="take fewer bins, or round the shares",
            )

    @property
    def theta(self) -> FloatArray:
        """The part of epsilon of each feature, float64 [d]; they add up to 1."""
        if self.shares is None:
            return np.full(self.dimension, 1 / self.dimension)
        # Divided by their sum, unlike equation 7 of the paper, by which the features together may exceed epsilon.
        return np.array(self.shares, np.float64) / math.fsum(self.shares)

    @property
    def sent(self) -> Bins:
        """The features that are sent, int64 [a], ascending."""
        return np.flatnonzero(self.theta > 0)

    @property
    def largest(self) -> float:
        """The largest size of a number of `centred`."""
        return float(np.abs(self._laws.decoded - 0.5).max()) * (self.high - self.low)

    @property
    def worst_variance(self) -> float:
        """The largest variance of one coordinate's estimate over all inputs; infinite if a feature is not sent."""
        # No finite number bounds the error of a feature that nobody sends.
        if len(self.sent) < self.dimension:
            return math.inf
        squares, ends = self._laws.second_moments(), np.linspace(0.0, 1.0, self.bins)
        # As in `laws.worst_variance`: a parabola on each piece, here on [0, 1] and for every share.
        slopes = np.diff(squares, axis=1) * (self.bins - 1)
        peaks = np.clip(slopes / 2, ends[:-1], ends[1:])
        return float((squares[:, :-1] + slopes * (peaks - ends[:-1]) - peaks**2).max()) * (self.high - self.low) ** 2

    @property
    def report_bytes(self) -> float:
        return len(self.sent) * (self.bins - 1).bit_length() / 8

    @property
    def guarantee(self) -> Guarantee:
        # Personal shares would spend up to 1.5 epsilon, and reveal the data that they come from: hence the assumption.
        plain = self.domain.guarantee(self.epsilon)
        return replace(plain, assumes=(*plain.assumes, assume("shares-public")))

    def open(self, values: Values) -> Rows:
        rows = self.domain.open(values)
        _validate.require_dense_size(rows.shape[0], len(self.sent), "reports")
        return rows

    def _encode(self, rows: Rows, randomness: Randomness) -> BinReports:
        laws, law_index, sent = self._laws, self._law_index, self.sent
        result = np.empty((rows.shape[0], len(sent)), np.uint8)
        for start, stop in blocks(*rows.shape):
            true, carry = self.domain.split(rows.block(start, stop)[:, sent], self.bins - 1)
            # Rounding at random keeps estimates unbiased; the paper rounds up.
            true += randomness.uint64(true.size).reshape(true.shape) < carry
            result[start:stop] = laws.draw(law_index, true, randomness)
        return BinReports(torch.from_numpy(result))

    def centred(self, reports: BinReports) -> npt.NDArray[np.float32]:
        """The unbiased estimate minus `midpoint`, float32 [n, d]; 0 for features that are not sent."""
        return self._spread(reports, (self._laws.decoded - 0.5) * (self.high - self.low))

    def raw(self, reports: BinReports) -> Tensor:
        """The middles of the reported bins, as the paper decodes, dense float32 [n, d]: near, but biased to the middle.
        For features that are not sent `midpoint`.
        """
        middles = ((np.arange(self.bins) + 0.5) / self.bins - 0.5) * (self.high - self.low)
        every = np.broadcast_to(middles, self._laws.decoded.shape)
        return self.domain.uncentred(self._spread(reports, every))

    def _log_likelihood(self, reports: BinReports, rows: Rows, start: int, stop: int) -> FloatArray:
        chances, law_index, bins = self._laws.chances, self._law_index, self._bins(reports)[start:stop]
        below, carry = self.domain.split(rows.block(start, stop)[:, self.sent], self.bins - 1)
        up, above = carry.astype(np.float64) / WORDS, np.minimum(below + 1, self.bins - 1)
        chance = (1 - up) * chances[law_index, below, bins] + up * chances[law_index, above, bins]
        logs: FloatArray = np.log(chance).sum(axis=1)
        return logs

    def variances(self, values: Values) -> FloatArray:
        """The variance of the estimate of each coordinate, float64 [n, d]; infinite for features that are not sent.
        E[v^2 | x] - x^2 on [0, 1], where E[v^2 | x] is linear between two bins.
        """
        dense = self.domain.open_dense(values)
        below, carry = self.domain.split(dense[:, self.sent], self.bins - 1)
        up, squares = carry.astype(np.float64) / WORDS, self._laws.second_moments()
        above = np.minimum(below + 1, self.bins - 1)
        mean = (1 - up) * squares[self._law_index, below] + up * squares[self._law_index, above]
        result = np.full(dense.shape, np.inf)
        result[:, self.sent] = (mean - ((below + up) / (self.bins - 1)) ** 2) * (self.high - self.low) ** 2
        return result

    def every_report(self) -> BinReports:
        _validate.require_enumerable(self.bins ** len(self.sent))
        every = itertools.product(range(self.bins), repeat=len(self.sent))
        return BinReports(torch.tensor(list(every), dtype=torch.uint8))

    @property
    def _epsilons(self) -> tuple[float, ...]:
        """The distinct epsilons of features that are sent, ascending."""
        return tuple(float(share) * self.epsilon for share in np.unique(self.theta[self.sent]))

    @property
    def _law_index(self) -> Bins:
        """The law of each feature that is sent, int64 [a]."""
        return np.unique(self.theta[self.sent], return_inverse=True)[1].astype(np.int64)

    @property
    def _laws(self) -> BinLaws:
        return bin_laws(self._epsilons, self.bins)

    def _spread(self, reports: BinReports, worth: FloatArray) -> npt.NDArray[np.float32]:
        """The value `worth` [laws, k] of each reported bin, at its feature; 0 elsewhere."""
        self._check(reports)
        bins = self._bins(reports)
        _validate.require_dense_size(len(reports), self.dimension, "the estimate")
        result = np.zeros((len(reports), self.dimension), np.float32)
        result[:, self.sent] = worth.astype(np.float32)[self._law_index, bins]
        return result

    def _check(self, reports: BinReports) -> None:
        if reports.bins.shape[1] != len(self.sent):
            raise InputError(f"reports hold {reports.bins.shape[1]} bins", allowed=f"{len(self.sent)}")
        require_inside(reports.bins, 0, self.bins - 1, "a bin")

    def _bins(self, reports: BinReports) -> Bins:
        return reports.bins.numpy().astype(np.int64)
