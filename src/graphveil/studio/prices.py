"""What a button would spend, in the library's own words."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from graphveil.studio.models import Start, Work


def price_of(work: Work, plan: Mapping[str, Any]) -> str:
    """Return the sentence for the button of what would be trained or released, by the command's plan of it."""
    sentence = str(plan["guarantee_sentence"])
    if work.repeats not in (None, 1):
        sentence = f"{work.repeats} trainings, each of which spends: {sentence}"
    return _void(work) + sentence


def price_of_comparison(start: Start) -> str:
    """Return the sentence for the button of a comparison, each of whose trainings has a price of its own."""
    lists = {key: ", ".join(f"{value:g}" for value in values) for key, values in start.epsilons.items()}
    budgets = "; ".join(f"{key} {text}" for key, text in lists.items()) or "epsilon 1, 2, 3"
    cells = prod(len(values) for values in start.epsilons.values()) if start.epsilons else 3
    count = cells * len(start.methods) * (start.repeats or 3)
    about = ", ".join([*start.methods, *(f"{key} {value}" for key, value in sorted(start.settings.items()))])
    return f"{_void(start)}up to {count} trainings of {about}, each of which spends its own epsilon ({budgets})"


def _void(work: Work) -> str:
    return "" if work.reproducible_noise is None else "VOID, this protects nobody (reproducible noise): "
