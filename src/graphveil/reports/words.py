"""The sentences of a run: what is protected, what is not, what the spent privacy bought. Pure functions."""

from __future__ import annotations

import math
import re

from graphveil.methods.intervals import Interval
from graphveil.privacy.guarantee import Guarantee
from graphveil.reports.record import RunRecord
from graphveil.reports.text import number, percent, points, printable

CONTROL_MEANING = {
    "random-features": "random noise in place of the features, same graph, same released labels",
    "label-propagation": "released labels and the graph only: no features, no training",
    "no-edges": "the released features only, without the graph",
    "public-only": "what needs no private data at all",
}

# What a run has that the control lacks, and so what a lift over the control was bought with.
_BOUGHT = {
    "random-features": "private features",
    "label-propagation": "private features",
    "no-edges": "graph",
    "public-only": "private data",
}

_AS_WELL = {
    "random-features": "random features on the same graph score as well",
    "label-propagation": "the released labels, spread over the graph without any features, score as well",
    "no-edges": "the released features alone, without the graph, score as well",
    "public-only": "what is public anyway scores as well",
}


def measured(score: Interval) -> bool:
    """Whether there is an interval at all: a hand-made or degenerate score has none."""
    return score.low < score.high


def interval(score: Interval) -> str:
    """The 95% interval in per cent, or a dash when there is none."""
    return f"{percent(score.low)} to {percent(score.high)}" if measured(score) else "-"


def lift_interval(lift: Interval) -> str:
    """The 95% interval of a lift in signed points, or a dash when there is none."""
    return f"{points(lift.low)} to {points(lift.high)}" if measured(lift) else "-"


def spread_over(score: Interval) -> str:
    """What an interval is over: runs, or, for a single run, its test nodes."""
    return f"{len(score.runs)} runs" if len(score.runs) > 1 else "the test nodes of one run"


def lift_sentence(record: RunRecord) -> str:
    """What the lift means, in one plain sentence that claims no more than the interval does."""
    lift, best = record.lift, record.best_control
    if lift is None or best is None:
        return "No controls were trained, so nothing says what the private data bought."
    one = len(lift.runs) == 1
    where = " in this one run" if one else ""
    more = " Whether that holds for other splits and other noise takes --repeats 10." if one else ""
    what = _BOUGHT.get(best, "private data")
    if lift.high < 0:
        return f"It scores measurably below its best control{where}: {best} does better and asks for less.{more}"
    if lift.low > 0:
        return f"It scores measurably above its best control{where}: that is what the {what} bought.{more}"
    return f"The {what} bought nothing measurable{where}: {_AS_WELL.get(best, f'{best} scores as well')}."


def unit_epsilons(guarantee: Guarantee) -> tuple[tuple[str, float, float], ...]:
    """``(unit, epsilon, delta)`` of every part of a guarantee, or of itself when it has none."""
    parts = guarantee.parts or (guarantee,)
    return tuple((part.unit, part.epsilon, part.delta) for part in parts)


def epsilon_line(record: RunRecord) -> str:
    """The epsilon of each unit and their sum: ``label: 2, features: 1; for one person together: 3``."""
    units = unit_epsilons(record.guarantee)
    shown = ", ".join(f"{unit}: {number(e)}" + (f" (delta {number(d)})" if d else "") for unit, e, d in units)
    if len(units) > 1:
        shown += f"; for one person together: {number(record.guarantee.epsilon)}"
    return shown


def not_protected(record: RunRecord) -> tuple[str, ...]:
    """What a reader might wrongly think is protected, most important first."""
    finite = [unit for unit, epsilon, _ in unit_epsilons(record.guarantee) if epsilon < math.inf]
    protected = " ".join(finite).lower()
    void = record.guarantee.void
    lines = [f"Anything, in this run: {printable(void)}."] if void else []
    if not re.search(r"edge|neighbo|node", protected):
        lines.append("Who is connected to whom: the server sees the whole graph.")
    if not re.search(r"feature|node", protected):
        lines.append("The features: the server sees them as they are, or does not use them.")
    if not re.search(r"label|node", protected):
        lines.append("The labels: the server sees them as they are, or does not use them.")
    lines.append(
        "What the model says about a group: a prediction that follows from everybody's data may still be "
        "right, and unwelcome, for one person."
    )
    return tuple(lines)
