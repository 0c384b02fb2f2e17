"""Private gradient descent where the protected unit is no sample, but changes the gradients of one or two samples.

One directed edge changes the gradient of its target, one undirected edge those of both ends.  A step releases

    sum_{i in batch} g_i + N(0, sigma^2 I),      |g_i| <= 1 (the clipping norm),  i in the batch with probability q

and the unit turns g_i into any other g'_i of length at most 1 for r samples i.  That is a replacement: Poisson
accounting for adding or removing a sample of sensitivity 2 r is no bound for it (its curve is that of removal, and the
composition needs both sides).  The bound used here is a pair of mixtures on the line, for k ~ Bin(r, q):

    P = sum_k Pr[k] N(k, sigma^2),       Q = sum_k Pr[k] N(-k, sigma^2)

It is dominating, and is attained by opposite gradients:

1. Given the other samples' sum, which is independent of the r coins, both worlds are mixtures over the 2^r outcomes b
   of the coins: normal laws with means m_b = sum_i b_i g_i, or m'_b of the g'_i; |m_b|, |m'_b| <= |b|, m_0 = m'_0 = 0.
   The hockey-stick divergence is jointly convex, so averaging over the other samples does not raise it.
2. For every alpha > 0 it is E f(e^{X_b - Var X_b / 2}, e^{X'_b - Var X'_b / 2}) with X_b = m_b.z / sigma, z standard
   normal, f(l, l') = max(0, sum_b Pr[b] (l_b - alpha l'_b)), which is convex.  Second derivatives of f are
   non-negative inside each group and non-positive across the two, so Kahane's inequality (interpolate linearly between
   two covariances; the slope of the expectation has the sign of those derivatives) says: the expectation rises with
   m_a.m_b and m'_a.m'_b and falls with m_a.m'_b.  By Cauchy and Schwarz none can pass |a| |b|, |a| |b| and -|a| |b|;
   m_b = |b| e, m'_b = -|b| e for one unit vector e reaches all three at once.
3. Adaptive steps: dominating pairs compose (Y. Zhu, J. Dong, Y.-X. Wang, "Optimal Accounting of Differential Privacy
   via Characteristic Function", AISTATS 2022, https://arxiv.org/abs/2106.08567, Theorem 10).

That a replacement needs more than removal's curve: C. J. Lebeda, M. Regehr, G. Kamath, T. Steinke, "Avoiding Pitfalls
for Privacy Accounting of Subsampled Mechanisms under Composition", https://arxiv.org/abs/2405.20769.  The inequality:
J.-P. Kahane, "Une inegalite du type de Slepian et Gordon sur les processus gaussiens", Israel J. Math. 55, 1986.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from graphveil.runtime.checks import require_number, require_whole
from graphveil.runtime.late import dp_accounting, special

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

FloatArray = npt.NDArray[np.float64]

#: Losses beyond this many deviations are counted as infinite: a mass of 2e-23 a step.
REACH: Final = 9.9
_NEWTON_STEPS: Final = 3
#: Whole orders of Renyi accounting, which is the cross-check.
ORDERS: Final = (*range(2, 64), 80, 96, 128, 192, 256)


class SampledPart(ABC):
    """A part of a pipeline that is gradient descent on Poisson samples: `steps` of them, at `rate`."""

    steps: int
    rate: float

    @property
    @abstractmethod
    def sensitivity(self) -> float:
        """The largest L2 change of one clipped sum, in units of the clipping norm."""

    @property
    def exact(self) -> bool:
        """Whether the part is a plain stack of Gaussian releases: every step sees everybody."""
        # Sampling with probability 1 is no sampling: the step is a plain Gaussian and has its exact curve.
        return self.rate == 1.0

    @property
    def noise_count(self) -> int:
        """How many standard deviations the part has: one for all steps."""
        return 1

    def squared_mu(self, sigmas: Sequence[float]) -> float:
        """steps (sensitivity / sigma)^2, what the part would weigh without sampling."""
        return self.steps * (self.sensitivity / sigmas[0]) ** 2


@dataclass(frozen=True, kw_only=True)
class ChangedSamples(SampledPart):
    """Gradient descent on Poisson samples of which the unit changes some; every gradient is clipped.

    Args:
        steps: how many, empty batches included.
        rate: the probability with which a batch has a sample, in (0, 1]; public, never from a private count.
        samples: of how many samples the unit can change the gradient: 1 (a directed edge) or 2 (an undirected edge).
        name: under which `calibrate_pipeline` returns its noise and `split` names its share.

    Raises:
        InputError: a number is outside its range.
    """

    steps: int
    rate: float
    samples: int
    name: str = "training"

    def __post_init__(self) -> None:
        require_whole(1, 10**9, self.name, steps=self.steps)
        require_whole(1, 2, self.name, samples=self.samples)
        require_number("(0, 1]", self.name, rate=self.rate)

    @property
    def sensitivity(self) -> float:
        """The largest L2 change of one clipped sum in units of the clipping norm: 2 for each changed sample."""
        # Vectors of length at most 1 can be 2 apart: the clipped gradient of each changed sample may reverse.
        return 2.0 * self.samples

    @property
    def probabilities(self) -> FloatArray:
        """Pr[k] for k = 0..samples changed samples in one batch."""
        q, r = self.rate, self.samples
        return np.array([math.comb(r, k) * q**k * (1 - q) ** (r - k) for k in range(r + 1)])

    def delta(self, epsilon: float, sigma: float) -> float:
        """The exact delta of one step at one epsilon, negative ones included.

        Args:
            epsilon: may be negative.
            sigma: standard deviation of the noise over the clipping norm.
        """
        return float(_deltas(self.probabilities, sigma, np.array([epsilon]))[0])

    def losses(self, sigma: float, grid: float) -> PrivacyLossDistribution:
        """All steps as losses on multiples of `grid`, from above ("connect the dots"): they dominate the true ones.

        Args:
            sigma: standard deviation of the noise over the clipping norm.
            grid: width of a step on the axis of privacy losses, in nats.
        """
        # Losses above the top count as infinite, paid for in delta: rounded up they are as rare as `REACH` says.
        top = math.ceil(self.largest_loss(sigma) / grid)
        deltas = _deltas(self.probabilities, sigma, grid * np.arange(-top, top + 1, dtype=np.float64))
        pld = dp_accounting.pld
        # A minimum from the left: delta falls with epsilon, but rounding may make a table entry rise.
        pmf = pld.pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(grid, -top, top, np.minimum.accumulate(deltas))
        # One table serves both directions: the pair is its own mirror image.
        return pld.privacy_loss_distribution.PrivacyLossDistribution(pmf).self_compose(self.steps)

    def largest_loss(self, sigma: float) -> float:
        """The largest finite loss of one step in nats; `sigma` as in `losses`."""
        return float(_loss(self.probabilities, sigma, np.array([self.samples + REACH * sigma]))[0])

    def renyi(self, sigma: float) -> FloatArray:
        """The Renyi divergence of all steps at each of `ORDERS`."""
        return self.steps * np.array([_renyi(self.probabilities, sigma, order) for order in ORDERS])


def _log_ratios(probabilities: FloatArray, sigma: float, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """log P/A and log Q/A at x, where A = N(0, sigma^2)."""
    with np.errstate(divide="ignore"):
        # In logs because both densities underflow far out, where the largest losses are.
        weights = np.log(probabilities) - (np.arange(len(probabilities)) / sigma) ** 2 / 2
    tilt, up, down = x / sigma**2, np.full_like(x, weights[0]), np.full_like(x, weights[0])
    for k, weight in enumerate(weights[1:], start=1):
        np.logaddexp(up, weight + k * tilt, out=up)
        np.logaddexp(down, weight - k * tilt, out=down)
    return up, down


def _loss(probabilities: FloatArray, sigma: float, x: FloatArray) -> FloatArray:
    up, down = _log_ratios(probabilities, sigma, x)
    return np.asarray(up - down)


def _thresholds(probabilities: FloatArray, sigma: float, epsilons: FloatArray) -> FloatArray:
    """Where the loss, which rises with x, equals each epsilon >= 0: interpolated, then Newton's steps."""
    largest = float(epsilons.max(initial=0.0))
    end = sigma
    while float(_loss(probabilities, sigma, np.array([end]))[0]) < largest:
        # The loss rises with x, so doubling finds an end beyond every threshold.
        end *= 2
    table = np.linspace(0.0, end, 20_001)
    x = np.interp(epsilons, _loss(probabilities, sigma, table), table)
    slopes = np.gradient(_loss(probabilities, sigma, table), table)
    for _ in range(_NEWTON_STEPS):
        # The slope of the table is close enough: Newton only has to correct the error of the interpolation.
        x = np.clip(x - (_loss(probabilities, sigma, x) - epsilons) / np.interp(x, table, slopes), 0.0, end)
    return np.asarray(x)


def _deltas(probabilities: FloatArray, sigma: float, epsilons: FloatArray) -> FloatArray:
    """P(x > t) - e^epsilon Q(x > t) at the loss's threshold t; by symmetry for negative epsilons.
    A threshold that is off by h lowers a delta by O(h^2): nothing, after Newton's steps.
    """
    size = np.abs(epsilons)
    t = _thresholds(probabilities, sigma, size)
    over, under = (
        sum(probability * special.ndtr((side * k - t) / sigma) for k, probability in enumerate(probabilities))
        for side in (1, -1)
    )
    with np.errstate(under="ignore", over="ignore"):
        # The difference may round below zero where both tails are tiny; a delta never is.
        positive = np.maximum(0.0, over - np.exp(size) * under)
        return np.asarray(np.where(epsilons >= 0, positive, -np.expm1(-size) + np.exp(-size) * positive))


def _renyi(probabilities: FloatArray, sigma: float, order: int) -> float:
    """D_order(P || Q) by the trapezoid rule, whose error for such entire functions is below rounding."""
    # The integrand lies within (2 l - 1) r of 0 and falls like a normal density: 14 deviations out is rounding.
    far = (2 * order + 1) * (len(probabilities) - 1) + 14 * sigma
    x = np.arange(-far, far, sigma / 8)
    up, down = _log_ratios(probabilities, sigma, x)
    # The width of a step, sigma / 8, is in the constant: the sum is then the integral itself.
    normal = -((x / sigma) ** 2) / 2 - math.log(8 * math.sqrt(2 * math.pi))
    return float(special.logsumexp(normal + order * up + (1 - order) * down)) / (order - 1)
