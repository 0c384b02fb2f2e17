"""The smallest epsilon that reaches a goal, as a band from the most to the least favourable rehearsal."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from graphveil.errors import InputError
from graphveil.graphs.value.parts import GraphParts
from graphveil.methods.advise.rehearsal import Band, facts_of, pilot_world, rehearse, worlds_of
from graphveil.methods.registry import find_method
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.runtime.progress import ProgressCallback

#: The epsilons that are tried, each about twice the one before.
GRID: Final = (0.5, 1.0, 2.0, 4.0, 8.0)
GOALS: Final = ("lift", "accuracy")


@dataclass(frozen=True)
class Goal:
    """What is wanted: "lift" or "accuracy", of at least so much, as a share of people."""

    what: str
    least: float

    @property
    def sentence(self) -> str:
        return f"{self.what} of at least {100 * self.least:.3g} {'points' if self.what == 'lift' else '%'}"


def goal_of(text: str) -> Goal:
    """Return the goal that is written ``accuracy=0.8`` or ``lift=0.02``; refuses anything else."""
    what, _, least = (part.strip() for part in text.partition("="))
    if what not in GOALS:
        # Names first, of which the nearest is then suggested.
        raise InputError(f"{what!r} is no goal", where="--want", allowed=f"{', '.join(GOALS)}; such as lift=0.02")
    try:
        # NaN too is refused below: every comparison with it is false.
        value = float(least)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        allowed = f"{what}=SHARE, a share above 0 and below 1: 0.02 is two points"
        raise InputError(f"{text!r} is no goal", where="--want", allowed=allowed)
    return Goal(what, value)


@dataclass(frozen=True)
class Reached:
    """Which epsilon reaches a goal.

    Attributes:
        hopeful: the smallest epsilon of GRID at which the most favourable rehearsal reaches it, or None.
        sure: the smallest at which the least favourable does too: the one to take, or None.
        tried: epsilon -> the band that was rehearsed there.
    """

    goal: Goal
    hopeful: float | None
    sure: float | None
    tried: Mapping[float, Band]

    @property
    def sentence(self) -> str:
        if self.sure is not None:
            band = f"{self.hopeful:g} to {self.sure:g}" if self.hopeful != self.sure else f"{self.sure:g}"
            return f"{self.goal.sentence}: epsilon {band}; take {self.sure:g}, which reaches it in every rehearsal"
        best = max(self.tried, key=lambda epsilon: (self.tried[epsilon].high, -epsilon))
        if self.hopeful is not None:
            return (
                f"{self.goal.sentence}: do not count on it. The most favourable rehearsal reaches it from epsilon "
                f"{self.hopeful:g} on, the least favourable at none up to {GRID[-1]:g}; {self._band(best)}"
            )
        return f"{self.goal.sentence}: no epsilon up to {GRID[-1]:g} reaches it in any rehearsal; {self._band(best)}"

    def _band(self, epsilon: float) -> str:
        band = self.tried[epsilon]
        # An accuracy is no difference: a sign before it would make it look like one.
        text = (
            f"{band.points} points" if self.goal.what == "lift" else f"{100 * band.low:.1f} to {100 * band.high:.1f} %"
        )
        return f"at {rounded_up(epsilon)} all rehearsals together gave {text}"

    def to_dict(self) -> dict[str, Any]:
        tried = [{"epsilon": epsilon, **self.tried[epsilon].to_dict()} for epsilon in sorted(self.tried)]
        wanted = {"what": self.goal.what, "least": self.goal.least}
        return {"goal": wanted, "epsilon": {"low": self.hopeful, "high": self.sure}, "tried": tried}


def smallest(goal: Goal, band_at: Callable[[float], Band]) -> Reached:
    """Return the smallest epsilon of GRID that reaches a goal, by bisection: more epsilon is taken to bring no less.

    Args:
        band_at: epsilon -> what was rehearsed there; asked once for each.
    """
    tried: dict[float, Band] = {}

    def end(epsilon: float, side: str) -> float:
        if epsilon not in tried:
            tried[epsilon] = band_at(epsilon)
        return float(getattr(tried[epsilon], side))

    def first(side: str, start: int) -> int:
        # The place beyond the last stands for "none": it is never asked.
        low, high = start, len(GRID)
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if end(GRID[middle], side) >= goal.least else (middle + 1, high)
        return low

    hopeful = first("high", 0)
    # The low end lies below the high one, so it cannot reach the goal earlier.
    sure = first("low", hopeful)
    ends = [GRID[place] if place < len(GRID) else None for place in (hopeful, sure)]
    return Reached(goal, ends[0], ends[1], tried)


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
        settings: its own, without the epsilon that is searched, which is refused.
        declared, pilot, degree: as of `advice.Request`.
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
    on = "synthetic graphs" if pilot is None else f"{worlds[0].name}, which you declare public or already paid for"
    return Wanted(budget, reached, on, time.perf_counter() - began)


def budget_of(name: str, settings: Mapping[str, Any]) -> str:
    """Return the option that a search puts its epsilon in; refuses a method without one, or one that is given."""
    budget = next((key for key in _BUDGETS if key in find_method(name).options), None)
    if budget is None:
        raise InputError(f"{name} spends no epsilon", where="--want", allowed="a method with --epsilon or --epsilon-a")
    if settings.get(budget) is not None:
        raise InputError(f"{budget} is what is searched", where="--want", remedy=f"leave out {budget}, or the goal")
    return budget


def protected(name: str, settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the parts that a method protects with these settings.

    Args:
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
