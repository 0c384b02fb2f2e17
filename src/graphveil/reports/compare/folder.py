"""The files of a comparison beside its cells: tables, an interactive page, and a figure."""

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
from graphveil.reports.base.templating import page_scripts, render
from graphveil.reports.base.words import has_interval
from graphveil.reports.compare import table
from graphveil.reports.compare.rows import Row
from graphveil.reports.compare.sheet import Group, Sheet, assumed_facts, row_label, three_lines
from graphveil.reports.compare.table import cells, columns


def write(sheet: Sheet, folder: Path) -> None:
    """Write the tables, ``table.html``, and the figure if there is any accuracy.

    Args:
        folder: must exist.
    """
    write_text(folder / table.MARKDOWN, table.markdown_text(sheet))
    write_text(folder / "table.csv", table.csv_text(sheet))
    write_text(folder / "table.json", to_json(table.content(sheet), indent=2) + "\n")
    write_text(folder / "table.html", page_html(sheet))
    picture = figure(sheet)
    if picture is not None:
        write_bytes(folder / "figure.png", figures.png(picture))
        write_text(folder / "figure.svg", figures.svg(picture))


def page_html(sheet: Sheet) -> str:
    """Return the page of a comparison: one file without network access, for its maker."""
    remarks = (*sheet.cautions, *sheet.comparable, *sheet.notes)
    tabs = (
        ("Figures", tuple(_figures(sheet, group) for group in sheet.groups)),
        ("Promises", tuple(_promise(group) for group in sheet.groups)),
        ("Comparable", (Section("What may be compared", (Points(remarks), Paragraph(trust.LEGEND))),)),
    )
    return render(
        "beside.html.j2",
        kind="side by side",
        title=sheet.title,
        note=trust.MEASURED,
        void=sheet.void,
        tabs=tabs,
        scripts=page_scripts(),
    )


def _figures(sheet: Sheet, group: Group) -> Section:
    rows = tuple(cards.Row(tuple(cells(sheet, group, row))) for row in group.rows)
    chart = accuracy_chart(sheet, group)
    drawing = (
        () if chart is None else (Charts((chart,)), Paragraph("Dashed: best control of the method in that colour."))
    )
    return Section(group.head, (*drawing, cards.Table(tuple(columns(sheet, group)), rows)))


def _promise(group: Group) -> Section:
    lines = tuple(f"{head}: {text}" for head, text in three_lines(group, "listed below"))
    facts = tuple(assumed_facts(group))
    assumed = (Paragraph("Assumed:", strong=True), Points(facts)) if facts else ()
    return Section(group.head, (Paragraph(group.promise.protected), Points(lines), *assumed))


def accuracy_chart(sheet: Sheet, group: Group) -> Chart | None:
    """Return accuracy over the epsilon that varies; None where fewer than two finite epsilons were measured.

    Args:
        sheet: gives the name of the score.
    """
    rows = [row for row in group.rows if row.accuracy is not None]
    if not rows or not group.promise.parts:
        return None
    # One unit only: epsilons of two units on one axis would look comparable.
    part = varied_part(rows)
    epsilons = tuple(sorted({row.parts[part].epsilon for row in rows} - {math.inf}))
    # One point draws no line, and infinity is on no axis: the table has both.
    if len(epsilons) < 2:
        return None
    lines: list[Line] = []
    for number, (name, line) in enumerate(_lines_of(group, rows, part).items()):
        row_at = {row.parts[part].epsilon: row for row in line}
        colour = COLOURS[number % len(COLOURS)]
        lines.append(Line(name, colour, tuple(_percent(row_at.get(epsilon), "accuracy") for epsilon in epsilons)))
        control = tuple(_percent(row_at.get(epsilon), "control") for epsilon in epsilons)
        if any(value is not None for value in control):
            lines.append(Line(f"{name}: control", colour, control, dashed=True))
    title = f"{sheet.score.capitalize()} over {_axis_label(group, rows, part)}".replace("\n", " ")
    axes = f"epsilon: {group.promise.parts[part].short}", f"{sheet.score}, per cent"
    return Chart(f"group{group.letter}", title, f"Line chart: {title}.", *axes, epsilons, tuple(lines))


def _percent(row: Row | None, score: str) -> float | None:
    interval = getattr(row, score, None)
    return None if interval is None else 100 * float(interval.mean)


_MOST_COLUMNS = 3
_LINE_LENGTH = 36
_DASHED = "Dashed: best control of the method in that colour. Bars: 95%. Epsilons of different panels differ in kind."


def figure(sheet: Sheet) -> Figure | None:
    """One panel for each group; None where there is no accuracy."""
    groups = [group for group in sheet.groups if any(row.accuracy for row in group.rows)]
    if not groups:
        return None
    columns = min(len(groups), _MOST_COLUMNS)
    rows = math.ceil(len(groups) / columns)
    picture = Figure(figsize=(max(3.7 * columns, 5.4), 4.0 * rows + 0.5), layout="constrained")
    panels = picture.subplots(rows, columns, squeeze=False, sharey=True).flatten()
    methods = list(dict.fromkeys(row.method for row in sheet.rows))
    colours = {method: COLOURS[index % len(COLOURS)] for index, method in enumerate(methods)}
    for axes, group in zip(panels, groups, strict=False):
        _panel(axes, group, colours)
    for axes in panels[len(groups) :]:
        axes.set_visible(False)
    for axes in panels[::columns]:
        axes.set_ylabel(f"{sheet.score}, per cent")
        axes.yaxis.label.set_color(INK)
    void = " (VOID: reproducible noise)" if sheet.void else ""
    picture.suptitle(drawable(sheet.title + void), x=0.01, ha="left", color=INK, fontsize=11, parse_math=False)
    picture.supxlabel(_DASHED, x=0.01, ha="left", color=INK, fontsize=8)
    return picture


def _panel(axes: Axes, group: Group, colours: Mapping[str, str]) -> None:
    """The lines of a group over its epsilons; one point for each row where nothing is protected."""
    rows = [row for row in group.rows if row.accuracy is not None]
    if group.promise.parts:
        part = varied_part(rows)
        ticks = sorted({row.parts[part].epsilon for row in rows})
        names = [rounded_up(tick) for tick in ticks]
        label, lines = _axis_label(group, rows, part), _lines_of(group, rows, part)
        for number, (line, line_rows) in enumerate(lines.items()):
            # Shifted a little, so that intervals do not cover each other.
            step = 0.05 * (number - (len(lines) - 1) / 2)
            points = [(ticks.index(row.parts[part].epsilon) + step, row) for row in line_rows]
            _line(axes, points, line, colours[line_rows[0].method], MARKERS[number % len(MARKERS)])
    else:
        names, label = [_wrapped(row_label(group, row), 14) for row in rows], "no epsilon"
        for index, row in enumerate(rows):
            _line(axes, [(index, row)], None, colours[row.method], "o")
    axes.set_xticks(range(len(names)), names)
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.set_xlabel(label, fontsize=9)
    head = f"{group.letter}. {trust.HEADS[group.promise.trust].split(':')[0]}"
    axes.set_title(_wrapped(head, _LINE_LENGTH), loc="left", color=INK, fontsize=9.5, parse_math=False)
    if group.promise.parts:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.24), frameon=False, labelcolor=INK, fontsize=8)
    clean(axes, grid="y")


def varied_part(rows: Sequence[Row]) -> int:
    """The index of the part whose epsilon varies most."""
    counts = [len({row.parts[part].epsilon for row in rows}) for part in range(len(rows[0].parts))]
    return counts.index(max(counts))


def _axis_label(group: Group, rows: Sequence[Row], varied: int) -> str:
    """The unit of the epsilon axis, and the constant epsilons of the other parts."""
    fixed_epsilons = {}
    for index, part in enumerate(group.promise.parts):
        values = {row.parts[index].epsilon for row in rows}
        if index != varied and len(values) == 1:
            fixed_epsilons[part.short] = rounded_up(values.pop())
    # Hard spaces: an epsilon stays on one line with its unit.
    fixed = "".join(f", {short}\u00a0at\u00a0{epsilon}" for short, epsilon in fixed_epsilons.items())
    return _wrapped(f"epsilon of {group.promise.parts[varied].unit.text}{fixed}", _LINE_LENGTH)


def _lines_of(group: Group, rows: Sequence[Row], varied: int) -> dict[str, list[Row]]:
    """The rows of each line: of one method, with all other epsilons equal."""
    lines: dict[str, list[Row]] = {}
    for row in rows:
        epsilons = [
            f"{part.short} {rounded_up(row.parts[index].epsilon)}"
            for index, part in enumerate(group.promise.parts)
            if index != varied and len({other.parts[index].epsilon for other in rows}) > 1
        ]
        lines.setdefault(", ".join([row_label(group, row), *epsilons]), []).append(row)
    return {name: sorted(line, key=lambda row: row.parts[varied].epsilon) for name, line in lines.items()}


def _line(axes: Axes, points: Sequence[tuple[float, Row]], name: str | None, colour: str, marker: str) -> None:
    """Accuracies with their intervals, and the best controls as a dashed line."""
    positions = [position for position, _ in points]
    scores = [row.accuracy for _, row in points if row.accuracy is not None]
    spread = [_half_widths(scores, "low"), _half_widths(scores, "high")]
    style: dict[str, Any] = {"marker": marker, "markersize": 5, "capsize": 3, "linewidth": 1.4}
    label = None if name is None else drawable(name)
    axes.errorbar(positions, [100 * score.mean for score in scores], yerr=spread, color=colour, label=label, **style)
    controls = [(position, 100 * row.control.mean) for position, row in points if row.control is not None]
    if not controls:
        return
    # One point draws no line: a short dash is drawn instead.
    if len(controls) == 1:
        position, mean = controls[0]
        controls = [(position - 0.3, mean), (position + 0.3, mean)]
    axes.plot(*zip(*controls, strict=True), color=colour, linestyle="--", linewidth=1.1, alpha=0.75)


def _half_widths(scores: Sequence[Interval], side: str) -> list[float]:
    return [100 * abs(score.mean - getattr(score, side)) if has_interval(score) else 0.0 for score in scores]


def _wrapped(text: str, width: int) -> str:
    return "\n".join(drawable(line) for line in textwrap.wrap(text, width))
