"""The privacy card and the HTML page of a run: a record in, text out. Everything shown is escaped."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from graphveil.reports import figures, rivals, text, words
from graphveil.reports.record import RunRecord


@dataclass(frozen=True)
class Total:
    """What a ledger adds up to for one unit."""

    unit: str
    epsilon: float
    delta: float


def card_markdown(record: RunRecord) -> str:
    """The privacy card: what is protected, from whom, under which assumption, what it bought. Markdown."""
    return markdown("card.md.j2", _content(record))


def markdown(template: str, content: Mapping[str, Any]) -> str:
    """A card in Markdown from one of our templates; every value is escaped."""
    card = _environment("md").get_template(template).render(**content)
    return re.sub(r"\n{3,}", "\n\n", card).strip() + "\n"


def page_html(record: RunRecord) -> str:
    """The report as one HTML page that needs nothing else: no network, no script, pictures inside."""
    content = _content(record)
    best = f" The best control is {record.best_control}." if record.best_control else ""
    content["accuracy_picture"] = Markup(
        figures.inline_svg(
            figures.accuracy_figure(record.method, record.accuracy, record.controls, record.ceiling, record.rivals),
            name="accuracy",
            alt=f"Bar chart of the accuracies in the table below. {record.method}: "
            f"{text.percent(record.accuracy.mean)} per cent.{best}",
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
    return _environment("html").get_template("report.html.j2").render(**content)


def _content(record: RunRecord) -> dict[str, Any]:
    units = dict.fromkeys(spend.unit for spend in record.ledger.spends)
    runs = len(record.accuracy.runs)
    return {
        "record": record,
        "parts": record.guarantee.parts or (record.guarantee,),
        "exposed": words.not_protected(record.guarantee, record.settings),
        "figure": words.figure(record)[0],
        "meaning": words.lift_sentence(record),
        "spent": words.spent_line(record.ledger, record.settings),
        "controls": sorted(record.controls.items(), key=lambda item: -item[1].mean),
        "rivals": sorted(record.rivals.items(), key=lambda item: -item[1].mean),
        "lead": rivals.lead(record),
        "standing": words.rival_sentence(record),
        "totals": [Total(unit, *record.ledger.total(unit)) for unit in units],
        "settings": [(key, _shown(value)) for key, value in {**record.settings, **record.options}.items()],
        "runs": "1 run" if runs == 1 else f"{runs} runs",
        "spread_over": words.spread_over(record.accuracy),
        "repeated": runs > 1,
    }


@cache
def _environment(kind: str) -> Environment:
    """Jinja with our filters: HTML escaping for pages, Markdown escaping of every value for cards."""
    environment = Environment(
        loader=PackageLoader("graphveil.reports"),
        autoescape=kind == "html",
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=text.markdown if kind == "md" else _plain,
    )
    environment.filters.update(_FILTERS)
    return environment


def _plain(value: Any) -> Any:
    return value if isinstance(value, Markup) or not isinstance(value, str) else text.printable(value)


def _shown(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    return text.number(value) if isinstance(value, float) else str(value)


def _settings(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} = {_shown(value)}" for key, value in values.items()) or "none"


_FILTERS: Mapping[str, Callable[..., Any]] = {
    "number": text.number,
    "epsilon": lambda value: "none" if value == math.inf else text.number(value),
    "finite": lambda value: value < math.inf,
    "percent": text.percent,
    "points": text.points,
    "interval": words.interval,
    "lift_interval": words.lift_interval,
    "relationship": words.relationship_line,
    "rival_meaning": lambda name: words.RIVAL_MEANING.get(name, "another method at the same privacy price"),
    "control_meaning": lambda name: words.CONTROL_MEANING.get(name, ""),
    "moment": lambda moment: moment[:16].replace("T", " "),
    "settings": _settings,
    "seconds": text.seconds,
    "memory": text.memory,
}
