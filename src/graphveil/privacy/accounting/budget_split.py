"""The least noise that meets a budget: of one event, or all standard deviations of a pipeline in one search.

Every search returns the private side of its tolerance. A split gives every part its share of mu^2, the quantity that
adds up over Gaussian releases. A sampled part's share is turned into noise by Renyi accounting: as much as makes it
cost what a Gaussian of that mu costs. This fixes the proportions; one factor on all of them is then searched with the
joint accountant, which alone decides what is promised.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from graphveil.errors import GraphveilError, InputError, NoiseError
from graphveil.privacy.accounting.accountant import RDP_ORDERS, AccountantName, epsilon_of
from graphveil.privacy.accounting.changed_samples import ChangedSamples
from graphveil.privacy.accounting.gaussian import analytic_gaussian_sigma, gaussian_renyi_epsilon
from graphveil.privacy.accounting.pipeline import Hops, Noise, Part, pipeline_epsilon, pipeline_event, require_parts
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.privacy.accounting.selection import RepeatAndSelect, allowance, repeat_and_select
from graphveil.runtime.checks import require_number

if TYPE_CHECKING:
    from dp_accounting import DpEvent

# An event with a fixed cost above the target would keep the doubling going for ever.
_LARGEST_NOISE: Final = 2.0**40


def calibrate(
    event_of: Callable[[float], DpEvent],
    epsilon: float,
    delta: float,
    *,
    accountant: AccountantName = "pld",
    tolerance: float = 1e-6,
) -> float:
    """The smallest noise with which `event_of(noise)` costs at most `epsilon` at `delta`, by the same accountant.

    Args:
        event_of: the event for a noise level; more noise must cost less.
        epsilon, delta: the target, epsilon finite and positive, delta in (0, 1).
        accountant: who judges.
        tolerance: how far above the smallest possible noise the answer may lie, absolute.

    Raises:
        InputError: an argument is not allowed.
        NoiseError: no noise level reaches the target.
    """
    require_number("(0, inf)", epsilon=epsilon)
    from scipy.optimize import brentq  # loads late: most plans search nothing

    # The search uses the accountant that judges: by another one the result could be too dear, or waste noise.
    # Cached for each noise, since a root finder comes back to the ends of its bracket.
    @cache
    def gap(noise: float) -> float:
        return epsilon_of(event_of(noise), delta, accountant) - epsilon

    def affordable(noise: float) -> bool:
        return gap(noise) <= 0.0

    # Two noise levels a factor 2 apart, the lower too little and the higher enough: by factors of 2 from 1 on, the
    # multiplier of ordinary settings, since each step costs one run of the accountant.
    high = 1.0
    while not affordable(high):
        if high >= _LARGEST_NOISE:
            raise NoiseError(f"no noise level reaches epsilon {rounded_up(epsilon)} at delta {rounded_up(delta)}")
        high *= 2
    while affordable(high / 2) and high > 1 / _LARGEST_NOISE:
        high /= 2
    noise = float(brentq(gap, high / 2, high, xtol=tolerance))
    # The root finder may land a tolerance below the edge: walk back up to the safe side.
    while not affordable(noise):
        # Beside very large noise the tolerance alone would be lost in rounding.
        noise += max(tolerance, 4 * math.ulp(noise))
    return noise


# The search stops at noise that is affordable and costs at least this share of the target.
_CLOSE_ENOUGH: Final = 1 - 2e-4
_MOST_TRIES: Final = 60
# Renyi accounting is an upper bound too: the number printed may exceed it by rounding at most.
_ROUNDING: Final = 1e-3


@dataclass(frozen=True)
class CalibratedPipeline:
    """The noise of a pipeline and what it costs.

    Args:
        parts: the pipeline.
        noise: part name -> standard deviations in units of the clipped norm (one a hop, one for all steps).
        epsilon: what the accountant charges, never above the target; with a tuning the target itself, see `selection`.
        delta: the whole promised delta, `reserved` included.
        reserved: the part of delta kept for the cut tails of the noise.
        tuning: the repetition that was priced, or None.
    """

    parts: tuple[Part, ...]
    noise: Noise = field(hash=False)
    epsilon: float
    delta: float
    reserved: float = 0.0
    tuning: RepeatAndSelect | None = None

    def sigmas(self, name: str) -> tuple[float, ...]:
        """The standard deviations of the part `name`; InputError where there is no such part."""
        if name not in self.noise:
            raise InputError(f"no part named {name!r}", where="pipeline", allowed=", ".join(self.noise))
        return self.noise[name]

    @property
    def event(self) -> DpEvent:
        """Everything released as one dp-accounting event, the tuning included."""
        trial = pipeline_event(self.parts, self.noise)
        return trial if self.tuning is None else self.tuning.event(trial)


def default_split(parts: Sequence[Part]) -> dict[str, float]:
    """Half of mu^2 to the hops and half to the training, each divided equally; all to one kind if it is alone."""
    require_parts(parts)
    kinds = [isinstance(part, Hops) for part in parts]
    return {part.name: 1 / (len(set(kinds)) * kinds.count(isinstance(part, Hops))) for part in parts}


def calibrate_pipeline(
    epsilon: float,
    delta: float,
    parts: Sequence[Part],
    *,
    split: Mapping[str, float] | None = None,
    reserved: float = 0.0,
    tuning: RepeatAndSelect | None = None,
) -> CalibratedPipeline:
    """The least noise, in the proportions of a split, with which the pipeline costs at most (epsilon, delta): exact for
    stacks of Gaussians, else within 0.02 % of epsilon below the target.

    Args:
        epsilon, delta: the target, epsilon finite and positive, delta in (0, 1) and declared, not computed from data.
        parts: everything that is released, except what costs this unit nothing.
        split: part name -> share of mu^2, positive, any scale; default: `default_split`.
        reserved: a part of delta kept for the cut tails of the noise, in [0, delta).
        tuning: also price this repetition, whatever settings its trials have at the same price; by Renyi accounting.

    Raises:
        InputError: an argument is not allowed.
        NoiseError: no noise reaches the target.
        GraphveilError: the accountants contradict each other; nothing may be released then.
    """
    require_number("(0, inf)", epsilon=epsilon)
    require_number("(0, 1)", delta=delta)
    # Zero delta left for the noise itself would mean pure privacy, which no Gaussian gives.
    require_number(f"[0, {delta!r})", "delta", reserved=reserved)
    pipeline = tuple(parts)
    require_parts(pipeline)
    weights, names = default_split(pipeline) if split is None else split, [part.name for part in pipeline]
    if set(weights) != set(names):
        raise InputError(f"the split names {sorted(weights)}", where="split", allowed=", ".join(names))
    require_number("(0, inf)", "split", **weights)
    # Shares on any scale: they are divided by their sum, so that they cannot promise more than the whole.
    total = math.fsum(weights.values())
    shares = tuple(weights[name] / total for name in names)
    # The cut tails are paid first: the accountant assumes normal laws with infinite tails, and the sampler cuts them.
    sigmas_of_parts, cost = _search(epsilon, delta - reserved, pipeline, shares, tuning)
    noise = MappingProxyType({part.name: sigmas for part, sigmas in zip(pipeline, sigmas_of_parts, strict=True)})
    # Checked after the search by other code: a failed calibration must not result in no noise.
    _require_sound(pipeline, noise, epsilon, delta - reserved, cost, tuning)
    return CalibratedPipeline(pipeline, noise, cost, delta, reserved, tuning)


Sigmas = tuple[tuple[float, ...], ...]


@lru_cache(maxsize=256)
def _search(
    epsilon: float, delta: float, parts: tuple[Part, ...], shares: tuple[float, ...], tuning: RepeatAndSelect | None
) -> tuple[Sigmas, float]:
    """The standard deviations of every part and their joint epsilon. Depends on public numbers alone."""
    # Cached because a plan and a fit search for the same noise. All arguments are public, so a hit reveals nothing.
    trial = None if tuning is None else allowance(epsilon, delta, tuning)
    # The whole budget as one Gaussian release. Squares of mu add up exactly (Dong, Roth, Su, Corollary 3.3), so shares
    # of mu^2 are shares of everything that a stack of Gaussians costs.
    mu = 1.0 / analytic_gaussian_sigma(epsilon, delta, 1.0) if trial is None else trial.mu

    # Parts that differ only in name weigh the same and are searched once.
    @cache
    def noise_alone(part: Part, share: float) -> tuple[float, ...]:
        return _noise_alone(part, math.sqrt(share) * mu, delta)

    unscaled = tuple(noise_alone(replace(part, name="part"), share) for part, share in zip(parts, shares, strict=True))

    # One factor on all parts: proportions concern utility, and only the size of the noise concerns privacy.
    def scaled(factor: float) -> Sigmas:
        return tuple(tuple(factor * sigma for sigma in sigmas) for sigmas in unscaled)

    def noise(factor: float) -> Noise:
        return dict(zip((part.name for part in parts), scaled(factor), strict=True))

    def cost(accountant: AccountantName) -> Callable[[float], float]:
        return lambda factor: pipeline_epsilon(parts, noise(factor), delta, accountant=accountant)

    # The bound for a tuning is stated at a pair of Renyi orders; loss distributions know no random repetition.
    if trial is not None:
        factor, _ = least_factor(lambda factor: trial.used(pipeline_event(parts, noise(factor))), 1.0, 1.0)
        return scaled(factor), epsilon

    # Stacks of Gaussians are right at the first step, up to rounding; Renyi accounting quickly brings the rest close.
    start = 1.0
    if not all(part.exact for part in parts):
        start = least_factor(cost("rdp"), epsilon, 1.0)[0]
    factor, price = least_factor(cost("pld"), epsilon, start)
    return scaled(factor), price


def least_factor(cost: Callable[[float], float], target: float, start: float) -> tuple[float, float]:
    """A factor with `cost(factor)` just below `target`, never above it, and that cost: by secant steps on logarithms
    inside a bracket.

    Args:
        cost: epsilon that a factor on all noise costs; falls as the factor grows.
        target: epsilon that may be spent, above 0.
        start: the first factor tried, above 0; a near guess saves calls of `cost`.

    Raises:
        NoiseError: the cost does not come down to the target.
    """
    low, high = 0.0, math.inf
    factor, best, slope = start, (math.inf, math.inf), -1.0
    previous: tuple[float, float] | None = None
    for _ in range(_MOST_TRIES):
        price = cost(factor)
        if price <= target:
            high, best = factor, (factor, price)
            # Only factors that cost at most the target become `best`: stopping early wastes noise, never privacy.
            if price >= target * _CLOSE_ENOUGH or high <= low * (1 + 1e-7):
                return best
        else:
            low = factor
        if previous is not None and 0.0 < price < math.inf and 0.0 < previous[1] < math.inf and price != previous[1]:
            # Never flat or rising: a cost distorted by rounding would send the next step the wrong way.
            slope = min(-0.1, math.log(price / previous[1]) / math.log(factor / previous[0]))
        previous = (factor, price)
        factor = _next_factor(factor, price, target, slope, low, high)
    if math.isinf(best[0]):
        raise NoiseError(f"no noise reaches epsilon {target:g}")
    return best


def _next_factor(factor: float, price: float, target: float, slope: float, low: float, high: float) -> float:
    """The next factor to try: a secant step when it stays inside the bracket, else its middle or twice the low end."""
    if 0.0 < price < math.inf:
        # Aimed at the middle of the accepted range: a guess at its upper edge would often land above the target.
        aim = math.log(target * (1 + _CLOSE_ENOUGH) / 2 / price) / slope
        # At most a factor e^3 at once: far from the target the curve is no power law.
        step = factor * math.exp(max(-3.0, min(3.0, aim)))
        if low < step < high:
            return step
    if math.isinf(high):
        return 2 * low
    # The middle on a logarithmic scale, since noise may be off by orders of magnitude and not by amounts.
    return math.sqrt(low * high) if low > 0.0 else high / 2


def _noise_alone(part: Part, mu: float, delta: float) -> tuple[float, ...]:
    """The noise with which one part weighs as much as a Gaussian release of `mu`."""
    if isinstance(part, Hops):
        # One part in 10^13 more than what rounding could take away.
        return tuple(sigma * (1 + 1e-13) for sigma in part.spread(mu))
    if part.exact:
        return (part.sensitivity * math.sqrt(part.steps) / mu * (1 + 1e-13),)
    # Both sides by Renyi accounting, so that its slack falls on both and the proportions come out as the split says.
    target = gaussian_renyi_epsilon(1 / mu, delta, RDP_ORDERS)
    if isinstance(part, ChangedSamples):
        changing: ChangedSamples = part

        def cost(sigma: float) -> float:
            return pipeline_epsilon((changing,), {changing.name: (sigma,)}, delta, accountant="rdp")

        return (least_factor(cost, target, part.sensitivity)[0],)
    # Rough on purpose: this fixes a proportion only, and `_search` decides what is promised.
    return (calibrate(part.event, target, delta, accountant="rdp", tolerance=1e-3 * part.sensitivity),)


def _require_sound(
    parts: tuple[Part, ...], noise: Noise, epsilon: float, delta: float, cost: float, tuning: RepeatAndSelect | None
) -> None:
    """Refuse noise that is not positive and finite, costs too much, or that the two accountants disagree about."""
    sigmas = [sigma for part in parts for sigma in noise[part.name]]
    # A published calibration silently returned noise 0, and training went on; this one refuses.
    if not all(0.0 < sigma < math.inf for sigma in sigmas) or not 0.0 < cost <= epsilon:
        raise GraphveilError(f"calibration gave noise {sigmas} at epsilon {cost!r}", allowed=f"epsilon {epsilon!r}")
    if tuning is not None and repeat_and_select(pipeline_event(parts, noise), delta, tuning) > epsilon:
        raise GraphveilError("the price of the tuning exceeds the declared epsilon", remedy="please report this")
    # Both accountants bound the same cost from above, the loss distribution more tightly up to its grid. Where Renyi
    # accounting reports clearly less, one of them is wrong.
    if tuning is None and cost > pipeline_epsilon(parts, noise, delta, accountant="rdp") * (1 + _ROUNDING):
        raise GraphveilError("two accountants disagree", remedy="nothing was released; please report this")
