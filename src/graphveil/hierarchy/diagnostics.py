"""Have chains that never saw a private edge come to agree?

The trace of a chain that private edges steer tells about them at each of its steps, which no budget pays for. So traces
are taken only of chains that walk towards the public part of the law, exp(L_public): they tell whether the number of
steps was enough for that part, and the private part weighs little beside it.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from graphveil.errors import InputError


def split_rhat(traces: npt.ArrayLike) -> float:
    """The potential scale reduction of halves of chains: near 1 where all of them agree, in mean and along the way.

    Source: A. Gelman et al., "Bayesian Data Analysis", 3rd edition, 2013, section 11.4, eq. 11.4.

    Args:
        traces: [chains, points], the first steps already left out.

    Returns:
        At least about 1; infinity where halves are constant but different, nan where all numbers are equal.

    Raises:
        InputError: fewer than 4 points in a chain, no chain, or a number that is not finite.
    """
    values = np.asarray(traces, np.float64)
    if values.ndim != 2 or len(values) < 1 or values.shape[1] < 4 or not np.isfinite(values).all():
        raise InputError(f"traces of shape {list(values.shape)}", allowed="chains of at least 4 finite numbers")
    # Halves of chains and not whole ones: a chain that drifts slowly agrees with the others and not with its own
    # beginning.
    half = values.shape[1] // 2
    halves = np.concatenate([values[:, :half], values[:, -half:]])
    within = float(halves.var(1, ddof=1).mean())
    between = float(half * halves.mean(1).var(ddof=1))
    # Constant halves: R-hat is 0 / 0 where they agree, and infinite where they do not.
    if within == 0.0:
        return math.nan if between == 0.0 else math.inf
    return math.sqrt((half - 1) / half + between / within / half)
