"""Which numbers are privacy budgets: one rule for every command and estimator."""

from __future__ import annotations

import math
from typing import Final

from graphveil.errors import InputError
from graphveil.runtime.checks import is_number, value_text

#: Above this nothing is hidden: e^200 times as likely is a proof. Whoever wants no protection says so with inf.
LARGEST_EPSILON: Final = 200.0


def require_budget(name: str, value: object, public: str, *, remedy: str | None = None) -> None:
    """Refuse what is no budget: not a number, not above 0, or finite and so large that it hides nothing.

    Args:
        name: the name of the parameter that sets the budget.
        public: in words, what an infinite budget declares public.
        remedy: what to do where the value is not above 0.

    Raises:
        InputError: naming the value and what is allowed.
    """
    # `value > 0` under a `not`, and not `value <= 0`: every comparison with NaN is false, so this form refuses it.
    large = is_number(value) and LARGEST_EPSILON < value < math.inf
    if not (is_number(value) and value > 0) or large:
        raise InputError(
            f"{name} is {value_text(value)}",
            allowed=f"a number in (0, {LARGEST_EPSILON:g}], or inf for {public}",
            remedy="more hides nothing, but would look like a guarantee" if large else remedy,
        )
