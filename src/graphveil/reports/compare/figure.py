"""The figure of a comparison: one panel for each group of equal promises, each with an epsilon axis of its own.

Accuracies share one axis, because they mean the same everywhere; epsilons do not.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from graphveil.methods.runs.intervals import Interval
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.reports.base import trust
from graphveil.reports.base.figures import COLOURS, INK, MARKERS, clean, drawable
from graphveil.reports.base.words import measured
from graphveil.reports.compare.rows import Row
from graphveil.reports.compare.sheet import Group, Sheet, called

_ACROSS = 3
_WRAP = 36
_DASHED = "Dashed: best control of the method in that colour. Bars: 95%. Epsilons of different panels differ in kind."


def figure(page: Sheet) -> Figure | None:
    """One panel for each group; None where nothing was scored."""
    groups = [group for group in page.groups if any(row.accuracy for row in group.rows)]
    if not groups:
        return None
    across = min(len(groups), _ACROSS)
    down = math.ceil(len(groups) / across)
    drawn = Figure(figsize=(max(3.7 * across, 5.4), 4.0 * down + 0.5), layout="constrained")
    places = drawn.subplots(down, across, squeeze=False, sharey=True).flatten()
    methods = list(dict.fromkeys(row.method for row in page.rows))
    colours = {method: COLOURS[place % len(COLOURS)] for place, method in enumerate(methods)}
    for axes, group in zip(places, groups, strict=False):
        _panel(axes, group, colours)
    for axes in places[len(groups) :]:
        axes.set_visible(False)
    for axes in places[::across]:
        axes.set_ylabel(f"{page.score}, per cent")
        axes.yaxis.label.set_color(INK)
    void = " (VOID: reproducible noise)" if page.void else ""
    drawn.suptitle(drawable(page.title + void), x=0.01, ha="left", color=INK, fontsize=11, parse_math=False)
    drawn.supxlabel(_DASHED, x=0.01, ha="left", color=INK, fontsize=8)
    return drawn


def _panel(axes: Axes, group: Group, colours: Mapping[str, str]) -> None:
    """The lines of a group over its own epsilons; side by side where nothing is protected."""
    rows = [row for row in group.rows if row.accuracy is not None]
    if group.promise.parts:
        across = varied(rows)
        ticks = sorted({row.parts[across].epsilon for row in rows})
        names = [rounded_up(tick) for tick in ticks]
        label, lines = axis_label(group, rows, across), lines_of(group, rows, across)
        for shift, (line, line_rows) in enumerate(lines.items()):
            # Lines are moved apart a little, or their intervals would cover each other.
            step = 0.05 * (shift - (len(lines) - 1) / 2)
            points = [(ticks.index(row.parts[across].epsilon) + step, row) for row in line_rows]
            _line(axes, points, line, colours[line_rows[0].method], MARKERS[shift % len(MARKERS)])
    else:
        names, label = [_wrapped(called(group, row), 14) for row in rows], "no epsilon"
        for place, row in enumerate(rows):
            _line(axes, [(place, row)], None, colours[row.method], "o")
    axes.set_xticks(range(len(names)), names)
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.set_xlabel(label, fontsize=9)
    head = f"{group.letter}. {trust.HEADS[group.promise.trust].split(':')[0]}"
    axes.set_title(_wrapped(head, _WRAP), loc="left", color=INK, fontsize=9.5, parse_math=False)
    if group.promise.parts:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.24), frameon=False, labelcolor=INK, fontsize=8)
    clean(axes, grid="y")


def varied(rows: Sequence[Row]) -> int:
    """The place of the part whose epsilon varies most."""
    counts = [len({row.parts[place].epsilon for row in rows}) for place in range(len(rows[0].parts))]
    return counts.index(max(counts))


def axis_label(group: Group, rows: Sequence[Row], across: int) -> str:
    """What the epsilon axis is of, and at which epsilon the other parts stay."""
    fixed_epsilons = {}
    for place, part in enumerate(group.promise.parts):
        values = {row.parts[place].epsilon for row in rows}
        if place != across and len(values) == 1:
            fixed_epsilons[part.short] = rounded_up(values.pop())
    fixed = "".join(
        f", {short}\u00a0at\u00a0{epsilon}" for short, epsilon in fixed_epsilons.items()
    )  # stays on one line
    return _wrapped(f"epsilon of {group.promise.parts[across].unit.text}{fixed}", _WRAP)


def lines_of(group: Group, rows: Sequence[Row], across: int) -> dict[str, list[Row]]:
    """Rows that belong to one line: of one method, all other epsilons equal."""
    lines: dict[str, list[Row]] = {}
    for row in rows:
        epsilons = [
            f"{part.short} {rounded_up(row.parts[place].epsilon)}"
            for place, part in enumerate(group.promise.parts)
            if place != across and len({other.parts[place].epsilon for other in rows}) > 1
        ]
        lines.setdefault(", ".join([called(group, row), *epsilons]), []).append(row)
    return {name: sorted(line, key=lambda row: row.parts[across].epsilon) for name, line in lines.items()}


def _line(axes: Axes, points: Sequence[tuple[float, Row]], name: str | None, colour: str, marker: str) -> None:
    """Accuracies with their intervals, and the best controls as a dashed line."""
    places = [place for place, _ in points]
    scores = [row.accuracy for _, row in points if row.accuracy is not None]
    spread = [_half(scores, "low"), _half(scores, "high")]
    style: dict[str, Any] = {"marker": marker, "markersize": 5, "capsize": 3, "linewidth": 1.4}
    label = None if name is None else drawable(name)
    axes.errorbar(places, [100 * score.mean for score in scores], yerr=spread, color=colour, label=label, **style)
    beside = [(place, 100 * row.control.mean) for place, row in points if row.control is not None]
    if not beside:
        return
    # One point draws no line, so a short dash stands for it.
    if len(beside) == 1:
        place, mean = beside[0]
        beside = [(place - 0.3, mean), (place + 0.3, mean)]
    axes.plot(*zip(*beside, strict=True), color=colour, linestyle="--", linewidth=1.1, alpha=0.75)


def _half(scores: Sequence[Interval], side: str) -> list[float]:
    return [100 * abs(score.mean - getattr(score, side)) if measured(score) else 0.0 for score in scores]


def _wrapped(text: str, width: int) -> str:
    return "\n".join(drawable(line) for line in textwrap.wrap(text, width))
