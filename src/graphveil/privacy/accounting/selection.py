"""The price of trying several settings on the same private data and keeping the best.

The best of a fixed number of trials costs their composition. Drawing the number of trials K from a wide law, which
looks at nothing private, and releasing the best alone costs a small factor, however many were run:

    trial     settings at random, a model, its score; rho(l) its Renyi divergence of order l
    tuning    rho(l) + (1 + eta) ((1 - 1/l') rho(l') + log(1/gamma) / l') + log E[K] / (l - 1)      for every l'

eta is 0 for the logarithmic law, 1 for the geometric one; gamma is the law's parameter. A trial draws its settings in
public, so its rho is at most the largest of all settings' at each order: `Allowance` fixes one pair (l, l') and what
every setting may weigh there, and then any mixture of them costs what was promised. Equal scores: the first is kept,
which is as good as a fair draw, since the trials are exchangeable.

Rounding. Noise of `samplers.rounded_normal` has cells right up to a factor e^t and misses a mass c. Read it as noise
R' that is right up to e^t everywhere, conditioned on the mass 1 - c: the two differ with probability c a draw. With R'
on the d coordinates that a unit can change, a trial's rho grows by d t (2 l - 1) / (l - 1) <= 3 d t, so the tuning's
epsilon e by at most 3 d t (2 + eta). All trials together differ from those with R' with probability at most
sum_k P[K >= k] d c = E[K] d c, K being independent of them, which adds E[K] d c (1 + e^e) to delta: no bound on K is
needed. Both are covered by pricing `trials_charged` = max(5, E[K]) times as many coordinates.

Source: N. Papernot, T. Steinke, "Hyperparameter Tuning with Renyi Differential Privacy", ICLR 2022,
https://arxiv.org/abs/2110.03620v2, Theorem 2; C. Canonne, G. Kamath, T. Steinke, "The Discrete Gaussian for
Differential Privacy", https://arxiv.org/abs/2004.00010v4, Proposition 12 (from Renyi divergence to epsilon).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Final

import numpy as np

from graphveil.errors import InputError
from graphveil.privacy.accounting.accountant import RDP_ORDERS, epsilon_of
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.privacy.source.randomness import Randomness
from graphveil.runtime.checks import require_choice, require_number
from graphveil.runtime.late import dp_accounting

if TYPE_CHECKING:
    from dp_accounting import DpEvent

LAWS: Final = {"logarithmic": 0.0, "geometric": 1.0}
_BISECTIONS: Final = 200
_DIGITS: Final = 50
#: More than the variation distance between the law that is drawn from (128 bits, `_DIGITS` digits) and the exact one.
_LAW_ERROR: Final = 2.0**-100
# Far more than the rounding of the formulas below.
_SAFETY: Final = 1e-9


@dataclass(frozen=True)
class RepeatAndSelect:
    """Run a random number of trials, release the best one and its score only. A trial takes its settings at random,
    independently of the others, and releases a model with its score; the score is part of what the trial pays for.
    Neither the number of trials nor any other trial may be shown.

    Args:
        mean: the expected number of trials, above 1.
        law: "logarithmic" (cheapest, widest: one trial is the most likely number) or "geometric".

    Raises:
        InputError: a parameter is outside its range.
    """

    mean: float
    law: str = "logarithmic"

    def __post_init__(self) -> None:
        require_choice(LAWS, law=self.law)
        require_number("(1, 1000000]", "number of trials", mean=self.mean)

    @property
    def shape(self) -> float:
        """eta, of the truncated negative binomial law."""
        return LAWS[self.law]

    @property
    def trials_charged(self) -> int:
        """How many times the coordinates of a trial are charged with the rounding of noise, see above."""
        # `price` adds 2 t a coordinate, and 3 t (2 + eta) <= 9 t are needed: 5 times. Delta needs E[K].
        return max(5, math.ceil(self.mean))

    def law_slack(self, epsilon: float) -> float:
        """What drawing the number of trials with finitely many bits adds to delta."""
        # Off by c in variation distance costs delta c on one side, c e^epsilon on the other; exp overflows above 709.
        return _LAW_ERROR * (1 + math.exp(min(epsilon, 700.0)))

    def event(self, trial: DpEvent) -> DpEvent:
        """The whole tuning as a dp-accounting event, for Renyi accounting only."""
        return dp_accounting.dp_event.RepeatAndSelectDpEvent(trial, self.mean, self.shape)

    def draw(self, randomness: Randomness) -> int:
        """How many trials to run, by inverting the law's distribution at a uniform number of 128 bits."""
        # Decimals of a fixed precision: the law may not depend on the floating point of the machine that draws.
        with localcontext() as context:
            context.prec = _DIGITS
            # The middle of a cell of 2^-128: never 0 and never 1, so the inversion always ends.
            uniform = (int.from_bytes(randomness.bytes(16), "little") + Decimal("0.5")) / 2**128
            gamma, geometric = Decimal(self.gamma), self.shape == 1.0
            count, mass = 1, gamma if geometric else (1 - gamma) / -gamma.ln()
            total = mass
            while uniform > total:
                count += 1
                mass *= (1 - gamma) * (1 if geometric else Decimal(count - 1) / count)
                total += mass
        return count

    @property
    def gamma(self) -> float:
        """The law's parameter: gamma (1 - gamma)^(k - 1), or (1 - gamma)^k / (k log(1/gamma)), has the wanted mean."""
        if self.shape == 1.0:
            return 1 / self.mean
        low, high = -60.0, 0.0
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            # The mean is (1/gamma - 1) / log(1/gamma), decreasing in log gamma.
            mean = math.expm1(-middle) / -middle if middle else 1.0
            low, high = (middle, high) if mean > self.mean else (low, middle)
        return math.exp(low)


@dataclass(frozen=True)
class Allowance:
    """What one trial may weigh so that a tuning, whatever trials it mixes, costs at most its budget.

    Attributes:
        orders: l and l' of the formula above.
        most: the largest Renyi divergence of a trial at each of these orders.
        mu: of the Gaussian release that weighs this much at both orders.
    """

    orders: tuple[int, int]
    most: tuple[float, float]
    mu: float

    def used(self, trial: DpEvent) -> float:
        """The share of the allowance that a trial takes, at the order where it takes more; above 1 it must not run."""
        weights = dp_accounting.rdp.RdpAccountant(orders=self.orders).compose(trial).rdp
        # Within the allowance at both orders, or the formula for the whole tuning does not hold.
        return max(float(weight) / limit for weight, limit in zip(weights, self.most, strict=True))


def allowance(epsilon: float, delta: float, tuning: RepeatAndSelect) -> Allowance:
    """The allowance of one trial of a tuning that costs (epsilon, delta), at the orders best for Gaussians.

    Args:
        epsilon: of the whole tuning, above 0 and finite.
        delta: of the whole tuning, in (0, 1).
        tuning: law and mean of the random number of trials.

    Raises:
        InputError: an argument is not allowed, or no trial is cheap enough.
    """
    require_number("(0, inf)", epsilon=epsilon)
    require_number("(0, 1)", delta=delta)
    # Both orders are searched at once on a grid; it is small, and the best pair depends on epsilon and delta.
    orders = np.array(RDP_ORDERS, dtype=float)
    outer, inner, repetitions = orders[:, None], orders[None, :], 1 + tuning.shape
    # What random repetition costs at each pair of orders before a trial weighs anything: Theorem 2 without rho, and the
    # step from Renyi divergence to epsilon of Proposition 12 instead of the plain log(1/delta) / (l - 1).
    fixed = math.log(tuning.mean) / (outer - 1) - repetitions * math.log(tuning.gamma) / inner
    fixed = fixed + np.log1p(-1 / outer) - np.log(delta * outer) / (outer - 1)
    # A Gaussian's rho(l) is l mu^2 / 2 and (1 - 1/l') rho(l') is (l' - 1) mu^2 / 2: linear in mu^2, no search.
    squared = (epsilon * (1 - _SAFETY) - fixed) / (outer / 2 + repetitions * (inner - 1) / 2)
    best = np.unravel_index(int(squared.argmax()), squared.shape)
    # At small delta the fixed cost alone can exceed epsilon: then no amount of noise in the trials helps.
    if not squared[best] > 0.0:
        raise InputError(
            f"no noise reaches epsilon {rounded_up(epsilon)} with that many trials", remedy="raise epsilon or delta"
        )
    best_orders, half_squared_mu = (RDP_ORDERS[best[0]], RDP_ORDERS[best[1]]), float(squared[best]) / 2
    return Allowance(
        best_orders,
        (best_orders[0] * half_squared_mu, best_orders[1] * half_squared_mu),
        math.sqrt(2 * half_squared_mu),
    )


def repeat_and_select(trial: DpEvent, delta: float, tuning: RepeatAndSelect) -> float:
    """The epsilon at `delta` of tuning by repeating `trial`, with Renyi accounting.

    Args:
        trial: what one training releases.
        delta: of the whole tuning, in (0, 1).
        tuning: law and mean of the random number of trials.

    Raises:
        InputError: delta is not allowed.
    """
    return epsilon_of(tuning.event(trial), delta, "rdp")
