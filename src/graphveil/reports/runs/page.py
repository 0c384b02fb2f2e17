"""The report of a run as one HTML page: a record in, text out. Everything shown is escaped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from graphveil.privacy.sentences import less_than_a_person
from graphveil.reports.base import figures, rivals, text, words
from graphveil.reports.base.record import RunRecord
from graphveil.reports.base.templating import rendered


@dataclass(frozen=True)
class Total:
    """What a ledger adds up to for one unit."""

    unit: str
    epsilon: float
    delta: float


def page_html(record: RunRecord) -> str:
    """The report as one HTML page that needs nothing else: no network, no script, pictures inside."""
    content = _content(record)
    best = f" The best control is {record.scores.best_control}." if record.scores.best_control else ""
    content["accuracy_picture"] = Markup(
        figures.inline_svg(
            figures.accuracy_figure(
                record.method,
                record.scores.accuracy,
                record.scores.controls,
                record.scores.ceiling,
                record.scores.rivals,
            ),
            name="accuracy",
            alt=f"Bar chart of the accuracies in the table below. {record.method}: "
            f"{text.percent(record.scores.accuracy.mean)} per cent.{best}",
        )
    )
    training = figures.training_figure(record.history)
    content["training_picture"] = training and Markup(
        figures.inline_svg(
            training,
            name="training",
            alt="Line chart of the loss on training and validation nodes over the epochs, "
            "and of the validation accuracy where it is estimated.",
        )
    )
    return rendered("report.html.j2", **content)


def _content(record: RunRecord) -> dict[str, Any]:
    units = dict.fromkeys(spend.unit for spend in record.privacy.ledger.spends)
    runs = len(record.scores.accuracy.runs)
    return {
        "record": record,
        "parts": record.privacy.guarantee.parts or (record.privacy.guarantee,),
        "less": less_than_a_person(record.privacy.guarantee),
        "exposed": words.not_protected(record.privacy.guarantee, record.settings),
        "figure": words.figure(record)[0],
        "meaning": words.lift_sentence(record),
        "spent": words.spent_line(record.privacy.ledger, record.settings),
        "controls": sorted(record.scores.controls.items(), key=lambda item: -item[1].mean),
        "rivals": sorted(record.scores.rivals.items(), key=lambda item: -item[1].mean),
        "lead": rivals.lead(record),
        "standing": words.rival_sentence(record),
        "totals": [Total(unit, *record.privacy.ledger.total(unit)) for unit in units],
        "settings": [(key, text.shown(value)) for key, value in {**record.settings, **record.options}.items()],
        "runs": "1 run" if runs == 1 else f"{runs} runs",
        "measured": words.measured_with(record),
        "spread_over": words.spread_over(record.scores.accuracy),
        "repeated": runs > 1,
    }
