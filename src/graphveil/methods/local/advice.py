"""How to split a person's total budget between features and label, from public facts alone.

Measured on public benchmark graphs (benchmarks/lead.py): while the label report still errs often, epsilon spent on
the label buys more accuracy than epsilon spent on one bit about one of d features.  So the label comes first, up to the
epsilon at which randomized response keeps it with probability SATURATED; what is left goes to the features.
"""

from __future__ import annotations

import math

from graphveil.errors import InputError
from graphveil.privacy import require_budget

#: A label that is kept this often gains nothing worth having from more epsilon.
SATURATED = 0.98
#: A feature report below this epsilon is not worth asking for.
LEAST_FEATURE_EPSILON = 1.0


def advised_split(total: float, classes: int) -> tuple[float | None, float]:
    """Return (epsilon_x, epsilon_y) for a total budget per person; None collects no features.

    Raises:
        InputError: for a total that is not finite and positive.
    """
    if not (math.isfinite(total) and total > 0):
        raise InputError(f"epsilon = {total!r} is not a total budget", allowed="a finite number above 0")
    require_budget("epsilon", total, "data declared public, in epsilon_x or epsilon_y")
    # e^eps / (e^eps + c - 1) = SATURATED, solved for eps.
    enough = math.log(SATURATED * (classes - 1) / (1 - SATURATED))
    if total < enough + LEAST_FEATURE_EPSILON:
        return None, total
    return total - enough, enough
