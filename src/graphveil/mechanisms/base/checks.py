"""Refusals that several mechanisms share; every message names the parameter and what is allowed."""

from __future__ import annotations

import math
from typing import Final

from graphveil.errors import InputError
from graphveil.privacy.printed import rounded_up

# The largest dense matrix that any mechanism makes (200 MB of 32-bit numbers).
DENSE_LIMIT: Final = 50_000_000
# The most possible reports that are listed for an audit.
MOST_REPORTS: Final = 1_000_000
# Below this a 64-bit threshold cannot tell a report from a coin toss.
SMALLEST_EPSILON: Final = 1e-12


def require_epsilon(epsilon: float, per: int = 1) -> None:
    """Refuse an epsilon that is not finite and positive, or below 1e-12 for each of `per` draws."""
    if not (_is_number(epsilon) and 0.0 < epsilon < math.inf):
        raise InputError(f"epsilon is {epsilon!r}", allowed="a finite number above 0")
    if epsilon / per < SMALLEST_EPSILON:
        raise InputError(
            f"epsilon {rounded_up(epsilon)} is too small to carry anything",
            allowed=f"at least {SMALLEST_EPSILON * per:g}",
        )


def require_delta(delta: float, smallest: float) -> None:
    """Refuse a delta outside [smallest, 1)."""
    if not (_is_number(delta) and smallest <= delta < 1.0):
        raise InputError(f"delta is {delta!r}", allowed=f"a number in [{smallest:g}, 1)")


def require_range(low: float, high: float) -> None:
    """Refuse a declared range that is not two finite numbers in order, or that overflows."""
    if not (_is_number(low) and _is_number(high) and low < high and math.isfinite(high - low)):
        raise InputError(f"the declared range is [{low!r}, {high!r}]", allowed="finite numbers, low below high")


def require_count(name: str, value: int, at_least: int, at_most: int | None = None) -> None:
    """Refuse anything but an integer in [at_least, at_most]."""
    inside = isinstance(value, int) and not isinstance(value, bool) and value >= at_least
    if not inside or (at_most is not None and value > at_most):
        upto = f" and at most {at_most}" if at_most is not None else ""
        raise InputError(f"{name} is {value!r}", allowed=f"an integer of at least {at_least}{upto}")


def require_dense(rows: int, columns: int, what: str) -> None:
    """Refuse to make a dense matrix above `DENSE_LIMIT` numbers."""
    if rows * columns > DENSE_LIMIT:
        raise InputError(
            f"{what} of {rows} users x {columns} coordinates would be {rows * columns:,} dense numbers",
            allowed=f"at most {DENSE_LIMIT:,}",
            remedy="use MultiBit, whose reports and centred estimates stay sparse",
        )


def require_enumerable(reports: int) -> None:
    """Refuse to list more than `MOST_REPORTS` possible reports."""
    if reports > MOST_REPORTS:
        raise InputError(f"there are {reports:,} possible reports", allowed=f"at most {MOST_REPORTS:,}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
