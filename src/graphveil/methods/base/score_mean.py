"""The mean of users' score vectors under central differential privacy, on an integer grid.

    S = sum over users of trunc(2^b s_v),   |s_v| <= 1, s_v >= 0          mean = (S + Z) / (n 2^b)

Two rows without negative entries and of length at most 1 are at most sqrt(2) apart, so that replacing a user's moves S
by at most 2^b sqrt(2) steps; Z is rounded normal noise for that (Balle and Wang 2018, Algorithm 1).  Sums are whole
numbers: no rounding depends on who else is there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from graphveil.aggregation import quantise
from graphveil.errors import InputError
from graphveil.late import special, torch
from graphveil.mechanisms.samplers.rounded_normal import RELATIVE_ERROR, RoundedNormal
from graphveil.privacy import Guarantee, Randomness, analytic_gaussian_sigma, assume
from graphveil.privacy.observer import ALL_BUT_CURATOR_OF_SCORES
from graphveil.privacy.printed import rounded_up
from graphveil.privacy.unit import USER_FEATURES

if TYPE_CHECKING:
    from torch import Tensor


# The part of delta that pays for cutting the noise's tails.
_TAIL: Final = 1e-3
# The finest grid, and the widest noise in its steps: more would only make the table slower.
_FINEST: Final = 14
_WIDEST: Final = 1 << 14


@dataclass(frozen=True)
class CentralMean:
    """A mean of `users` rows of `dimension` scores at (epsilon, delta); sigma is the noise of one mean."""

    users: int
    dimension: int
    epsilon: float
    delta: float
    bits: int
    noise: RoundedNormal

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise in one coordinate of the mean."""
        return self.noise.sigma * 2.0**-self.bits / self.users

    def randomize(self, rows: Tensor, *, randomness: Randomness) -> Tensor:
        """Return the noisy mean [d] float64 of rows [n, d].

        Raises:
            InputError: another shape, or an entry that is negative or no number.
        """
        if tuple(rows.shape) != (self.users, self.dimension):
            raise InputError(f"scores are {tuple(rows.shape)}", allowed=f"[{self.users}, {self.dimension}]")
        # sqrt(2) holds for rows in the positive orthant alone; with negative entries two rows can be 2 apart.
        if not bool((rows >= 0).all()) or not bool(torch.isfinite(rows).all()):
            raise InputError("a score is negative or not a number", where="scores of the users", allowed="at least 0")
        total = quantise(rows.float(), bits=self.bits, normalise=False).values.long().sum(dim=0)
        # Whole numbers before any scaling: what is published is a grid point whatever the rows were.
        noisy = total + torch.from_numpy(self.noise.draw(self.dimension, randomness))
        return noisy.double() * 2.0**-self.bits / self.users

    def guarantee(self, void: str | None) -> Guarantee:
        """What the mean protects."""
        return Guarantee(
            unit=USER_FEATURES,
            relation="replace",
            model="central",
            epsilon=self.epsilon,
            delta=self.delta,
            against=ALL_BUT_CURATOR_OF_SCORES,
            assumes=(assume("users-counted-public", users=self.users), assume("one-row-of-scores")),
            void=void,
        )


def central_mean(dimension: int, users: int, *, epsilon: float, delta: float) -> CentralMean:
    """Return the mechanism with noise that costs at most (epsilon, delta), what the noise's table adds included.

    Raises:
        InputError: a parameter outside its range.
    """
    if not (0 < epsilon < math.inf and 0 < delta < 1) or min(dimension, users) < 1:
        raise InputError(
            f"epsilon {epsilon!r}, delta {delta!r} for {users} x {dimension} scores",
            where="private scores",
            allowed="a finite epsilon above 0, delta in (0, 1), and somebody to ask",
        )
    # The table's probabilities are off by a relative error each: paid for in epsilon and delta before noise is
    # calibrated.
    bend = 4 * dimension * RELATIVE_ERROR
    multiplier = analytic_gaussian_sigma(epsilon - bend, delta * (1 - 2 * _TAIL - bend), math.sqrt(2))
    cut = _cut(epsilon, delta, dimension)
    bits = min(_FINEST, math.floor(math.log2(_WIDEST / multiplier)))
    # Up by a few units in the last place: scaling must not end below the noise that was paid for.
    sigma = multiplier * 2.0**bits * (1 + 1e-15)
    if bits < 1 or sigma < 10:
        raise InputError(f"epsilon is {rounded_up(epsilon)}", where="private scores", allowed="about 0.001 to 100")
    noise = RoundedNormal(sigma, math.ceil(sigma * cut))
    return CentralMean(users, dimension, epsilon, delta, bits, noise)


def _cut(epsilon: float, delta: float, dimension: int) -> float:
    """Return the standard deviations beyond which all coordinates' tails weigh at most their part of delta."""
    allowed = math.log(_TAIL * delta / dimension) - math.log1p(math.exp(min(epsilon, 700.0)))
    # Steps of a quarter upwards: the search ends on the safe side, with a tail no heavier than allowed.
    cut = 7.0
    while math.log(2) + float(special.log_ndtr(-cut)) > allowed:
        cut += 0.25
    return cut
