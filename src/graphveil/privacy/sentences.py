"""A guarantee in plain English: the last thing that is made of it, and from its values alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphveil.privacy.unit import ProtectedUnit


def not_a_person(unit: ProtectedUnit) -> str:
    """Return what a unit protects, and what it is less than a person by."""
    return f"This protects {unit.text}, not a person: {unit.less}."
