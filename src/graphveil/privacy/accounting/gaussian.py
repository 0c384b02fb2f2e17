"""The Gaussian mechanism's exact privacy curve, in a form that keeps its digits at tiny delta.

Source: B. Balle, Y.-X. Wang, "Improving the Gaussian Mechanism for Differential Privacy: Analytical
Calibration and Optimal Denoising", ICML 2018, https://arxiv.org/abs/1805.06530v2, Theorem 8 and Algorithm 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from graphveil.runtime.checks import require_number
from graphveil.runtime.late import special

# Far more than the rounding of the formulas below, far less than anybody would notice.
_SAFETY: Final = 1e-9
_STEPS: Final = 200


def gaussian_delta(sigma: float, epsilon: float, sensitivity: float = 1.0) -> float:
    """The smallest delta at which Gaussian noise is (epsilon, delta)-private.

    Equation (6) of Balle and Wang: Phi(a) - e^eps Phi(b) with a = D/2s - eps s/D and b = -D/2s - eps s/D, where D is
    the L2 sensitivity and s the standard deviation. Since e^eps phi(b) = phi(a), it equals phi(a) (R(-a) - R(-b)) with
    Mills' ratio R, which loses no digits when both terms are tiny.

    Args:
        sigma: standard deviation of the noise, in the units of the sensitivity; above 0.
        epsilon: finite, at least 0.
        sensitivity: the L2 norm by which one unit can move the query, above 0.

    Raises:
        InputError: an argument is outside its range.
    """
    require_number("(0, inf)", sigma=sigma, sensitivity=sensitivity)
    require_number("[0, inf)", epsilon=epsilon)
    # Only the ratio matters: noise and sensitivity in the same unit, whatever that is.
    shift = sensitivity / sigma
    # Noise so small against the sensitivity that D/s overflows hides nothing.
    if math.isinf(shift):
        return 1.0
    # Noise so large that D/s underflows, or epsilon s/D overflows: no delta is left.
    if shift == 0.0 or math.isinf(epsilon / shift):
        return 0.0
    a, b = shift / 2 - epsilon / shift, -shift / 2 - epsilon / shift
    # R(-a) grows like e^(a^2/2) and would overflow; the first term is above 1/2, so the plain form keeps digits.
    if a > 0:
        return float(special.ndtr(a)) - _density(a) * _mills(-b)
    return _density(a) * (_mills(-a) - _mills(-b))


def gaussian_epsilon(sigma: float, delta: float, sensitivity: float = 1.0) -> float:
    """The epsilon of Gaussian noise at `delta`, exact up to a relative 1e-9 to the safe (larger) side.

    Args:
        sigma: standard deviation of the noise, in the units of the sensitivity; above 0.
        delta: in (0, 1).
        sensitivity: the L2 norm by which one unit can move the query, above 0.

    Raises:
        InputError: sigma or sensitivity is not positive, or delta is outside (0, 1).
    """
    require_number("(0, 1)", delta=delta)

    def private(epsilon: float) -> bool:
        # Against slightly less than delta, so that rounding in the curve errs on the private side.
        return gaussian_delta(sigma, epsilon, sensitivity) <= delta * (1 - _SAFETY)

    # With so much noise delta alone covers everything.
    if private(0.0):
        return 0.0
    high = 1.0
    while not private(high):
        high *= 2
    low = high / 2 if high > 1 else 0.0
    return _bisect(private, low, high)


def gaussian_renyi_epsilon(sigma: float, delta: float, orders: Sequence[int]) -> float:
    """The epsilon of Gaussian noise at `delta` by Renyi accounting: larger than the exact one, and by other code.
    C. Canonne, G. Kamath, T. Steinke, "The Discrete Gaussian for Differential Privacy",
    https://arxiv.org/abs/2004.00010v4, Proposition 12, with the divergence l / (2 s^2) of order l.

    Args:
        sigma: standard deviation of the noise, in units of the sensitivity; above 0.
        delta: in (0, 1).
        orders: of the divergences that are tried, each at least 2.

    Raises:
        InputError: sigma is not positive, or delta is outside (0, 1).
    """
    require_number("(0, inf)", sigma=sigma)
    require_number("(0, 1)", delta=delta)

    def bound(order: int) -> float:
        divergence = order / (2 * sigma**2)
        # With so little divergence delta alone covers everything (Bretagnolle and Huber).
        if delta**2 + math.expm1(-divergence) > 0:
            return 0.0
        return divergence + math.log1p(-1 / order) - math.log(delta * order) / (order - 1)

    return max(0.0, min(map(bound, orders)))


def analytic_gaussian_sigma(epsilon: float, delta: float, sensitivity: float) -> float:
    """The smallest standard deviation that makes Gaussian noise (epsilon, delta)-private, rounded up.

    Args:
        epsilon: finite and positive.
        delta: in (0, 1).
        sensitivity: the largest L2 distance between two inputs, positive; sigma is in its unit.

    Raises:
        InputError: an argument is outside its range, NaN included.
    """
    require_number("(0, inf)", epsilon=epsilon, sensitivity=sensitivity)
    require_number("(0, 1)", delta=delta)

    def private(multiplier: float) -> bool:
        # For sensitivity 1: the curve depends on sigma over sensitivity alone, so one search serves every unit.
        return gaussian_delta(multiplier, epsilon) <= delta * (1 - _SAFETY)

    high = 1.0
    while not private(high):
        high *= 2
    low = high / 2
    # Two loops, one up and one down: the answer may lie on either side of 1.
    while private(low):
        low, high = low / 2, low
    # One relative rounding step up, since the product with the sensitivity may round down.
    return math.nextafter(_bisect(private, low, high) * sensitivity, math.inf)


def _bisect(private: Callable[[float], bool], low: float, high: float) -> float:
    """The private end of an interval around the edge between not private (low) and private (high)."""
    for _ in range(_STEPS):
        middle = (low + high) / 2
        # The ends are neighbouring floats: nothing lies between them.
        if not low < middle < high:
            break
        low, high = (low, middle) if private(middle) else (middle, high)
    return high


def _density(x: float) -> float:
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def _mills(x: float) -> float:
    """Mills' ratio (1 - Phi(x)) / phi(x)."""
    # erfcx is erfc without its factor e^(-x^2), which underflows near 38 deviations where the ratio is about 1/x.
    return float(special.erfcx(x / math.sqrt(2))) * math.sqrt(math.pi / 2)
