"""What a comparison leaves in its folder beside its cells: tables, a page that moves, and a figure."""

from __future__ import annotations

import math
from pathlib import Path

from graphveil.reports.base import card as cards
from graphveil.reports.base import figures, trust
from graphveil.reports.base.card import Paragraph, Points, Section
from graphveil.reports.base.charts import Chart, Charts, Line
from graphveil.reports.base.figures import COLOURS
from graphveil.reports.base.files import to_json, write_bytes, write_text
from graphveil.reports.base.scripts import page_scripts
from graphveil.reports.base.templating import rendered
from graphveil.reports.compare import promised, table
from graphveil.reports.compare.figure import axis_label, figure, lines_of, varied
from graphveil.reports.compare.rows import Row
from graphveil.reports.compare.sheet import Group, Sheet
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
    lines = tuple(f"{head}: {text}" for head, text in promised.three_lines(group, "listed below"))
    facts = tuple(promised.facts(group))
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
    for number, (name, measured) in enumerate(lines_of(group, rows, part).items()):
        at = {row.parts[part].epsilon: row for row in measured}
        colour = COLOURS[number % len(COLOURS)]
        lines.append(Line(name, colour, tuple(_percent(at.get(place), "accuracy") for place in places)))
        control = tuple(_percent(at.get(place), "control") for place in places)
        if any(value is not None for value in control):
            lines.append(Line(f"{name}: control", colour, control, dashed=True))
    title = f"{page.score.capitalize()} over {axis_label(group, rows, part)}".replace("\n", " ")
    axes = f"epsilon: {group.promise.parts[part].short}", f"{page.score}, per cent"
    return Chart(f"group{group.letter}", title, f"Line chart: {title}.", *axes, places, tuple(lines))


def _percent(row: Row | None, score: str) -> float | None:
    interval = getattr(row, score, None)
    return None if interval is None else 100 * float(interval.mean)
