"""What a button would spend, in the library's own words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphveil.studio.models import Work


def price_of(work: Work, plan: Mapping[str, Any]) -> str:
    """Return the sentence for the button of what would be trained or released, by the command's plan of it."""
    void = "" if work.reproducible_noise is None else "VOID, this protects nobody (reproducible noise): "
    times = "" if work.repeats in (None, 1) else f"{work.repeats} trainings, each of which spends: "
    return f"{void}{times}{plan['method']} on {plan['data']}: {plan['guarantee_sentence']}"
