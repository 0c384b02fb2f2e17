"""The one table and the one figure of a comparison."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from graphveil.methods.intervals import Interval
from graphveil.methods.intervals import interval as interval_over
from graphveil.reports import figures, rivals
from graphveil.reports.comparison import Cell, Comparison
from graphveil.reports.files import write_bytes, write_text
from graphveil.reports.record import RunRecord
from graphveil.reports.text import markdown, number, percent, points, printable
from graphveil.reports.words import asymptotic, interval, lift_interval


@dataclass(frozen=True)
class Row:
    """One method at one setting, over all seeds."""

    method: str
    axes: Mapping[str, Any]
    epsilon: float
    accuracy: Interval
    best_control: str | None
    lift: Interval | None
    seconds: float
    void: str | None
    best_rival: str | None = None
    lead: Interval | None = None
    epsilon_relationship: float | None = None
    caution: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The row as a JSON object."""
        return {
            "method": self.method,
            "settings": dict(self.axes),
            "epsilon": self.epsilon,
            "accuracy": self.accuracy.to_dict(),
            "best_control": self.best_control,
            "lift": None if self.lift is None else self.lift.to_dict(),
            "seconds": self.seconds,
            "void": self.void,
            "best_rival": self.best_rival,
            "lead": None if self.lead is None else self.lead.to_dict(),
            "epsilon_relationship": self.epsilon_relationship,
            "caution": self.caution,
        }


def tabulate(comparison: Comparison, records: Sequence[RunRecord]) -> list[Row]:
    """One row for each method and setting; its score is over the seeds.

    Args:
        comparison: what was compared.
        records: one for each of its cells, in their order.
    """
    groups: dict[tuple[str, tuple[tuple[str, Any], ...]], list[RunRecord]] = {}
    for cell, record in zip(comparison.cells(), records, strict=True):
        groups.setdefault((cell.method, _axes(comparison, cell)), []).append(record)
    return [_row(method, dict(axes), group) for (method, axes), group in groups.items()]


def _axes(comparison: Comparison, cell: Cell) -> tuple[tuple[str, Any], ...]:
    return tuple((axis, cell.settings[axis]) for axis in comparison.takes[cell.method])


def _row(method: str, axes: Mapping[str, Any], group: Sequence[RunRecord]) -> Row:
    best, lift = _best(group)
    rival, lead = _rival(group)
    return Row(
        method=method,
        axes=axes,
        epsilon=group[0].guarantee.epsilon,
        accuracy=group[0].accuracy if len(group) == 1 else _over([record.accuracy.mean for record in group]),
        best_control=best,
        lift=lift,
        seconds=sum(record.seconds for record in group),
        void=group[0].guarantee.void,
        best_rival=rival,
        lead=lead,
        epsilon_relationship=group[0].epsilon_relationship,
        caution=asymptotic(group[0].guarantee),
    )


def _best(group: Sequence[RunRecord]) -> tuple[str | None, Interval | None]:
    """The control with the best mean over the seeds, and the lift over it, paired seed by seed."""
    if len(group) == 1:
        return group[0].best_control, group[0].lift
    names = group[0].controls
    best = max(names, key=lambda name: sum(record.controls[name].mean for record in group), default=None)
    if best is None:
        return None, None
    return best, _over([record.accuracy.mean - record.controls[best].mean for record in group], difference=True)


def _rival(group: Sequence[RunRecord]) -> tuple[str | None, Interval | None]:
    """The rival with the best mean over the seeds, and the lead over it, paired seed by seed."""
    if len(group) == 1:
        return group[0].best_rival, rivals.lead(group[0])
    names = group[0].rivals
    best = max(names, key=lambda name: sum(record.rivals[name].mean for record in group), default=None)
    if best is None:
        return None, None
    return best, _over([record.accuracy.mean - record.rivals[best].mean for record in group], difference=True)


def _over(runs: Sequence[float], *, difference: bool = False) -> Interval:
    return interval_over([np.array([value]) for value in runs], difference=difference)


def columns(comparison: Comparison, rows: Sequence[Row]) -> list[str]:
    """The headings of the table; those of relationships and of rivals only where a row has some."""
    shown = ["method", *comparison.axes, "epsilon together"]
    shown += ["epsilon of a relationship"] if _has_relationships(rows) else []
    shown += ["accuracy, %", "95% interval"]
    if comparison.options.get("controls"):
        shown += ["best control", "lift, points", "95% interval of the lift"]
    if has_rivals(rows):
        shown += ["best rival", "lead, points", "95% interval of the lead"]
    return [*shown, "runs", "seconds"]


def cells(comparison: Comparison, row: Row, rows: Sequence[Row]) -> list[str]:
    """One line of the table, as texts, under the headings for all rows."""
    axes = [_value(row.axes[axis]) if axis in row.axes else "-" for axis in comparison.axes]
    shown = [row.method, *axes, number(row.epsilon)]
    if _has_relationships(rows):
        shown += ["-" if row.epsilon_relationship is None else number(row.epsilon_relationship)]
    shown += [percent(row.accuracy.mean), interval(row.accuracy)]
    if comparison.options.get("controls"):
        shown += _above(row.best_control, row.lift)
    if has_rivals(rows):
        shown += _above(row.best_rival, row.lead)
    return [*shown, str(len(row.accuracy.runs)), f"{row.seconds:.1f}"]


def has_rivals(rows: Sequence[Row]) -> bool:
    """Whether a row was compared with other methods at its privacy price."""
    return any(row.lead is not None for row in rows)


def _has_relationships(rows: Sequence[Row]) -> bool:
    return any(row.epsilon_relationship is not None for row in rows)


def _above(name: str | None, difference: Interval | None) -> list[str]:
    if difference is None:
        return ["-", "-", "-"]
    return [name or "-", points(difference.mean), lift_interval(difference)]


def _value(value: Any) -> str:
    return number(value) if isinstance(value, float) else str(value)


def markdown_text(comparison: Comparison, rows: Sequence[Row]) -> str:
    """The table as Markdown, with a loud line above it when the noise was reproducible."""
    head = columns(comparison, rows)
    lines = [f"# {markdown(comparison.data)}", ""]
    void = next((row.void for row in rows if row.void), None)
    if void:
        lines += [f"**VOID, these runs protect nobody: {markdown(void)}.**", ""]
    lines += [f"**{markdown(said)}.**\n" for said in cautions(rows)]
    lines += ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    lines += ["| " + " | ".join(markdown(cell) for cell in cells(comparison, row, rows)) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def cautions(rows: Sequence[Row]) -> list[str]:
    """What must stand beside the figures of some methods: that their guarantee has no finite-time proof."""
    said = {row.caution: None for row in rows if row.caution}
    return [f"{', '.join(dict.fromkeys(row.method for row in rows if row.caution == text))}: {text}" for text in said]


def csv_text(comparison: Comparison, rows: Sequence[Row]) -> str:
    """The table as CSV with full precision: fractions, not per cent."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    scores = [f"{what}_{part}" for what in ("accuracy", "lift", "lead") for part in ("mean", "low", "high")]
    head = ["method", *comparison.axes, "epsilon", "epsilon_relationship", *scores]
    writer.writerow([*head, "best_control", "best_rival", "runs", "seconds", "void"])
    for row in rows:
        axes = [row.axes.get(axis, "") for axis in comparison.axes]
        link = "" if row.epsilon_relationship is None else row.epsilon_relationship
        found = [[s.mean, s.low, s.high] if s else ["", "", ""] for s in (row.accuracy, row.lift, row.lead)]
        tail = [row.best_control or "", row.best_rival or "", len(row.accuracy.runs), row.seconds, row.void or ""]
        writer.writerow([row.method, *axes, row.epsilon, link, *itertools.chain(*found), *tail])
    return buffer.getvalue()


def figure(comparison: Comparison, rows: Sequence[Row]) -> Figure:
    """Accuracy over the setting with most values, one line for each method and other setting; bars if none varies."""
    varied = [axis for axis, values in comparison.axes.items() if len(values) > 1]
    if not varied:
        return figures.bar_figure([(row.method, row.accuracy, figures.BLUE) for row in rows])
    across = max(varied, key=lambda axis: len(comparison.axes[axis]))
    series: dict[str, dict[str, Interval]] = {}
    for row in rows:
        others = [f"{axis} {_value(row.axes[axis])}" for axis in varied if axis != across and axis in row.axes]
        tick = _value(row.axes[across]) if across in row.axes else ""
        series.setdefault(", ".join([row.method, *others]), {})[tick] = row.accuracy
    ticks = [_value(value) for value in comparison.axes[across]]
    return figures.comparison_figure(series, ticks, axis=across, title=title(comparison, rows))


def title(comparison: Comparison, rows: Sequence[Row]) -> str:
    """What the graph is called, what the intervals are over, and whether the noise was reproducible."""
    count = len(comparison.seeds)
    over = f"95% intervals over {count} runs" if count > 1 else "95% intervals over the test nodes of one run"
    void = " (VOID: reproducible noise)" if any(row.void for row in rows) else ""
    return f"{printable(comparison.data)}: {over}{void}"


def write(comparison: Comparison, rows: Sequence[Row], folder: Path) -> None:
    """Write ``table.md``, ``table.csv``, ``figure.png`` and ``figure.svg`` into the folder."""
    picture = figure(comparison, rows)
    write_text(folder / "table.md", markdown_text(comparison, rows))
    write_text(folder / "table.csv", csv_text(comparison, rows))
    write_bytes(folder / "figure.png", figures.png(picture))
    write_text(folder / "figure.svg", figures.svg(picture))


def answer(comparison: Comparison, rows: Sequence[Row], folder: Path) -> dict[str, Any]:
    """What ``graphveil compare --json`` prints."""
    return {
        "data": comparison.data,
        "rows": [row.to_dict() for row in rows],
        "folder": str(folder),
        "table": str(folder / "table.md"),
        "figure": str(folder / "figure.png"),
    }
