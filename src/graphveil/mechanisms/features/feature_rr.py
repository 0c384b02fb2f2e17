"""FeatureRR: every feature in a bin near the true one, with a budget of its own.

Source: K. Tran, P. Lai, N. Phan, I. Khalil, Y. Ma, A. Khreishah, M. T. Thai, X. Wu, "Heterogeneous Randomized Response
for Differential Privacy in Graph Neural Networks", IEEE Big Data 2022, Algorithm 1, Theorem 3 and equation 7:
Pr(u | t) = r^|u-t| / C_t with r = e^(-epsilon_i / (k-1)) is epsilon_i-private and tight. Two corrections: values are
rounded to bins at random without bias, not up, and reports can be decoded without bias. The sum over features is plain
addition, so with many features the noise is far above that of the mechanisms that send a few sampled ones.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from graphveil.errors import InputError
from graphveil.mechanisms.base import _validate
from graphveil.mechanisms.base.domain import WORDS
from graphveil.mechanisms.base.in_range import InRange
from graphveil.mechanisms.base.reports import NamedTensors, require_inside, require_pairs, require_tensor
from graphveil.mechanisms.base.values import FloatArray, Rows, Values, blocks
from graphveil.mechanisms.samplers.bins import MOST_BINS, SMALLEST_SHARE, BinLaws, Bins, bin_laws
from graphveil.privacy import Guarantee, Randomness, assume
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor


# The largest tables of probabilities: one for each distinct share.
_MOST_NUMBERS = 1 << 24


@dataclass(frozen=True, eq=False)
class BinReports(NamedTensors):
    """The bin of each sent feature, in the features' order: bins uint8 [n, a]."""

    bins: Tensor

    def __post_init__(self) -> None:
        require_tensor("bins", self.bins, torch.uint8, 2)


@dataclass(frozen=True, kw_only=True)
class FeatureRR(InRange):
    """Sends the bin of every feature, bins nearer to the true one being likelier, by powers of r.

    Formal guarantees: epsilon-local privacy for the whole vector under replacement, exactly (integer tables, rounded to
    the private side), epsilon times its share for one feature; the possible reports are the same for all inputs;
    estimates are unbiased up to the rounding of their 32-bit numbers.

    Args:
        epsilon: finite and positive, for the whole vector.
        dimension: number of coordinates d.
        low, high: the declared, public range of every coordinate.
        bins: k, the levels of a coordinate, 2 to 256; bin 0 stands for `low` and bin k - 1 for `high`.
        shares: d numbers of at least 0, divided by their sum: the part of epsilon of each feature. They are public,
            the same for all users, and fixed before anything is collected; read off private data, or chosen for each
            user, they void the guarantee. A feature with share 0 is not sent. None: all alike.

    Raises:
        InputError: a parameter is outside its range, NaN included, or a feature's part of epsilon is below 1e-9.

    >>> import torch
    >>> from graphveil.privacy import SeededRandomness
    >>> mechanism = FeatureRR(epsilon=8.0, dimension=3)
    >>> mechanism.randomize(torch.tensor([[0.0, 0.5, 1.0]]), randomness=SeededRandomness(7)).bins
    tensor([[8, 6, 8]], dtype=torch.uint8)
    """

    epsilon: float
    dimension: int
    low: float = 0.0
    high: float = 1.0
    bins: int = 10
    shares: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        _ = self.domain
        _validate.whole(2, MOST_BINS, bins=self.bins)
        _validate.positive_epsilon(self.epsilon)
        if self.shares is not None:
            _check_shares(self.shares, self.dimension)
        # Every feature is checked by its own part: a share that is all but 0 would divide the estimate by rounding
        # errors.
        least = min(self._epsilons)
        if least < SMALLEST_SHARE:
            raise InputError(
                f"epsilon {rounded_up(self.epsilon)} leaves {least:g} for one feature",
                allowed=f"at least {SMALLEST_SHARE:g}",
                remedy="give the feature no share, or use a mechanism that samples features, such as MultiBit",
            )
        if len(self._epsilons) * self.bins**2 > _MOST_NUMBERS:
            raise InputError(
                f"{len(self._epsilons)} distinct shares with {self.bins} bins make tables of "
                f"{len(self._epsilons) * self.bins**2:,} numbers",
                allowed=f"at most {_MOST_NUMBERS:,}",
                remedy="take fewer bins, or round the shares",
            )

    @property
    def theta(self) -> FloatArray:
        """The part of epsilon of each feature, float64 [d]; they add up to 1."""
        if self.shares is None:
            return np.full(self.dimension, 1 / self.dimension)
        # Divided by their sum, which equation 7 of the paper leaves out: without it the features together spend more
        # than epsilon.
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
        # Nothing is known of a feature that nobody sends: no finite number bounds its error.
        if len(self.sent) < self.dimension:
            return math.inf
        squares, ends = self._laws.second_moments(), np.linspace(0.0, 1.0, self.bins)
        # As in `laws.worst_variance`: a parabola on each piece, here on [0, 1] and for every share.
        slopes = np.diff(squares, axis=1) * (self.bins - 1)
        peaks = np.clip(slopes / 2, ends[:-1], ends[1:])
        return float((squares[:, :-1] + slopes * (peaks - ends[:-1]) - peaks**2).max()) * (self.high - self.low) ** 2

    @property
    def report_bytes(self) -> float:
        """Bytes of one report, its bins packed bit by bit."""
        return len(self.sent) * (self.bins - 1).bit_length() / 8

    @property
    def guarantee(self) -> Guarantee:
        """What one report protects."""
        # Shares from a person's own data would spend up to 1.5 epsilon, and published ones tell that data: hence the
        # assumption.
        plain = self.domain.guarantee(self.epsilon)
        return replace(plain, assumes=(*plain.assumes, assume("shares-public")))

    def open(self, values: Values) -> Rows:
        """A reader for values [n, d] that can be reported, all of which were looked at; raises as `randomize`."""
        rows = self.domain.open(values)
        _validate.fits_in_memory(rows.shape[0], len(self.sent), "reports")
        return rows

    def randomize(self, values: Values, *, randomness: Randomness) -> BinReports:
        """What the devices send: one bin for each feature with a share.

        Args:
            values: [n, d], dense or sparse rows, every entry in [low, high].

        Raises:
            InputError: an entry is NaN, infinite or out of range (it is named and nothing is encoded), or n d
                exceeds 2^30.
        """
        rows = self.open(values)
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

    def estimate(self, reports: BinReports) -> Tensor:
        """The unbiased estimate of the values, dense float32 [n, d]; `midpoint` for features that are not sent.

        A bin is worth what inverts the channel: the average over the bins of a value is that value.
        """
        return self.domain.uncentred(self.centred(reports))

    def raw(self, reports: BinReports) -> Tensor:
        """The middles of the reported bins, as the paper decodes, dense float32 [n, d]: near, but biased to the middle.

        For features that are not sent `midpoint`.
        """
        middles = ((np.arange(self.bins) + 0.5) / self.bins - 0.5) * (self.high - self.low)
        every = np.broadcast_to(middles, self._laws.decoded.shape)
        return self.domain.uncentred(self._spread(reports, every))

    def log_likelihood(self, reports: BinReports, values: Values) -> Tensor:
        """log Pr[report | value] for each row, float64 [n], rounding included; exact: the sampler's own integers.

        Args:
            reports: n of them.
            values: [n, d], what each was made from.
        """
        bins = self._bins(reports)
        rows = self.domain.open(values)
        require_pairs(len(reports), rows.shape[0])
        chances, law_index, sent = self._laws.chances, self._law_index, self.sent
        result = np.empty(rows.shape[0])
        for start, stop in blocks(*rows.shape):
            below, carry = self.domain.split(rows.block(start, stop)[:, sent], self.bins - 1)
            up, reported = carry.astype(np.float64) / WORDS, bins[start:stop]
            above = np.minimum(below + 1, self.bins - 1)
            chance = (1 - up) * chances[law_index, below, reported] + up * chances[law_index, above, reported]
            result[start:stop] = np.log(chance).sum(axis=1)
        return torch.from_numpy(result)

    def variance(self, values: Values) -> Tensor:
        """The variance of the estimate of each coordinate as a tensor, see `variances`."""
        return torch.from_numpy(self.variances(values))

    def variances(self, values: Values) -> FloatArray:
        """The variance of the estimate of each coordinate, float64 [n, d]; infinite for features that are not sent.

        E[v^2 | x] - x^2 on [0, 1], where E[v^2 | x] is linear between two bins.
        """
        dense = self.domain.open_dense(values, "the variance")
        below, carry = self.domain.split(dense[:, self.sent], self.bins - 1)
        up, squares = carry.astype(np.float64) / WORDS, self._laws.second_moments()
        above = np.minimum(below + 1, self.bins - 1)
        mean = (1 - up) * squares[self._law_index, below] + up * squares[self._law_index, above]
        result = np.full(dense.shape, np.inf)
        result[:, self.sent] = (mean - ((below + up) / (self.bins - 1)) ** 2) * (self.high - self.low) ** 2
        return result

    def every_report(self) -> BinReports:
        """Every report that a device can send, one a user.

        For audits of small mechanisms.

        Raises:
            InputError: there are more than a million.
        """
        _validate.enumerable(self.bins ** len(self.sent))
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
        """The worth [laws, k] of each reported bin at its feature, 0 elsewhere."""
        bins = self._bins(reports)
        _validate.fits_in_memory(len(reports), self.dimension, "the estimate")
        result = np.zeros((len(reports), self.dimension), np.float32)
        result[:, self.sent] = worth.astype(np.float32)[self._law_index, bins]
        return result

    def _bins(self, reports: BinReports) -> Bins:
        """The reported bins as checked int64 numbers."""
        if reports.bins.shape[1] != len(self.sent):
            raise InputError(f"reports hold {reports.bins.shape[1]} bins", allowed=f"{len(self.sent)}")
        require_inside(reports.bins, 0, self.bins - 1, "a bin")
        return reports.bins.numpy().astype(np.int64)


def _check_shares(shares: tuple[float, ...], dimension: int) -> None:
    if not isinstance(shares, tuple) or len(shares) != dimension:
        raise InputError("the shares do not match the features", allowed=f"a tuple of {dimension} numbers")
    wrong = [k for k, share in enumerate(shares) if isinstance(share, bool) or not isinstance(share, int | float)]
    wrong += [k for k, share in enumerate(shares) if not (k in wrong or 0 <= share < math.inf)]
    if wrong:
        raise InputError("a share is not a number", where=f"shares, feature {wrong[0]}", allowed="finite, at least 0")
    if not 0 < math.fsum(shares) < math.inf:
        raise InputError("no feature has a share", where="shares", allowed="at least one above 0")
