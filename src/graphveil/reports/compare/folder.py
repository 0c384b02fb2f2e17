"""What a comparison leaves in its folder beside its cells: tables, a page that moves, and a figure."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from graphveil.files.serial import to_json
from graphveil.files.writing import write_bytes, write_text
from graphveil.methods.runs.intervals import Interval
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.reports.base import card as cards
from graphveil.reports.base import figures, trust
from graphveil.reports.base.card import Paragraph, Points, Section
from graphveil.reports.base.charts import Chart, Charts, Line
from graphveil.reports.base.figures import COLOURS, INK, MARKERS, clean, drawable
from graphveil.reports.base.templating import page_scripts, rendered
from graphveil.reports.base.words import measured
from graphveil.reports.compare import table
from graphveil.reports.compare.rows import Row
from graphveil.reports.compare.sheet import Group, Sheet, assumed_facts, called, three_lines
from graphveil.reports.compare.table import cells, columns


def write(page: Sheet, folder: Path) -> None:
    """Write the tables, ``table.html``, and the figure where anything was scored.

    Args:
        folder: must exist.
    """
    write_text(folder / table.MARKDOWN, table.markdown_text(page))
    write_text(folder / "table.csv", table.csv_text(page))
    write_text(folder / "table.json", to_json(table.content(page), indent=2) + "\n")
    write_text(folder / "table.html", page_html(page))
    drawn = figure(page)
    if drawn is not None:
        write_bytes(folder / "figure.png", figures.png(drawn))
        write_text(folder / "figure.svg", figures.svg(drawn))


def page_html(page: Sheet) -> str:
    """Return the page of a comparison: one file without network access, for its maker."""
    remarks = (*page.cautions, *page.comparable, *page.notes)
    tabs = (
        ("Figures", tuple(_figures(page, group) for group in page.groups)),
        ("Promises", tuple(_promise(group) for group in page.groups)),
        ("Comparable", (Section("What may be compared", (Points(remarks), Paragraph(trust.LEGEND))),)),
    )
    return rendered(
        "beside.html.j2",
        kind="side by side",
        title=page.title,
        note=trust.MEASURED,
        void=page.void,
        tabs=tabs,
        scripts=page_scripts(),
    )


def _figures(page: Sheet, group: Group) -> Section:
    rows = tuple(cards.Row(tuple(cells(page, group, row))) for row in group.rows)
    chart = accuracy_chart(page, group)
    drawn = () if chart is None else (Charts((chart,)), Paragraph("Dashed: best control of the method in that colour."))
    return Section(group.head, (*drawn, cards.Table(tuple(columns(page, group)), rows)))


def _promise(group: Group) -> Section:
    lines = tuple(f"{head}: {text}" for head, text in three_lines(group, "listed below"))
    facts = tuple(assumed_facts(group))
    assumed = (Paragraph("Assumed:", strong=True), Points(facts)) if facts else ()
    return Section(group.head, (Paragraph(group.promise.protected), Points(lines), *assumed))


def accuracy_chart(page: Sheet, group: Group) -> Chart | None:
    """Return accuracy over the epsilon that varies; None where fewer than two finite ones were measured.

    Args:
        page: names the score.
    """
    rows = [row for row in group.rows if row.accuracy is not None]
    if not rows or not group.promise.parts:
        return None
    # One axis alone: epsilons of two units in one chart would look comparable.
    part = varied(rows)
    places = tuple(sorted({row.parts[part].epsilon for row in rows} - {math.inf}))
    # One point draws no line, and no axis reaches infinity: the table tells both.
    if len(places) < 2:
        return None
    lines: list[Line] = []
    for number, (name, line) in enumerate(_lines_of(group, rows, part).items()):
        at = {row.parts[part].epsilon: row for row in line}
        colour = COLOURS[number % len(COLOURS)]
        lines.append(Line(name, colour, tuple(_percent(at.get(place), "accuracy") for place in places)))
        control = tuple(_percent(at.get(place), "control") for place in places)
        if any(value is not None for value in control):
            lines.append(Line(f"{name}: control", colour, control, dashed=True))
    title = f"{page.score.capitalize()} over {_axis_label(group, rows, part)}".replace("\n", " ")
    axes = f"epsilon: {group.promise.parts[part].short}", f"{page.score}, per cent"
    return Chart(f"group{group.letter}", title, f"Line chart: {title}.", *axes, places, tuple(lines))


def _percent(row: Row | None, score: str) -> float | None:
    interval = getattr(row, score, None)
    return None if interval is None else 100 * float(interval.mean)


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
        label, lines = _axis_label(group, rows, across), _lines_of(group, rows, across)
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


def _axis_label(group: Group, rows: Sequence[Row], across: int) -> str:
    """What the epsilon axis is of, and at which epsilon the other parts stay."""
    fixed_epsilons = {}
    for place, part in enumerate(group.promise.parts):
        values = {row.parts[place].epsilon for row in rows}
        if place != across and len(values) == 1:
            fixed_epsilons[part.short] = rounded_up(values.pop())
    # Hard spaces: an epsilon stays on one line with its unit.
    fixed = "".join(f", {short}\u00a0at\u00a0{epsilon}" for short, epsilon in fixed_epsilons.items())
    return _wrapped(f"epsilon of {group.promise.parts[across].unit.text}{fixed}", _WRAP)


def _lines_of(group: Group, rows: Sequence[Row], across: int) -> dict[str, list[Row]]:
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
