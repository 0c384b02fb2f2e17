"""What an adversary may know of one unit, as a share of right guesses.

One unit is there or not, or has one of two values, each as likely as the other before anything is published, and the
adversary knows everything else.  Then any guess from what is published is right with a probability of at most

    1/2 + A/2 = (e^eps + delta) / (e^eps + 1),      A = (e^eps - 1 + 2 delta) / (e^eps + 1),

where A bounds TPR - FPR (Kairouz, Oh, Viswanath, "The composition theorem for differential privacy", ICML 2015, theorem
2.1).  Randomized response between two values reaches it.  Whoever knew more beforehand (most pairs are not linked)
guesses right more often, but did not learn that from the release.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from graphveil.privacy.statement.guarantee import Guarantee

PRIOR: Final = "before them both answers are equally likely (50:50), and everything else is known"
#: Numbers of guesses, of which the first is used at which at least one guess must be wrong.
_GUESSES: Final = (100, 1_000, 10_000, 1_000_000)
# Far more than the rounding of the formula, far less than one guess of a million.
_SAFETY: Final = 1e-12


def advantage(epsilon: float, delta: float) -> float:
    """Return the largest TPR - FPR of any test for one unit, in [0, 1].

    Args:
        epsilon: of the unit, at least 0; inf bounds nothing.
        delta: of the unit, in [0, 1].
    """
    ratio = math.exp(-epsilon)  # both sides of the fraction times e^-eps: no large epsilon overflows
    return min(1.0, (1 - ratio + 2 * delta * ratio) / (1 + ratio))


def best_guess(epsilon: float, delta: float) -> float:
    """Return the highest probability of a right guess about one unit, from an even prior, in [1/2, 1].

    Args:
        epsilon: of the unit, at least 0; inf bounds nothing.
        delta: of it, in [0, 1].

    >>> round(best_guess(1.0, 0.0), 4), best_guess(0.0, 0.0)
    (0.7311, 0.5)
    """
    return (1 + advantage(epsilon, delta)) / 2


def right_guesses(epsilon: float, delta: float) -> tuple[int, int] | None:
    """Return (right, guesses): at most so many of so many guesses are right, rounded up; None where nearly all may be.

    Args:
        epsilon, delta: as of `best_guess`.

    >>> right_guesses(1.0, 0.0), right_guesses(8.0, 0.0)
    ((74, 100), (9997, 10000))
    """
    best = best_guess(epsilon, delta) * (1 + _SAFETY)
    for guesses in _GUESSES:
        right = math.ceil(guesses * best)
        if right < guesses:
            return right, guesses
    return None


def adversary(guarantee: Guarantee) -> str:
    """Return in words what anybody who sees the release may know of one unit, and the prior that this assumes."""
    return guesses_about(guarantee.unit.text, guarantee.epsilon, guarantee.delta)


def guesses_about(unit: str, epsilon: float, delta: float) -> str:
    """Return in words how many guesses about a unit may be right.

    Args:
        unit: one edge, one person, ...
        epsilon, delta: as of `best_guess`.
    """
    bound = right_guesses(epsilon, delta)
    if bound is None:
        return f"nearly every guess about {unit} may be right: this epsilon hides nothing"
    right, guesses = bound
    return f"of {guesses:,} guesses about {unit} at most {right:,} are right on average, where {PRIOR}"
