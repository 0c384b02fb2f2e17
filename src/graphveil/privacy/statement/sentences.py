"""A guarantee in plain English: the last thing that is made of it, and from its values alone."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from graphveil.privacy.accounting.printed import rounded_up, rounded_up_to

if TYPE_CHECKING:
    from graphveil.privacy.statement.guarantee import Guarantee
    from graphveil.privacy.statement.unit import ProtectedUnit

_RELEASE: Final = {"local": "each report", "central": "everything released", "vertical": "every exchange"}


def paragraph(guarantee: Guarantee) -> str:
    """Return everything a guarantee says, as one paragraph for a reader who is no specialist."""
    return claim(guarantee) + _assumed(guarantee)


def claim(guarantee: Guarantee) -> str:
    """Return the paragraph without the assumptions, for pages that list them."""
    # In front: who quotes the first sentence alone then quotes that nothing holds.
    text = f"NO GUARANTEE: {guarantee.void}. Without that it would read: " if guarantee.void else ""
    text += " ".join((*less_than_a_person(guarantee), _promise(guarantee)))
    if guarantee.parts:
        text += " It is made of: " + "; ".join(_price(part) for part in guarantee.parts) + "."
    return text


def less_than_a_person(guarantee: Guarantee) -> tuple[str, ...]:
    """Return the sentence that must stand first where something less than a person is protected, else nothing."""
    # Infinite epsilon is told in stronger words already: to add what it would not have covered makes it sound smaller.
    if guarantee.unit.is_person or math.isinf(guarantee.epsilon):
        return ()
    return (not_a_person(guarantee.unit),)


def not_a_person(unit: ProtectedUnit) -> str:
    """Return what a unit protects, and what it is less than a person by."""
    return f"This protects {unit.text}, not a person: {unit.less}."


def _promise(guarantee: Guarantee) -> str:
    unit, against, epsilon, delta = guarantee.unit.text, guarantee.against.text, guarantee.epsilon, guarantee.delta
    if math.isinf(epsilon):
        return f"NOT PROTECTED: {unit}; {against} may learn it exactly (epsilon = inf)."
    change = "replacing it" if guarantee.relation == "replace" else "adding or removing it"
    result = "report" if guarantee.model == "local" else "result"
    # With a delta the factor bounds no single result: sets of them, and by so much more.
    result, slip = (f"set of {result}s", f", plus at most {rounded_up(delta)}") if delta else (result, "")
    return (
        f"Against {against}, {_RELEASE[guarantee.model]} hides {unit}: {change} changes the "
        f"probability of any {result} by a factor of at most e^{_power(epsilon)}{slip} "
        f"(epsilon = {rounded_up(epsilon)}, delta = {rounded_up(delta)}, {guarantee.model})."
    )


def _assumed(guarantee: Guarantee) -> str:
    if not guarantee.assumes:
        return ""
    return " Assumes: " + "; ".join(fact.sentence for fact in guarantee.assumes) + "."


def _price(part: Guarantee) -> str:
    if math.isinf(part.epsilon):
        return f"{part.unit.text} (not protected)"
    return f"{part.unit.text} (epsilon = {rounded_up(part.epsilon)}, delta = {rounded_up(part.delta)})"


def _power(epsilon: float) -> str:
    return rounded_up_to(epsilon) if 0.01 <= epsilon < 1000 else rounded_up(epsilon, 3)
