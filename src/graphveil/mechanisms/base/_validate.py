"""Checks of parameters and arrays; values are passed by the names that refusals print.

Raw values are never printed: messages end in logs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from graphveil.errors import InputError
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.runtime.checks import is_number, require_number
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor

# The largest dense matrix of reports or estimates (4 GB of 32-bit numbers): of 10^7 people, 100 columns.
DENSE_LIMIT: Final = 1 << 30
# The largest matrix that is processed as a whole, in several copies of 64-bit numbers (400 MB each).
WORK_LIMIT: Final = 50_000_000
# Audits list at most this many possible reports.
MOST_REPORTS: Final = 1_000_000
# Below this a 64-bit threshold cannot tell a report from a coin toss.
SMALLEST_EPSILON: Final = 1e-12
# The number of users, coordinates and classes fits into the 32-bit integers of reports.
LARGEST_COUNT: Final = 2**31 - 1


def require_epsilon(epsilon: float, *, per: int = 1) -> None:
    """Refuse an epsilon that is not finite and positive (NaN included), or below 1e-12 a draw, with InputError.

    Args:
        per: number of draws that share epsilon.
    """
    require_number("(0, inf)", epsilon=epsilon)
    if epsilon / per < SMALLEST_EPSILON:
        raise InputError(
            f"epsilon {rounded_up(epsilon)} is too small to carry information",
            allowed=f"at least {SMALLEST_EPSILON * per:g}",
        )


def require_delta(smallest: float, *, delta: float) -> None:
    """Refuse a delta outside [smallest, 1) with InputError."""
    if not (is_number(delta) and smallest <= delta < 1.0):
        raise InputError(f"delta is {delta!r}", allowed=f"a number in [{smallest:g}, 1)")


def require_range(*, low: float, high: float) -> None:
    """Refuse a declared range that is not two finite numbers in order, or that overflows, with InputError."""
    # Two finite ends may still be further apart than the largest float, and the width is what noise is scaled to.
    if not (is_number(low) and is_number(high) and low < high and math.isfinite(high - low)):
        raise InputError(f"the declared range is [{low!r}, {high!r}]", allowed="finite numbers, low below high")


def require_dense_size(rows: int, columns: int, name: str, *, most: int = DENSE_LIMIT) -> None:
    """Refuse to make a dense matrix [rows, columns] of too many numbers with InputError.

    Args:
        name: the matrix in a word or two.
    """
    # Refused before anything is drawn: to run out of memory half-way would spend budget for nothing.
    if rows * columns > most:
        raise InputError(
            f"{name} of {rows} users x {columns} coordinates would be {rows * columns:,} dense numbers",
            allowed=f"at most {most:,}",
            remedy="use MultiBit, whose reports and centred estimates stay sparse",
        )


def require_enumerable(reports: int) -> None:
    """Refuse to list more than `MOST_REPORTS` possible reports with InputError."""
    if reports > MOST_REPORTS:
        raise InputError(f"{reports:,} possible reports are too many", allowed=f"at most {MOST_REPORTS:,}")


def integer_array(
    values: Tensor | npt.ArrayLike,
    name: str,
    allowed: str,
    *,
    rows: int | None = None,
    count: int | None = None,
    where: str | None = None,
) -> npt.NDArray[Any]:
    """Return integers as a numpy vector, or as a matrix of `rows` rows. Raises InputError for another number of
    dimensions or rows, or numbers that are no integers.

    Args:
        name: the subject and verb of the refusal: "labels are".
        allowed: what the refusal names as allowed.
        rows: how many rows a matrix must have; None: the array must be a vector.
        count: how many numbers a vector must have; None: any number.
        where: what the refusal names as the source.
    """
    array = values.detach().cpu().numpy() if torch.is_tensor(values) else np.asarray(values)
    shaped = array.ndim == 1 if rows is None else array.ndim == 2 and array.shape[0] == rows
    shaped &= count is None or array.shape == (count,)
    # Ids in floating point are refused: above 2^53 two people would share one.
    if not shaped or array.dtype.kind not in "iu":
        raise InputError(f"{name} {array.dtype} with shape {array.shape}", where=where, allowed=allowed)
    return array
