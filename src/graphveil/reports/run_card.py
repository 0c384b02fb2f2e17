"""The privacy card of a run."""

from __future__ import annotations

import shlex

from graphveil.methods.intervals import Interval
from graphveil.reports import card as cards
from graphveil.reports import rivals, text, words
from graphveil.reports.attack_files import Found, attacks_section
from graphveil.reports.card import Card, Paragraph, Points, Row, Section, Table
from graphveil.reports.record import RunRecord


def run_card(record: RunRecord, attacks: Found) -> Card:
    """Return the card of a run and of the attacks on it (attack -> attacked -> result)."""
    guarantee = record.guarantee
    links = record.epsilon_relationship
    facts = () if links is None else (f"Connections: {words.relationship_line(links)}",)
    return Card(
        title=f"Privacy card: {record.method} on {record.data}",
        sentence=cards.claim(guarantee),
        alarms=cards.void_alarm(guarantee, "run"),
        sections=(
            cards.protected(guarantee, words.trusted(guarantee), *facts),
            cards.exposed(words.not_protected(guarantee, record.settings)),
            results(record, f"{record.method} (this run)"),
            attacks_section(attacks, _attack_command(record)),
            cards.spent(record.ledger),
            _cost(record),
        ),
    )


def results(record: RunRecord, name: str) -> Section:
    """Return the accuracies and the lift over the free baseline; `name` is what the run itself is called."""
    own = (name, *_scores(record.accuracy))
    rows = [Row(own, strong=True)]
    for name, score in sorted(record.rivals.items(), key=lambda item: -item[1].mean):
        best = "best " if name == record.best_rival else ""
        rows.append(Row((f"{name} ({best}rival at the same privacy price)", *_scores(score))))
    for name, score in sorted(record.controls.items(), key=lambda item: -item[1].mean):
        rows.append(Row((name + (" (best control)" if name == record.best_control else ""), *_scores(score))))
    if record.ceiling is not None:
        rows.append(Row(("not private (ceiling)", *_scores(record.ceiling))))
    figure = words.figure(record)[0].replace("accuracy", "Accuracy")
    said = f"{figure} on the test nodes, per cent; 95% intervals over {words.spread_over(record.accuracy)}."
    told = Paragraph(f"{said} {words.measured_with(record)}")
    lift = (Paragraph(words.free_lift(record), strong=True), Paragraph(words.lift_sentence(record)))
    table = Table(("", words.figure(record)[0], "95% interval"), tuple(rows))
    return Section(cards.RESULTS, (told, table, *lift, *_standing(record)))


def _scores(score: Interval) -> tuple[str, str]:
    return text.percent(score.mean), words.interval(score)


def _standing(record: RunRecord) -> tuple[Paragraph, ...]:
    """Return how the run stands beside other methods at the same price, if any were trained."""
    lead = rivals.lead(record)
    if lead is None:
        return ()
    said = f"{text.points(lead.mean)} points (95%: {words.lift_interval(lead)})"
    loud = Paragraph(f"Against the best rival, {record.best_rival}: {said}.", strong=True)
    return (loud, Paragraph(words.rival_sentence(record)))


def _attack_command(record: RunRecord) -> str:
    truth = " --truth DATA" if words.on_release(record) else ""
    return f"graphveil attack {shlex.quote(record.run or 'RUN')} --attack link-stealing{truth}"


def _cost(record: RunRecord) -> Section:
    lines = (
        f"Settings: {text.settings(record.settings)}",
        f"Run: {text.settings(record.options)}",
        f"Cost: {text.seconds(record.seconds)} ({text.seconds(record.seconds_method)} a fit), "
        f"at most {text.memory(record.peak_memory_mb)}",
        f"Made by graphveil {record.version}, {text.moment(record.created)}",
        *(f"Note: {note}" for note in record.notes),
    )
    return Section("Settings and cost", (Points(lines),))
