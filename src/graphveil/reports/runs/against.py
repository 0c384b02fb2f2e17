"""Two runs side by side on one page, for the owner of both: their differences, guarantees, scores and attacks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from graphveil.privacy import Guarantee
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.reports.attacks.files import AttackResults, read_attacks
from graphveil.reports.base import text, words
from graphveil.reports.base.card import Paragraph, Points, Row, Section, Table
from graphveil.reports.base.charts import Charts, overlaid_charts
from graphveil.reports.base.parts import write_with_mode
from graphveil.reports.base.record import RunRecord
from graphveil.reports.base.templating import page_scripts, render
from graphveil.reports.runs.folder import read_run

if TYPE_CHECKING:
    from graphveil.attacks import AttackResult

#: Options that say where a run was made, and not what it is.
_LOCATIONS = frozenset(("source", "data_root", "device"))


@dataclass(frozen=True)
class Side:
    """One of the two runs."""

    name: str  # of its folder
    record: RunRecord
    attacks: AttackResults

    @property
    def guarantee(self) -> Guarantee:
        return self.record.privacy.guarantee


def write_against(run: Path, other: Path) -> Path:
    """Write the page of two runs side by side, for their owner.

    Args:
        run: the folder that the page is written into.
        other: the folder of the other run.

    Raises:
        ModelFileError: there is no run in one of them, or a file of it is damaged or was changed.
    """
    left, right = (Side(folder.resolve().name, read_run(folder), read_attacks(folder)) for folder in (run, other))
    page = run / f"against-{text.plain_name(right.name)}.html"
    write_with_mode(page, against_html(left, right))
    return page


def against_html(left: Side, right: Side) -> str:
    """Return the page of two runs."""
    sides = (left, right)
    voids = [f"{side.name} ({side.guarantee.void})" for side in sides if side.guarantee.void]
    tabs = (
        ("Overview", (_scores(sides), _settings(sides))),
        ("Training", (_training(sides),)),
        ("Privacy", (_guarantees(sides), *map(_promise, sides))),
        ("Attacks", (_attacks(sides),)),
    )
    return render(
        "beside.html.j2",
        kind="two runs side by side",
        title=f"{left.name} against {right.name}",
        note="For whoever made both runs: it holds what was measured on true data.",
        void=", ".join(voids),
        tabs=tabs,
        scripts=page_scripts(),
    )


def _scores(sides: tuple[Side, Side]) -> Section:
    rows = []
    for side in sides:
        record, scores = side.record, side.record.scores
        accuracy, lift = scores.accuracy, scores.lift
        points = "not measured" if lift is None else f"{text.points(lift.mean)} ({words.lift_interval(lift)})"
        interval, over = words.interval(accuracy), scores.best_control or "-"
        rows.append(Row((side.name, record.method, record.data, text.percent(accuracy.mean), interval, points, over)))
    score = words.score_name(sides[0].record)
    head = ("run", "method", "data", f"{score}, %", "95% interval", "lift, points", "over")
    return Section("What each reached", (Table(head, tuple(rows)), Paragraph(_comparable(sides))))


def _comparable(sides: tuple[Side, Side]) -> str:
    """Say whether the accuracies were measured on the same nodes."""
    first, second = (side.record for side in sides)
    if first.data != second.data:
        return "The runs are on different data: their accuracies do not compare."
    if any(first.options.get(key) != second.options.get(key) for key in ("seed", "split", "repeats")):
        return "Measured on different test nodes of the same data: part of the difference is the draw of the nodes."
    gap = text.points(first.scores.accuracy.mean - second.scores.accuracy.mean)
    difference = f"{sides[0].name} minus {sides[1].name}"
    return f"Measured on the same test nodes: {difference} is {gap} points. Privacy noise is drawn anew in each run."


def _settings(sides: tuple[Side, Side]) -> Section:
    first, second = ({**side.record.settings, **side.record.options} for side in sides)
    # Epsilons are in the table of guarantees: here, those of different units would look comparable.
    names = [name for name in {**first, **second} if name not in _LOCATIONS and not text.is_price(name)]
    rows = [
        Row((name, *(text.value_text(values[name]) if name in values else "-" for values in (first, second))))
        for name in names
        if first.get(name) != second.get(name)
    ]
    if not rows:
        return Section("Settings that differ", (Paragraph("None, but for budgets, which are under Privacy."),))
    return Section("Settings that differ", (Table(("setting", *(side.name for side in sides)), tuple(rows)),))


def _training(sides: tuple[Side, Side]) -> Section:
    curves = overlaid_charts(
        [(side.name, side.record.history, words.has_noisy_labels(side.guarantee)) for side in sides]
    )
    if not curves:
        return Section("How they learned", (Paragraph("Neither was trained over epochs."),))
    legend = (
        "A colour for each run. Loss: solid on training nodes, dashed on validation nodes. Bold: the first repeat; "
        "thin: others."
    )
    return Section("How they learned", (Charts(curves), Paragraph(legend)))


def _guarantees(sides: tuple[Side, Side]) -> Section:
    """Return one row for each run and one column for each unit: epsilons of different units never share a column."""
    prices = [dict(_prices(side.guarantee)) for side in sides]
    promises = tuple(dict.fromkeys(promise for of_side in prices for promise in of_side))
    units = [unit for unit, _ in promises]
    # On a phone the heading is repeated at every figure: terms only where they distinguish columns.
    heads = [unit if units.count(unit) == 1 else f"{unit} ({terms})" for unit, terms in promises]
    rows = tuple(
        Row((side.name, *(of_side.get(promise, "-") for promise in promises)))
        for side, of_side in zip(sides, prices, strict=True)
    )
    caption = "Epsilon (and delta) of each unit. A dash: the run does not state that unit. Columns do not compare."
    return Section("Guarantees side by side", (Paragraph(caption), Table(("run", *heads), rows)))


def _prices(guarantee: Guarantee) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield (unit, terms) and the price of each part: the same unit under another relation is another promise."""
    parts = guarantee.parts or (guarantee,)
    for part in (*parts, *((guarantee,) if len(parts) > 1 else ())):
        terms = f"{part.relation}, {part.model}, against {part.against.text}"
        price = rounded_up(part.epsilon) + (f" (delta {rounded_up(part.delta)})" if part.delta else "")
        yield (part.unit.text, terms), f"void: {price}" if guarantee.void is not None else price


def _promise(side: Side) -> Section:
    open_parts = Points(words.not_protected(side.guarantee, side.record.settings))
    sentence = Paragraph(side.guarantee.sentence())
    return Section(side.name, (sentence, Paragraph("Not protected:", strong=True), open_parts))


def _attacks(sides: tuple[Side, Side]) -> Section:
    names = sorted({(attack, label) for side in sides for attack, results in side.attacks.items() for label in results})
    if not names:
        return Section("Attacks", (Paragraph("None was run on either."),))
    rows = tuple(
        Row((f"{attack}: {label}", *(_auc(side.attacks.get(attack, {}).get(label)) for side in sides)))
        for attack, label in names
    )
    caption = Paragraph("AUC with its 95% interval; 0.5 is guessing. Measured on true data: not covered by epsilon.")
    return Section("Attacks", (caption, Table(("attack", *(side.name for side in sides)), rows)))


def _auc(result: AttackResult | None) -> str:
    if result is None:
        return "not run"
    return f"{result.auc.mean:.2f} ({result.auc.low:.2f} to {result.auc.high:.2f})"
