"""What a trusted curator's pipeline costs: noisy sums and private training, composed for one protected unit.

A pipeline is a tuple of parts. `Hops` are Gaussian releases, each computed from those before it; `Descent` is private
gradient descent on Poisson samples. A part holds everything but its noise, which is given beside it as standard
deviations in units of the norm to which rows or gradients are clipped:

    Hops       mu^2 = sum_k (sensitivity / sigma_k)^2, by the analytic Gaussian curve (exact, adaptive hops included)
    Descent    steps x Poisson(rate) x Gaussian(sigma / sensitivity)   the unit is one sample
    Changes    steps x mixtures of Gaussians on both sides       the unit changes samples (`ChangedSamples`)
    together   a product of privacy loss distributions, or the Gaussian curve where nothing is sampled

The privacy losses of a step of `Descent`, for one sample more or less:

    A = N(0, sigma^2),   B = (1 - q) A + q N(1, sigma^2),   L(x) = log B/A = log(1 - q + q e^((x - 1/2) / sigma^2))

The sample is removed (B against A) or added (A against B). L rises with x, so with t = L^-1(epsilon)

    removed   delta(epsilon) = B(x > t) - e^epsilon A(x > t),      1 - e^epsilon      where epsilon <= log(1 - q)
    added     delta(epsilon) = A(x < s) - e^epsilon B(x < s),      s = L^-1(-epsilon),  0 where -epsilon <= log(1 - q)

dp-accounting evaluates the same curves at some ten thousand epsilons one by one; here they are evaluated together, and
everything after that is dp-accounting's own arithmetic.

Sources: J. Dong, A. Roth, W. Su, "Gaussian Differential Privacy", https://arxiv.org/abs/1905.02383v3, Corollary 3.3
(Gaussians compose exactly; its central limit theorem is not used); V. Doroshenko, B. Ghazi, P. Kamath, R. Kumar,
P. Manurangsi, "Connect the Dots: Tighter Discrete Approximations of Privacy Loss Distributions", PETS 2022,
https://arxiv.org/abs/2207.04380.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from graphveil.errors import InputError
from graphveil.privacy.accounting.accountant import PLD_GRID, RDP_ORDERS, AccountantName, epsilon_of
from graphveil.privacy.accounting.changed_samples import ORDERS, REACH, ChangedSamples, SampledPart
from graphveil.privacy.accounting.gaussian import gaussian_epsilon, gaussian_renyi_epsilon
from graphveil.runtime.checks import require_number, require_whole
from graphveil.runtime.late import dp_accounting, special

if TYPE_CHECKING:
    from dp_accounting import DpEvent
    from dp_accounting.pld.pld_pmf import PLDPmf
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

FloatArray = npt.NDArray[np.float64]

# Up to this largest loss of a step, in nats, tables are short enough on the finest grid: noise of at least about 0.7.
_SHORT_LOSS: Final = 16.0


def sampled_losses(rate: float, sigma: float, grid: float) -> PrivacyLossDistribution:
    """Return the losses of one step on multiples of `grid`, in both directions, from above ("connect the dots").

    Args:
        rate: q, in (0, 1).
        sigma: standard deviation of the noise over the clipping norm.
        grid: width of a step on the axis of privacy losses, in nats.
    """
    low, high = (_loss(rate, sigma, x) for x in (-REACH * sigma, 1 + REACH * sigma))
    return dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution(
        _distribution(_removal_deltas, rate, sigma, grid, low, high),
        _distribution(_addition_deltas, rate, sigma, grid, -high, -low),
    )


def coarsened_grid(grid: float, largest_loss: float) -> float:
    """Return the grid for a step whose losses go up to `largest_loss`: coarser by a power of 2 where these are large.

    Args:
        grid: the finest grid, for short tables.
        largest_loss: of one step, in nats.
    """
    # By the square: the length of the table and the number of sums both grow, but epsilon needs no more digits.
    return grid * 2.0 ** max(0, math.floor(2 * math.log2(max(largest_loss, _SHORT_LOSS) / _SHORT_LOSS)))


def _distribution(
    curve: Callable[[float, float, FloatArray], FloatArray],
    rate: float,
    sigma: float,
    grid: float,
    low: float,
    high: float,
) -> PLDPmf:
    first, last = math.floor(low / grid), math.ceil(high / grid)
    deltas = np.clip(curve(rate, sigma, grid * np.arange(first, last + 1, dtype=np.float64)), 0.0, 1.0)
    # A maximum from the right: delta falls with epsilon, and a table distorted by rounding may only be raised.
    falling = np.maximum.accumulate(deltas[::-1])[::-1]
    return dp_accounting.pld.pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(grid, first, last, falling)


def _loss(rate: float, sigma: float, x: float) -> float:
    return float(np.logaddexp(math.log1p(-rate), math.log(rate) + (x - 0.5) / sigma**2))


def _threshold(rate: float, sigma: float, losses: FloatArray) -> FloatArray:
    """The x at which L(x) is each of these losses, all above log(1 - q)."""
    # log((e^loss - (1 - q)) / q), which neither overflows for large losses nor loses digits near log(1 - q).
    tilt = losses + np.log(-np.expm1(math.log1p(-rate) - losses)) - math.log(rate)
    return np.asarray(0.5 + sigma**2 * tilt)


def _removal_deltas(rate: float, sigma: float, epsilons: FloatArray) -> FloatArray:
    deltas = -np.expm1(np.minimum(epsilons, 0.0))
    finite = epsilons > math.log1p(-rate)
    t = _threshold(rate, sigma, epsilons[finite])
    over = (1 - rate) * special.ndtr(-t / sigma) + rate * special.ndtr((1 - t) / sigma)
    # In logs because e^epsilon may overflow where the tail beside it underflows.
    deltas[finite] = over - np.exp(epsilons[finite] + special.log_ndtr(-t / sigma))
    return np.asarray(deltas)


def _addition_deltas(rate: float, sigma: float, epsilons: FloatArray) -> FloatArray:
    deltas = np.zeros_like(epsilons)
    finite = -epsilons > math.log1p(-rate)
    s, exp_epsilon = _threshold(rate, sigma, -epsilons[finite]), np.exp(epsilons[finite])
    below = (1 - rate) * special.ndtr(s / sigma) + rate * special.ndtr((s - 1) / sigma)
    deltas[finite] = special.ndtr(s / sigma) - exp_epsilon * below
    return deltas


@dataclass(frozen=True, kw_only=True)
class Hops:
    """Noisy sums over neighbours, one after the other.

    Args:
        sensitivity: the largest L2 change of one sum when the unit comes or goes, in units of the row norm (directed
            edge: w_max; undirected edge: sqrt(2) w_max; node: sqrt(D) w_max after a stable projection).
        sizes: the relative standard deviations of the hops; empty: all equal.
        name: under which `calibrate_pipeline` returns its noise and `split` names its share.

    Raises:
        InputError: a number is outside its range.
    """

    count: int
    sensitivity: float = 1.0
    sizes: tuple[float, ...] = ()
    name: str = "hops"

    def __post_init__(self) -> None:
        require_whole(1, None, self.name, count=self.count)
        require_number("(0, inf)", self.name, sensitivity=self.sensitivity)
        for size in self.sizes:
            require_number("(0, inf)", self.name, relative_size=size)
        if self.sizes and len(self.sizes) != self.count:
            raise InputError(f"{len(self.sizes)} relative sizes", where=self.name, allowed=f"{self.count}, or none")

    @property
    def exact(self) -> bool:
        """True: Gaussian releases have an exact privacy curve."""
        return True

    @property
    def noise_count(self) -> int:
        """How many standard deviations the part has: one a hop."""
        return self.count

    def spread(self, mu: float) -> tuple[float, ...]:
        """The standard deviations, in the proportion of `sizes`, with which all hops together weigh `mu`."""
        sizes = self.sizes or (1.0,) * self.count
        # From sum_k (sensitivity / sigma_k)^2 = mu^2 with sigma_k in proportion to the sizes.
        scale = self.sensitivity / mu * math.sqrt(math.fsum(size**-2 for size in sizes))
        return tuple(scale * size for size in sizes)

    def squared_mu(self, sigmas: Sequence[float]) -> float:
        """sum_k (sensitivity / sigma_k)^2."""
        return math.fsum((self.sensitivity / sigma) ** 2 for sigma in sigmas)


@dataclass(frozen=True, kw_only=True)
class Descent(SampledPart):
    """Gradient descent on Poisson samples, every sample's gradient clipped, noise added to every step's sum.

    Args:
        steps: how many, empty batches included.
        rate: the probability with which a step's batch has the unit, in (0, 1]; public, never from a private count.
        sensitivity: the largest L2 norm of what the unit adds to a clipped sum, in units of the clipping norm (1 where
            the unit is one sample). For a unit that changes samples see `ChangedSamples`.
        name: under which `calibrate_pipeline` returns its noise and `split` names its share.

    Raises:
        InputError: a number is outside its range.
    """

    steps: int
    rate: float
    sensitivity: float = 1.0
    name: str = "training"

    def __post_init__(self) -> None:
        require_whole(1, None, self.name, steps=self.steps)
        require_number("(0, inf)", self.name, sensitivity=self.sensitivity)
        require_number("(0, 1]", self.name, rate=self.rate)

    def event(self, sigma: float) -> DpEvent:
        """The part as a dp-accounting event."""
        # An event knows only noise over sensitivity: the clipping norm has dropped out of both.
        step = dp_accounting.GaussianDpEvent(sigma / self.sensitivity)
        return dp_accounting.SelfComposedDpEvent(dp_accounting.PoissonSampledDpEvent(self.rate, step), self.steps)

    def losses(self, sigma: float, grid: float) -> PrivacyLossDistribution:
        """All steps, of a rate below 1, as a distribution of privacy losses on multiples of `grid`, from above."""
        return sampled_losses(self.rate, sigma / self.sensitivity, grid).self_compose(self.steps)

    def largest_loss(self, sigma: float) -> float:
        """The largest finite loss of one step in nats."""
        sigma /= self.sensitivity
        return _loss(self.rate, sigma, 1 + REACH * sigma)


Part = Hops | Descent | ChangedSamples
Noise = Mapping[str, tuple[float, ...]]


def pipeline_event(parts: Sequence[Part], noise: Noise) -> DpEvent:
    """Everything the pipeline releases as one dp-accounting event; all Gaussians are replaced by their composition.

    Args:
        parts: everything that reads private data, each with a name of its own.
        noise: part name -> standard deviations in units of the clipping norm, `noise_count` of them.

    Raises:
        InputError: no parts, two of the same name, the noise does not fit them (absent, zero, infinite, NaN), or a part
            changes samples, for which dp-accounting has no event.
    """
    require_parts(parts)
    _require_noise(parts, noise)
    if _changed_samples(parts):
        raise InputError("changed samples have no single event", where="pipeline", remedy="ask pipeline_epsilon")
    events: list[DpEvent] = [
        part.event(noise[part.name][0]) for part in parts if isinstance(part, Descent) and not part.exact
    ]
    mu = _gaussian_mu(parts, noise)
    if mu > 0.0:
        events.append(dp_accounting.GaussianDpEvent(1.0 / mu))
    return events[0] if len(events) == 1 else dp_accounting.ComposedDpEvent(events)


def pipeline_epsilon(parts: Sequence[Part], noise: Noise, delta: float, *, accountant: AccountantName = "pld") -> float:
    """The epsilon of a pipeline at `delta`: exact where nothing is sampled, else by the accountant, from above.

    Args:
        parts: what is released.
        noise: part name -> standard deviations in units of the clipped norm, one a hop or one for all steps.
        delta: in (0, 1), without what cut tails of the noise were promised.

    Raises:
        InputError: see `pipeline_event`; delta is not allowed.
    """
    require_parts(parts)
    _require_noise(parts, noise)
    require_number("(0, 1)", delta=delta)
    # The epsilon of Gaussian releases and descents in which the unit changes samples, by either accountant.
    if changed := _changed_samples(parts):
        # Dominating pairs compose under one relation: removal in one part and replacement in another have no pair.
        if len(changed) + sum(part.exact for part in parts) < len(parts):
            raise InputError("parts protect different units: a sample, and changes to samples", where="pipeline")
        if accountant == "pld":
            return _joint_epsilon(parts, noise, delta)
        # l mu^2 / 2 is the Renyi divergence of order l of a Gaussian of mu, and divergences of one order add up.
        gaussian = np.array(ORDERS) * _gaussian_mu(parts, noise) ** 2 / 2
        renyi = sum(part.renyi(noise[part.name][0]) for part in changed) + gaussian
        return float(dp_accounting.rdp.compute_epsilon(ORDERS, renyi, delta)[0])
    # Closed forms where nothing is sampled: exact, and dp-accounting would take longer to load than a plan does.
    if all(part.exact for part in parts):
        sigma = 1.0 / _gaussian_mu(parts, noise)
        if accountant == "pld":
            return gaussian_epsilon(sigma, delta)
        if accountant == "rdp":
            return gaussian_renyi_epsilon(sigma, delta, RDP_ORDERS)
    if accountant == "pld":
        return _joint_epsilon(parts, noise, delta)
    return epsilon_of(pipeline_event(parts, noise), delta, accountant)


def _joint_epsilon(parts: Sequence[Part], noise: Noise, delta: float) -> float:
    """The epsilon of sampled parts, at least one, and of all Gaussian ones, by their privacy losses."""
    sampled = [part for part in parts if not (part.exact or isinstance(part, Hops))]
    mu = _gaussian_mu(parts, noise)
    grid = max(coarsened_grid(PLD_GRID, part.largest_loss(noise[part.name][0])) for part in sampled)
    losses = [part.losses(noise[part.name][0], grid) for part in sampled]
    if mu > 0.0:
        # All Gaussians as one: composing them on the grid would add its rounding once a hop.
        gaussian = dp_accounting.pld.privacy_loss_distribution.from_gaussian_mechanism
        losses.append(gaussian(1.0 / mu, value_discretization_interval=grid, use_connect_dots=True))
    joint = reduce(lambda left, right: left.compose(right), losses)
    return float(joint.get_epsilon_for_delta(delta))


def _changed_samples(parts: Sequence[Part]) -> list[ChangedSamples]:
    return [part for part in parts if isinstance(part, ChangedSamples) and not part.exact]


def require_parts(parts: Sequence[Part]) -> None:
    """Refuse a pipeline without parts, or with two of the same name."""
    # Noise is looked up by name: two parts of the same name would share it, and one would have the price of the other.
    names = [part.name for part in parts]
    if not names or len(set(names)) != len(names):
        raise InputError(f"parts named {names}", where="pipeline", allowed="at least one, all names different")


def _gaussian_mu(parts: Sequence[Part], noise: Noise) -> float:
    """The mu of all parts in which nothing is sampled."""
    return math.sqrt(math.fsum(part.squared_mu(noise[part.name]) for part in parts if part.exact))


def _require_noise(parts: Sequence[Part], noise: Noise) -> None:
    # A part without noise would be released as it is, and noise without a part is a mistake.
    if set(noise) != {part.name for part in parts}:
        names = ", ".join(part.name for part in parts)
        raise InputError(f"noise for {sorted(noise)}", where="pipeline", allowed=names)
    for part in parts:
        sigmas = noise[part.name]
        if len(sigmas) != part.noise_count:
            raise InputError(f"{len(sigmas)} standard deviations", where=part.name, allowed=f"{part.noise_count}")
        for sigma in sigmas:
            require_number("(0, inf)", part.name, sigma=sigma)
