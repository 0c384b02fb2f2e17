"""The screens of ``graphveil compare`` and ``compare-runs``: one narrow table for each group of equal guarantees."""

from __future__ import annotations

from pathlib import Path

from rich.console import Group as Together
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from graphveil.cli.base.screens import stated, void_alarm
from graphveil.cli.base.tables import columns, listed, pairs, rows
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.reports.base import trust
from graphveil.reports.base.text import printable
from graphveil.reports.compare import table as tables
from graphveil.reports.compare.rows import Row
from graphveil.reports.compare.sheet import Group, Sheet, row_label, three_lines

_ROOM = 2
"""The most columns of epsilons that leave room for a column of lifts."""
_FACTS = "card.md of each folder"
"""Where the assumptions of runs are listed if no table is written."""


def compared(page: Sheet, folder: Path | None) -> RenderableType:
    """The tables of a sheet, at 80 columns, and the folder of the whole tables.

    Args:
        page: groups of equal guarantees.
        folder: of tables and figure; None: none were written.
    """
    parts: list[RenderableType] = [Text(printable(page.title), style="bold"), Text()]
    if page.void:
        parts[:0] = [void_alarm(page.void, "run"), Text()]
    for group in page.groups:
        parts += [*_group(page, group, _FACTS if folder is None else str(folder / tables.MARKDOWN)), Text()]
    facts = [("Mind", text) for text in page.cautions]
    facts += [
        *listed("Comparable", page.comparable),
        ("Measured", trust.MEASURED),
        *(("Note", note) for note in page.notes),
    ]
    if folder is not None:
        facts.append(("Folder", f"{folder} (table.md, table.csv, table.json, table.html, figure.png, figure.svg)"))
    return Together(*parts, pairs(facts))


def _group(page: Sheet, group: Group, where: str) -> list[RenderableType]:
    collected = ", ".join(dict.fromkeys(row.collected for row in group.rows))
    lines = (*three_lines(group, where), ("Data read", collected))
    head: list[RenderableType] = [Text(group.head, style="bold"), *map(stated, *zip(*lines, strict=True))]
    units = [
        (_priced(group, row), unit["unit"], trust.price_text(unit)) for row in group.rows for unit in row.other_units
    ]
    below = _figures(page, group)
    if units:
        below += [Text(), rows(("in other units", "", "epsilon"), units)]
    if any(row.attacks for row in group.rows):
        below += [Text(), _attacks(group)]
    return [*head, Text(), *below]


def _attacks(group: Group) -> Table:
    """The result of each attack; below it that on a plain network, and what epsilon allows."""
    table = columns("attacked", "attack", "AUC (95%)", "found at 1%\nfalse alarms, %")
    for row in group.rows:
        for name, attacked in row.attacks.items():
            cells = (cell.replace("; ", "\n") for cell in tables.attack_cells(attacked))
            table.add_row(printable(row_label(group, row)), name, *cells)
    return table


def _figures(page: Sheet, group: Group) -> list[RenderableType]:
    """Epsilons, accuracy, lift and lead; lifts go into a second table where epsilons leave no room."""
    heads = [head.replace(": ", "\n") for head in tables.epsilon_columns(group)]
    has_lifts = any(row.lift is not None for row in page.rows)
    in_table = has_lifts and len(heads) <= _ROOM
    table = columns("method", *heads, f"{page.score}, %", *(["lift, points, over"] if in_table else []))
    for row in group.rows:
        lift = [f"{tables.with_lift(row.lift)}\n{row.best_control or ''}".rstrip()] if in_table else []
        score = tables.with_interval(row.accuracy)
        table.add_row(printable(row_label(group, row)), *tables.epsilon_cells(group, row), score, *lift)
    lifts = [(_priced(group, row), tables.with_lift(row.lift), row.best_control) for row in group.rows if row.lift]
    leads = [(_priced(group, row), tables.with_lift(row.lead), row.best_rival) for row in group.rows if row.lead]
    parts: list[RenderableType] = [table]
    if lifts and not in_table:
        parts += [Text(), rows(("beside what needs less", "lift, points", "over the best control"), lifts)]
    if leads:
        parts += [Text(), rows(("at the same price", "lead, points", "over the best rival"), leads)]
    return parts


def _priced(group: Group, row: Row) -> str:
    return f"{row_label(group, row)} at {rounded_up(row.guarantee.epsilon)}"
