"""A table for each group of rows with equal promises, as Markdown, CSV and JSON.

Every group has its own columns of epsilons, each with its unit; see :mod:`graphveil.reports.base.trust` for why.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from graphveil.methods.runs.intervals import Interval
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.reports.base import trust
from graphveil.reports.base.text import markdown, percent, points, spreadsheet
from graphveil.reports.base.words import has_interval, interval, lift_interval
from graphveil.reports.compare.rows import AttackScores, Row
from graphveil.reports.compare.sheet import Group, Sheet, assumed_facts, row_label, three_lines

#: The file that lists the assumptions of each group in full.
MARKDOWN: Final = "table.md"


def epsilon_columns(group: Group) -> list[str]:
    """The headings of a group's epsilons: each names its unit."""
    names = [f"epsilon: {part.short}" for part in group.promise.parts]
    return [*names, *(["epsilon: together"] if len(names) > 1 else []), *(["delta"] if group.has_delta else [])]


def epsilon_cells(group: Group, row: Row) -> list[str]:
    """The epsilons of a row for `epsilon_columns`, rounded up.

    Args:
        group: of the row.
    """
    epsilons = [rounded_up(part.epsilon) for part in row.parts]
    epsilons += [rounded_up(row.guarantee.epsilon)] if len(epsilons) > 1 else []
    return [*epsilons, *([rounded_up(row.guarantee.delta)] if group.has_delta else [])]


def columns(sheet: Sheet, group: Group) -> list[str]:
    """The headings of a group's table; those of controls, rivals and attacks only where there are any.

    Args:
        sheet: all groups; all tables have a column of lifts, or none has.
    """
    names = ["method", *epsilon_columns(group), *trust.ASPECTS, f"{sheet.score}, % (95%)"]
    # Lifts by sheet, leads by group: rivals share the promise of a row, controls have none.
    names += ["lift, points (95%)", "over"] if _has(sheet.rows, "lift") else []
    names += ["lead, points (95%)", "over rival"] if _has(group.rows, "lead") else []
    for attack in _attacks(group.rows):
        names += [f"{attack}: AUC (95%)", f"{attack}: found at 1% false alarms, %"]
    return [*names, "read", *(["other units"] if _any_units(group) else []), "runs", "seconds"]


def cells(sheet: Sheet, group: Group, row: Row) -> list[str]:
    """One line of a group's table, a text for each heading of `columns`.

    Args:
        sheet, group: as of `columns`.
    """
    texts = [row_label(group, row), *epsilon_cells(group, row), *(row.protects[aspect] for aspect in trust.ASPECTS)]
    texts += [with_interval(row.accuracy)]
    texts += [with_lift(row.lift), row.best_control or "-"] if _has(sheet.rows, "lift") else []
    texts += [with_lift(row.lead), row.best_rival or "-"] if _has(group.rows, "lead") else []
    for attack in _attacks(group.rows):
        texts += list(attack_cells(row.attacks.get(attack)))
    texts += [row.collected]
    texts += ["; ".join(map(trust.conversion_text, row.other_units))] if _any_units(group) else []
    runs = "-" if row.accuracy is None else str(len(row.accuracy.runs))
    return [*texts, runs, "-" if row.seconds is None else f"{row.seconds:.1f}"]


def with_interval(score: Interval | None) -> str:
    """``71.2 (68.9 to 73.4)``."""
    if score is None:
        return "-"
    return percent(score.mean) + (f" ({interval(score)})" if has_interval(score) else "")


def with_lift(lift: Interval | None) -> str:
    """``+3.4 (+1.2 to +5.5)``."""
    if lift is None:
        return "-"
    return points(lift.mean) + (f" ({lift_interval(lift)})" if has_interval(lift) else "")


def attack_cells(attacked: AttackScores | None) -> tuple[str, str]:
    """AUC, beside that without protection, and the true positive rate, beside what epsilon allows."""
    if attacked is None:
        return "-", "-"
    auc = f"{attacked.auc.mean:.2f} ({attacked.auc.low:.2f} to {attacked.auc.high:.2f})"
    auc += "" if attacked.plain is None else f"; without protection {attacked.plain:.2f}"
    tpr = with_interval(attacked.tpr)
    return auc, tpr + ("" if attacked.limit is None else f"; epsilon allows {percent(attacked.limit)}")


def _has(rows: Sequence[Row], field: str) -> bool:
    return any(getattr(row, field) is not None for row in rows)


def _any_units(group: Group) -> bool:
    return any(row.other_units for row in group.rows)


def _attacks(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row.attacks))


def markdown_text(sheet: Sheet) -> str:
    """The tables as Markdown, with a warning above them when noise was reproducible."""
    lines = [f"# {markdown(sheet.title)}", ""]
    if sheet.void:
        lines += [f"**VOID, runs so marked protect nobody: {markdown(sheet.void)}.**", ""]
    lines += [f"**{markdown(caution)}.**\n" for caution in sheet.cautions]
    lines += [trust.MEASURED, "", trust.LEGEND, ""]
    for group in sheet.groups:
        head = columns(sheet, group)
        lines += [f"## {markdown(group.head)}", "", markdown(group.promise.protected), ""]
        lines += [f"- {head}: {markdown(text)}" for head, text in three_lines(group, "listed below the table")]
        lines += [""]
        lines += ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
        lines += ["| " + " | ".join(markdown(cell) for cell in cells(sheet, group, row)) + " |" for row in group.rows]
        facts = [f"- {markdown(fact)}" for fact in assumed_facts(group)]
        lines += ["", *(["Assumed:", "", *facts, ""] if facts else [])]
    remarks = [*sheet.comparable, *sheet.notes]
    lines += ["## What may be compared", "", *(f"- {markdown(remark)}" for remark in remarks)] if remarks else []
    return "\n".join(lines) + "\n"


def csv_text(sheet: Sheet) -> str:
    """All rows as one CSV with full precision; scores are fractions, and every epsilon is beside its unit."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    axes = list(dict.fromkeys(key for row in sheet.rows for key in row.axes))
    scores = ("accuracy", "control", "lift", "lead")
    attacks = _attacks(sheet.rows)
    head = ["group", "method", "folder", "data", *axes, "trust", "unit", "relation", "against", "epsilon", "delta"]
    head += ["epsilons", "epsilon_relationship", *(f"protects_{aspect.replace(' ', '_')}" for aspect in trust.ASPECTS)]
    head += [f"{field}_{part}" for field in scores for part in ("mean", "low", "high")]
    head += [f"{name}_{field}" for name in attacks for field in ("auc", "tpr_at_1_fpr")]
    writer.writerow([*head, "best_control", "best_rival", "collected", "runs", "seconds", "void"])
    for group in sheet.groups:
        for row in group.rows:
            facts = row.to_dict()
            line: list[Any] = [group.letter, *(facts[key] for key in ("method", "folder", "data"))]
            line += [row.axes.get(axis, "") for axis in axes]
            line += [facts[key] for key in ("trust", "unit", "relation", "against", "epsilon", "delta")]
            line += ["; ".join(f"{part.unit.text}: {part.epsilon!r}" for part in row.parts), row.epsilon_relationship]
            line += row.protects.values()
            line += itertools.chain(*(_interval_cells(getattr(row, field)) for field in scores))
            line += itertools.chain(*(_attack_figures(row.attacks.get(name)) for name in attacks))
            runs = len(row.accuracy.runs) if row.accuracy else ""
            line += [row.best_control, row.best_rival, row.collected, runs, row.seconds, row.void]
            writer.writerow([_cell(cell) for cell in line])
    return buffer.getvalue()


def _cell(value: object) -> object:
    return "" if value is None else spreadsheet(value) if isinstance(value, str) else value


def _interval_cells(score: Interval | None) -> list[Any]:
    return ["", "", ""] if score is None else [score.mean, score.low, score.high]


def _attack_figures(attacked: AttackScores | None) -> list[Any]:
    return ["", ""] if attacked is None else [attacked.auc.mean, attacked.tpr.mean]


def content(sheet: Sheet) -> dict[str, Any]:
    """Everything as one JSON object: rows, groups by their letters, and what may be compared."""
    groups = sheet.groups
    return {
        "rows": [{"group": group.letter, **row.to_dict()} for group in groups for row in group.rows],
        "groups": [
            {
                "group": group.letter,
                "trust": group.promise.trust,
                "trusted": trust.HEADS[group.promise.trust],
                "protected": [
                    {"unit": part.unit.text, "unit_code": part.unit.code, "relation": part.relation}
                    for part in group.promise.parts
                ],
                "against": group.promise.observers,
            }
            for group in groups
        ],
        "comparable": sheet.comparable,
        "measured": trust.MEASURED,
        "notes": list(sheet.notes),
    }


def answer(sheet: Sheet, folder: Path | None, **facts: object) -> dict[str, Any]:
    """The output of a command with ``--json``, as JSON values; the path of an absent file is None.

    Args:
        folder: of the written files; None: nothing was written.
        facts: further fields, put first.
    """
    files = {"folder": "", "table": MARKDOWN, "figure": "figure.png"}
    paths = {key: None if folder is None else folder / name for key, name in files.items()}
    existing = {key: str(path) if path is not None and path.exists() else None for key, path in paths.items()}
    return {**facts, **content(sheet), **existing}
