"""The privacy card of a run."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphveil.methods.registry import METHODS
from graphveil.privacy import Guarantee, Ledger
from graphveil.privacy.statement.guarantee import claim
from graphveil.reports.attacks.files import AttackResults, attacks_section
from graphveil.reports.base import card as cards
from graphveil.reports.base import front_matter, text, words
from graphveil.reports.base.card import Card, Paragraph, Points, Row, Section, Table
from graphveil.reports.base.front_matter import Metric, Subject
from graphveil.reports.base.parties import parties_of
from graphveil.reports.base.record import RunRecord, number_of

_ELSEWHERE = (
    "Not shown: accuracies, controls and attacks are measured on true data and not covered by epsilon. Whoever made "
    "the run has them."
)


@dataclass(frozen=True)
class About:
    """The public facts of a run: nothing measured on true labels, no time, no path."""

    method: str
    data: str
    settings: Mapping[str, Any]
    relationship: float | None
    version: str
    guarantee: Guarantee
    ledger: Ledger

    @classmethod
    def of(cls, record: RunRecord) -> About:
        options = METHODS[record.method].options if record.method in METHODS else {}
        settings = dict(record.settings)
        for key, value in record.settings.items():
            if key in options and options[key].file and value:
                # The checksum in the record: by the time a card is rewritten, the file may be gone or another one.
                digest = record.options.get(digest_key(key))
                # Without the folder of the file, which is a path of the machine.
                settings[key] = Path(str(value)).name + ("" if digest is None else f", sha256 {digest}")
        return cls(
            method=record.method,
            data=record.data,
            settings=settings,
            relationship=record.privacy.epsilon_relationship,
            version=record.version,
            guarantee=record.privacy.guarantee,
            ledger=record.privacy.ledger,
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything except guarantee and ledger, which have files of their own, and why the guarantee is void."""
        names = ("method", "data", "settings", "relationship", "version")
        return {"void": self.guarantee.void, **{name: getattr(self, name) for name in names}}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], *, guarantee: Guarantee, ledger: Ledger) -> About:
        """The inverse of `to_dict`; KeyError, TypeError or ValueError for other content.

        Args:
            content: as read from a file, which may have been edited.
            guarantee, ledger: from the same folder.
        """
        return cls(
            method=str(content["method"]),
            data=str(content["data"]),
            settings={str(key): number_of(value) for key, value in content["settings"].items()},
            relationship=None if content["relationship"] is None else float(content["relationship"]),
            version=str(content["version"]),
            guarantee=guarantee,
            ledger=ledger,
        )


def digest_key(setting: str) -> str:
    """Return the option of a run that holds the checksum of the file that a setting names."""
    return f"{setting}_sha256"


def public_card(about: About) -> Card:
    """Return the card for publication: what is protected, from whom, at which epsilon."""
    used = text.settings(words.used_settings(about.settings, about.guarantee))
    points = f"Settings: {used}", f"Made by graphveil {about.version}"
    return Card(
        title=f"Privacy card: {about.method} on {about.data}",
        sentence=claim(about.guarantee),
        alarms=cards.alarms(about.guarantee, "run"),
        sections=(
            cards.protected_section(
                about.guarantee, words.trusted_parties(about.guarantee), *_connections(about.relationship)
            ),
            cards.exposed_section(words.not_protected(about.guarantee, about.settings)),
            cards.picture_section(parties_of(about.guarantee, about.method, about.settings)),
            Section(cards.RESULTS, (Paragraph(_ELSEWHERE),)),
            cards.spent_section(about.ledger),
            Section("Settings", (Points(points),)),
        ),
        matter=front_matter.of_model(Subject("run", about.method, about.data, about.guarantee, about.version)),
    )


def run_card(record: RunRecord, attacks: AttackResults) -> Card:
    """Return the card of a run and of the attacks on it.

    Args:
        attacks: attack -> attacked -> result; empty where none was run.
    """
    guarantee = record.privacy.guarantee
    lines = (
        f"Settings: {text.settings(words.used_settings(record.settings, record.privacy.guarantee))}",
        f"Run: {text.settings(record.options)}",
        f"Cost: {text.seconds(record.cost.seconds)} ({text.seconds(record.cost.seconds_method)} a fit), "
        f"at most {text.memory(record.cost.peak_memory_mb)}",
        f"Made by graphveil {record.version}, {text.moment(record.created)}",
        *(f"Note: {note}" for note in record.notes),
    )
    return Card(
        title=f"Privacy card: {record.method} on {record.data}",
        sentence=claim(guarantee),
        alarms=cards.alarms(guarantee, "run"),
        sections=(
            cards.protected_section(
                guarantee, words.trusted_parties(guarantee), *_connections(record.privacy.epsilon_relationship)
            ),
            cards.exposed_section(words.not_protected(guarantee, record.settings)),
            cards.picture_section(parties_of(guarantee, record.method, record.settings)),
            results(record, f"{record.method} (this run)"),
            attacks_section(attacks, attack_command(record)),
            cards.spent_section(record.privacy.ledger),
            Section("Settings and cost", (Points(lines),)),
        ),
        matter=front_matter.of_model(
            Subject("run", record.method, record.data, guarantee, record.version),
            metrics_of(record),
            covered=words.is_on_release(record),
        ),
    )


def metrics_of(record: RunRecord) -> list[Metric]:
    """Return the score of a run and, if known, its lift over the best control, as hubs list them."""
    kind = "f1" if words.score_name(record) == "micro F1" else "accuracy"
    metrics = [Metric(kind, words.score_sentence(record), record.scores.accuracy)]
    if record.scores.lift is not None:
        metrics.append(Metric("lift", f"lift over the best control, {record.scores.best_control}", record.scores.lift))
    return metrics


def _connections(price: float | None) -> tuple[str, ...]:
    return tuple(f"Connections: {line}" for line in words.connections(price))


def results(record: RunRecord, name: str) -> Section:
    """Return the accuracies and the lift over the free baseline.

    Args:
        record: of the run, or of the training on a release.
        name: of the run itself in the table.
    """
    rows = []
    for standing in record.standings:
        marks = {"own": "", "rival": f" ({'best ' * standing.best}rival at the same privacy price)"}
        name_shown = name if standing.kind == "own" else standing.name
        mark = marks.get(standing.kind, f" (best {standing.kind})" if standing.best else "")
        cells = name_shown + mark, text.percent(standing.score.mean), words.interval(standing.score)
        rows.append(Row(cells, strong=standing.kind == "own"))
    score = words.score_name(record)
    sentence = (
        f"{score[0].upper()}{score[1:]} on the test nodes, per cent; "
        f"95% intervals over {words.intervals_over(record.scores.accuracy)}."
    )
    caption = Paragraph(f"{sentence} {words.measured_with(record)}")
    lift = (Paragraph(words.free_lift(record), strong=True), Paragraph(words.lift_sentence(record)))
    table = Table(("", score, "95% interval"), tuple(rows))
    parts: tuple[Paragraph | Table, ...] = (caption, table, *lift)
    if (lead := record.lead) is not None:
        line = f"{text.points(lead.mean)} points (95%: {words.lift_interval(lead)})"
        loud = Paragraph(f"Against the best rival, {record.scores.best_rival}: {line}.", strong=True)
        parts = (*parts, loud, Paragraph(words.rival_sentence(record)))
    return Section(cards.RESULTS, parts)


def attack_command(record: RunRecord) -> str:
    truth = " --truth DATA" if words.is_on_release(record) else ""
    return f"graphveil attack {shlex.quote(record.run or 'RUN')} --attack link-stealing{truth}"
