"""The smallest epsilon at which a method that somebody has chosen reaches a goal."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from graphveil.errors import InputError
from graphveil.graphs.value.parts import GraphParts
from graphveil.methods.advise.facts import facts_of
from graphveil.methods.advise.goal import Goal, Reached, smallest
from graphveil.methods.advise.rehearsal import Band, rehearse
from graphveil.methods.advise.worlds import pilot_world, worlds_of
from graphveil.methods.registry import find_method
from graphveil.runtime.progress import ProgressCallback

_PARTS: Final = {"epsilon_x": "features", "epsilon_y": "labels", "epsilon_a": "edges"}
#: Where a search puts its epsilon: the first of these that a method takes.
_BUDGETS: Final = ("epsilon_a", "epsilon")


@dataclass(frozen=True)
class Wanted:
    """What a goal takes: the option that was searched, the answer, what it was rehearsed on, and seconds."""

    budget: str
    reached: Reached
    on: str
    seconds: float

    @property
    def sentence(self) -> str:
        """The answer in words."""
        return f"{self.reached.sentence}; rehearsed on {self.on} in {self.seconds:.0f} s"


def wanted(
    name: str,
    settings: Mapping[str, Any],
    graph: GraphParts,
    goal: Goal,
    *,
    declared: tuple[str, ...] | None,
    pilot: GraphParts | None = None,
    degree: float | None = None,
    progress: ProgressCallback | None = None,
) -> Wanted:
    """Return the smallest epsilon that reaches a goal; private values of `graph` are not read.

    Args:
        name: of the method.
        settings: its own, without the epsilon that is searched.
        graph: whose public parts are read.
        goal: what is wanted.
        declared: the parts that the owner declares private; None for a public data set.
        pilot: a graph that the user declares public or paid, to rehearse on; None: made ones.
        degree: contacts of a person, where that is publicly known.
        progress: hears of each rehearsal.

    Raises:
        InputError: the method spends nothing, or the epsilon that would be searched is given.
    """
    began = time.perf_counter()
    budget = budget_of(name, settings)
    hidden = tuple(dict.fromkeys((*(declared or ()), *protected(name, {**settings, budget: 1.0}))))
    worlds = list(worlds_of(graph, facts_of(graph, hidden, degree))) if pilot is None else [pilot_world(pilot)]
    seeds = range(2 if pilot is None else 3)

    def band_at(epsilon: float) -> Band:
        chosen = {**settings, budget: epsilon}
        # All controls count: which one a goal is measured against is not for a search to choose.
        return rehearse(name, chosen, worlds, (), seeds=seeds, progress=progress).band(goal.what)

    reached = smallest(goal, band_at)
    on = "made graphs" if pilot is None else f"{worlds[0].name}, which you declare public or already paid"
    return Wanted(budget, reached, on, time.perf_counter() - began)


def budget_of(name: str, settings: Mapping[str, Any]) -> str:
    """Return the option that a search puts its epsilon in.

    Args:
        name: of the method.
        settings: those that were given.

    Raises:
        InputError: the method takes none, or it is given.
    """
    budget = next((key for key in _BUDGETS if key in find_method(name).options), None)
    if budget is None:
        raise InputError(f"{name} spends no epsilon", where="--want", allowed="a method with --epsilon or --epsilon-a")
    if settings.get(budget) is not None:
        raise InputError(f"{budget} is what is searched", where="--want", remedy=f"leave out {budget}, or the goal")
    return budget


def protected(name: str, settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the parts that a method protects with these settings.

    Args:
        name: of the method.
        settings: its own; the rest take their defaults.
    """
    method = find_method(name)
    settled = method.settle(settings)
    if "unit" in method.options:
        return ("features", "labels", "edges") if settled["unit"] == "node" else ("edges",)
    if settled.get("epsilon") is not None:
        # A total is of everything that a person sends.
        return tuple(part for part in method.reads if part != "edges")
    spent = {key: settled[key] for key in _PARTS if key in settled}
    # None is not collected, so not read either; infinity declares the part public.
    return tuple(_PARTS[key] for key, epsilon in spent.items() if epsilon is None or math.isfinite(epsilon))
