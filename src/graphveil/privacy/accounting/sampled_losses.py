"""The privacy losses of a step that adds Gaussian noise to a sum over a Poisson sample, for one sample more or less.

    A = N(0, sigma^2),   B = (1 - q) A + q N(1, sigma^2),   L(x) = log B/A = log(1 - q + q e^((x - 1/2) / sigma^2))

The sample is removed (B against A) or added (A against B).  L rises with x, so with t = L^-1(epsilon)

    removed   delta(epsilon) = B(x > t) - e^epsilon A(x > t),      1 - e^epsilon      where epsilon <= log(1 - q)
    added     delta(epsilon) = A(x < s) - e^epsilon B(x < s),      s = L^-1(-epsilon),  0 where -epsilon <= log(1 - q)

These are the curves of dp-accounting, which asks for each of some ten thousand by itself; what is made of them is its
own arithmetic.  Source: V. Doroshenko, B. Ghazi, P. Kamath, R. Kumar, P. Manurangsi, "Connect the Dots: Tighter
Discrete Approximations of Privacy Loss Distributions", PETS 2022, https://arxiv.org/abs/2207.04380.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from graphveil.runtime.late import special

if TYPE_CHECKING:
    from dp_accounting.pld.pld_pmf import PLDPmf
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

FloatArray = npt.NDArray[np.float64]

# Losses beyond this many deviations are counted as infinite: a mass of 2e-23 a step.
_REACH: Final = 9.9
# The largest loss of a step, in nats, whose table a grid need not be coarser for: noise of at least some 0.7.
_SHORT: Final = 16.0


def sampled_losses(rate: float, sigma: float, grid: float) -> PrivacyLossDistribution:
    """Return the losses of one step on multiples of `grid`, in both directions, from above ("connect the dots").

    Args:
        rate: q, in (0, 1).
        sigma: standard deviation of the noise over the clipping norm.
        grid: width of a step on the axis of privacy losses, in nats.
    """
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    low, high = (_loss(rate, sigma, x) for x in (-_REACH * sigma, 1 + _REACH * sigma))
    return PrivacyLossDistribution(
        _distribution(_removed, rate, sigma, grid, low, high), _distribution(_added, rate, sigma, grid, -high, -low)
    )


def widened(grid: float, largest: float) -> float:
    """Return the grid for a step whose losses go up to `largest`: coarser where epsilon is large, by powers of 2.

    Args:
        grid: for short tables. largest: in nats.
    """
    # By the square, since both the length of the table and the number of steps' sums grow; the digits of epsilon that
    # are wanted stay the same.
    return grid * 2.0 ** max(0, math.floor(2 * math.log2(max(largest, _SHORT) / _SHORT)))


def largest_loss(rate: float, sigma: float) -> float:
    """Return the largest finite loss of a step in nats; `rate` and `sigma` as in `sampled_losses`."""
    return _loss(rate, sigma, 1 + _REACH * sigma)


def _distribution(
    curve: Callable[[float, float, FloatArray], FloatArray],
    rate: float,
    sigma: float,
    grid: float,
    low: float,
    high: float,
) -> PLDPmf:
    from dp_accounting.pld import pld_pmf

    first, last = math.floor(low / grid), math.ceil(high / grid)
    deltas = np.clip(curve(rate, sigma, grid * np.arange(first, last + 1, dtype=np.float64)), 0.0, 1.0)
    # A maximum from the right, since delta falls with epsilon: rounding could bend the table upwards, and what mends it
    # may only make it larger.
    falling = np.maximum.accumulate(deltas[::-1])[::-1]
    return pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(grid, first, last, falling)


def _loss(rate: float, sigma: float, x: float) -> float:
    return float(np.logaddexp(math.log1p(-rate), math.log(rate) + (x - 0.5) / sigma**2))


def _threshold(rate: float, sigma: float, losses: FloatArray) -> FloatArray:
    """Where L is each of some losses above log(1 - q)."""
    # log((e^loss - (1 - q)) / q), which neither overflows for large losses nor loses digits near log(1 - q).
    tilt = losses + np.log(-np.expm1(math.log1p(-rate) - losses)) - math.log(rate)
    return np.asarray(0.5 + sigma**2 * tilt)


def _removed(rate: float, sigma: float, epsilons: FloatArray) -> FloatArray:
    deltas = -np.expm1(np.minimum(epsilons, 0.0))
    some = epsilons > math.log1p(-rate)
    t = _threshold(rate, sigma, epsilons[some])
    over = (1 - rate) * special.ndtr(-t / sigma) + rate * special.ndtr((1 - t) / sigma)
    # In logs because e^epsilon may overflow where the tail beside it underflows.
    deltas[some] = over - np.exp(epsilons[some] + special.log_ndtr(-t / sigma))
    return np.asarray(deltas)


def _added(rate: float, sigma: float, epsilons: FloatArray) -> FloatArray:
    deltas = np.zeros_like(epsilons)
    some = -epsilons > math.log1p(-rate)
    s, most = _threshold(rate, sigma, -epsilons[some]), np.exp(epsilons[some])
    below = (1 - rate) * special.ndtr(s / sigma) + rate * special.ndtr((s - 1) / sigma)
    deltas[some] = special.ndtr(s / sigma) - most * below
    return deltas
