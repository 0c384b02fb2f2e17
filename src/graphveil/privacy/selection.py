"""The price of trying several settings on the same private data and keeping the best.

The best of a fixed number of trials costs their composition. Drawing the number of trials from a wide law and
releasing the best alone costs a small factor, however many were run.

Source: N. Papernot, T. Steinke, "Hyperparameter Tuning with Renyi Differential Privacy", ICLR 2022,
https://arxiv.org/abs/2110.03620v2, Theorem 2 and Corollary 4 (truncated negative binomial), Theorem 6 (Poisson).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from graphveil.errors import InputError
from graphveil.privacy.accountant import epsilon_of
from graphveil.privacy.randomness import Randomness

if TYPE_CHECKING:
    from dp_accounting import DpEvent

_SHAPES: Final = {"logarithmic": 0.0, "geometric": 1.0, "poisson": math.inf}
_BISECTIONS: Final = 200


@dataclass(frozen=True)
class RepeatAndSelect:
    """Run a random number of trials, release the best one and its score only.

    A trial takes its settings at random, independently of the others, and releases a model with its score; the score
    is part of what the trial pays for. Neither the number of trials nor any other trial may be shown.

    Args:
        mean: the expected number of trials, at least 1.
        law: "logarithmic" (cheapest, widest), "geometric" or "poisson" (narrow; may draw no trial at all).

    Raises:
        InputError: a parameter is outside its range.
    """

    mean: float
    law: str = "logarithmic"

    def __post_init__(self) -> None:
        if self.law not in _SHAPES:
            raise InputError(f"law is {self.law!r}", allowed=", ".join(_SHAPES))
        if not 1.0 < self.mean <= 1e6:
            raise InputError(f"the mean number of trials is {self.mean!r}", allowed="a number in (1, 1000000]")

    def event(self, trial: DpEvent) -> DpEvent:
        """The whole tuning as a dp-accounting event, for Renyi accounting only."""
        from dp_accounting.dp_event import RepeatAndSelectDpEvent

        return RepeatAndSelectDpEvent(trial, self.mean, _SHAPES[self.law])

    def draw(self, randomness: Randomness) -> int:
        """How many trials to run, by inverting the law's distribution at a 53-bit uniform number from above."""
        uniform = (float(int(randomness.uint64(1)[0]) >> 11) + 0.5) * 2.0**-53
        if self.law == "geometric":
            return max(1, math.ceil(math.log1p(-uniform) / math.log1p(-1 / self.mean)))
        count, mass = (0, math.exp(-self.mean)) if self.law == "poisson" else (1, self._first())
        keep = 1 - self._gamma() if self.law == "logarithmic" else 0.0
        total = mass
        while uniform > total and mass > 0.0:
            count += 1
            mass *= self.mean / count if self.law == "poisson" else keep * (count - 1) / count
            total += mass
        return count

    def _first(self) -> float:
        """The logarithmic law's probability of one trial."""
        gamma = self._gamma()
        return (1 - gamma) / -math.log(gamma)

    def _gamma(self) -> float:
        """The gamma with which the logarithmic law, (1 - gamma)^k / (k log(1/gamma)), has the wanted mean."""
        low, high = -60.0, 0.0
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            # The mean is (1/gamma - 1) / log(1/gamma), decreasing in log gamma.
            mean = math.expm1(-middle) / -middle if middle else 1.0
            low, high = (middle, high) if mean > self.mean else (low, middle)
        return math.exp(high)


def repeat_and_select(trial: DpEvent, delta: float, tuning: RepeatAndSelect) -> float:
    """The epsilon at `delta` of tuning by repeating `trial`, with Renyi accounting.

    Raises:
        InputError: delta is not allowed.
    """
    return epsilon_of(tuning.event(trial), delta, "rdp")
