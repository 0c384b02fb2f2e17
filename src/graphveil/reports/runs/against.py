"""Two runs side by side on one page, for whoever made both: what differs, what each promises and what each reached."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

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

#: Options that say where a run was made, and not what it is.
_PLACES = frozenset(("source", "data_root", "device"))
_Side = tuple[str, RunRecord, AttackResults]


def write_against(run: Path, other: Path) -> Path:
    """Write the page of two runs side by side, for their maker alone.

    Args:
        run: the folder that the page is written into.

    Raises:
        ModelFileError: there is no run in one of them, or a file of it is damaged or was changed.
    """
    sides = [(folder.resolve().name, read_run(folder), read_attacks(folder)) for folder in (run, other)]
    page = run / f"against-{text.plain_name(sides[1][0])}.html"
    write_with_mode(page, against_html(sides[0], sides[1]))
    return page


def against_html(left: _Side, right: _Side) -> str:
    """Return the page: each side is the name of a folder, its record and the attacks on it."""
    sides = (left, right)
    voids = [f"{name} ({record.privacy.guarantee.void})" for name, record, _ in sides if record.privacy.guarantee.void]
    tabs = (
        ("Overview", (_scores(sides), _settings(sides))),
        ("Training", (_training(sides),)),
        ("Privacy", (_guarantees(sides), *(_promise(*side[:2]) for side in sides))),
        ("Attacks", (_attacks(sides),)),
    )
    return render(
        "beside.html.j2",
        kind="two runs side by side",
        title=f"{left[0]} against {right[0]}",
        note="For whoever made both runs: it holds what was measured on true data.",
        void=", ".join(voids),
        tabs=tabs,
        scripts=page_scripts(),
    )


def _scores(sides: tuple[_Side, _Side]) -> Section:
    rows = []
    for name, record, _ in sides:
        score, lift, over = record.scores.accuracy, record.scores.lift, record.scores.best_control or "-"
        gained = "not measured" if lift is None else f"{text.points(lift.mean)} ({words.lift_interval(lift)})"
        rows.append(
            Row((name, record.method, record.data, text.percent(score.mean), words.interval(score), gained, over))
        )
    head = ("run", "method", "data", words.score_name(sides[0][1]) + ", %", "95% interval", "lift, points", "over")
    return Section("What each reached", (Table(head, tuple(rows)), Paragraph(_comparable(sides))))


def _comparable(sides: tuple[_Side, _Side]) -> str:
    """Say whether the accuracies were measured on the same nodes."""
    first, second = (record for _, record, _ in sides)
    if first.data != second.data:
        return "The runs are on different data: their accuracies do not compare."
    if any(first.options.get(key) != second.options.get(key) for key in ("seed", "split", "repeats")):
        return "Measured on different test nodes of the same data: part of the difference is the draw of the nodes."
    gap = text.points(first.scores.accuracy.mean - second.scores.accuracy.mean)
    less = f"{sides[0][0]} minus {sides[1][0]}"
    return f"Measured on the same test nodes: {less} is {gap} points. Privacy noise is drawn anew in each run."


def _settings(sides: tuple[_Side, _Side]) -> Section:
    first, second = ({**record.settings, **record.options} for _, record, _ in sides)
    # Prices stand in the table of guarantees: in one column, those of different units would look comparable.
    names = [name for name in {**first, **second} if name not in _PLACES and not text.is_price(name)]
    rows = [
        Row((name, *(text.value_text(side[name]) if name in side else "-" for side in (first, second))))
        for name in names
        if first.get(name) != second.get(name)
    ]
    if not rows:
        return Section("Settings that differ", (Paragraph("None, but for budgets, which are under Privacy."),))
    return Section("Settings that differ", (Table(("setting", *(name for name, _, _ in sides)), tuple(rows)),))


def _training(sides: tuple[_Side, _Side]) -> Section:
    curves = overlaid_charts(
        [(name, record.history, words.has_noisy_labels(record.privacy.guarantee)) for name, record, _ in sides]
    )
    if not curves:
        return Section("How they learned", (Paragraph("Neither was trained over epochs."),))
    legend = (
        "A colour for each run. Loss: solid on training nodes, dashed on validation nodes. Bold: the first repeat; "
        "thin: others."
    )
    return Section("How they learned", (Charts(curves), Paragraph(legend)))


def _guarantees(sides: tuple[_Side, _Side]) -> Section:
    """Return one row for each run and one column for each unit: epsilons of different units never share a column."""
    priced = [dict(_prices(record.privacy.guarantee)) for _, record, _ in sides]
    promises = tuple(dict.fromkeys(promise for prices in priced for promise in prices))
    units = [unit for unit, _ in promises]
    # On a phone a long heading stands before every figure: what tells no columns apart is left to the paragraphs below.
    heads = [unit if units.count(unit) == 1 else f"{unit} ({terms})" for unit, terms in promises]
    rows = tuple(
        Row((name, *(prices.get(promise, "-") for promise in promises)))
        for (name, _, _), prices in zip(sides, priced, strict=True)
    )
    caption = "Epsilon (and delta) of each unit. A dash: the run does not state that unit. Columns do not compare."
    return Section("Guarantees side by side", (Paragraph(caption), Table(("run", *heads), rows)))


def _prices(guarantee: Guarantee) -> Iterator[tuple[tuple[str, str], str]]:
    """Return the price of each unit under its terms: the same words under another relation are another promise."""
    parts = guarantee.parts or (guarantee,)
    for part in (*parts, *((guarantee,) if len(parts) > 1 else ())):
        terms = f"{part.relation}, {part.model}, against {part.against.text}"
        price = rounded_up(part.epsilon) + (f" (delta {rounded_up(part.delta)})" if part.delta else "")
        yield (part.unit.text, terms), f"void: {price}" if guarantee.void is not None else price


def _promise(name: str, record: RunRecord) -> Section:
    guarantee = record.privacy.guarantee
    open_parts = Points(words.not_protected(guarantee, record.settings))
    return Section(name, (Paragraph(guarantee.sentence()), Paragraph("Not protected:", strong=True), open_parts))


def _attacks(sides: tuple[_Side, _Side]) -> Section:
    by_attack = [
        {(a, label): r for a, results in attacks.items() for label, r in results.items()} for *_, attacks in sides
    ]
    names = sorted({key for side in by_attack for key in side})
    if not names:
        return Section("Attacks", (Paragraph("None was run on either."),))
    rows = tuple(
        Row((f"{attack}: {label}", *(_auc(side.get((attack, label))) for side in by_attack))) for attack, label in names
    )
    caption = Paragraph("AUC with its 95% interval; 0.5 is guessing. Measured on true data: not covered by epsilon.")
    return Section("Attacks", (caption, Table(("attack", *(name for name, _, _ in sides)), rows)))


def _auc(result: object) -> str:
    score = getattr(result, "auc", None)
    return "not run" if score is None else f"{score.mean:.2f} ({score.low:.2f} to {score.high:.2f})"
