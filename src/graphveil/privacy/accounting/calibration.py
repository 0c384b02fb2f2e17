"""The least noise that keeps a promise: every search returns the private side of its tolerance."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Final

from graphveil.errors import InputError, NoiseError
from graphveil.privacy.accounting.accountant import AccountantName, epsilon_of
from graphveil.privacy.accounting.gaussian import analytic_gaussian_sigma as analytic_gaussian_sigma
from graphveil.privacy.accounting.printed import rounded_up

if TYPE_CHECKING:
    from dp_accounting import DpEvent

# An event with a fixed cost above the target would keep the doubling going for ever.
_LARGEST: Final = 2.0**40


def calibrate(
    event_of: Callable[[float], DpEvent],
    epsilon: float,
    delta: float,
    *,
    accountant: AccountantName = "pld",
    tolerance: float = 1e-6,
) -> float:
    """The smallest noise with which `event_of(noise)` costs at most `epsilon` at `delta`.

    Args:
        event_of: the event for a noise level; more noise must cost less.
        epsilon, delta: the target, epsilon finite and positive, delta in (0, 1).
        accountant: who judges.
        tolerance: how far above the smallest possible noise the answer may lie, absolute.

    Returns:
        A noise level whose epsilon, by the same accountant, does not exceed the target.

    Raises:
        InputError: an argument is not allowed.
        NoiseError: no noise level reaches the target.
    """
    if not 0.0 < epsilon < math.inf:
        raise InputError(f"epsilon is {epsilon!r}", allowed="a finite number above 0")
    from scipy.optimize import brentq  # loads late: most plans search nothing

    # The accountant that judges is the one that searches: a second one could call the answer too dear, or waste noise.
    # It is asked once for each noise, since a root finder comes back to the ends of its bracket.
    @cache
    def gap(noise: float) -> float:
        return epsilon_of(event_of(noise), delta, accountant) - epsilon

    def affordable(noise: float) -> bool:
        return gap(noise) <= 0.0

    low, high = _bracket(affordable, epsilon, delta)
    noise = float(brentq(gap, low, high, xtol=tolerance))
    # The root finder may land a tolerance below the edge: walk back up to the safe side.
    while not affordable(noise):
        # Beside very large noise the tolerance alone would be lost in rounding.
        noise += max(tolerance, 4 * math.ulp(noise))
    return noise


def _bracket(affordable: Callable[[float], bool], epsilon: float, delta: float) -> tuple[float, float]:
    """Two noise levels a factor 2 apart, the lower too little and the higher enough."""
    # Factors of 2 around 1, the multiplier of ordinary settings: each step costs one run of the accountant.
    high = 1.0
    while not affordable(high):
        if high >= _LARGEST:
            raise NoiseError(f"no noise level reaches epsilon {rounded_up(epsilon)} at delta {rounded_up(delta)}")
        high *= 2
    while affordable(high / 2) and high > 1 / _LARGEST:
        high /= 2
    return high / 2, high
