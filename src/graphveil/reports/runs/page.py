"""The report of a run as one HTML page, from its record. All content is escaped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from graphveil.privacy.statement.guarantee import less_than_a_person
from graphveil.reports.attacks.files import AttackResults, attacks_section
from graphveil.reports.base import card as cards
from graphveil.reports.base import text, words
from graphveil.reports.base.card import Row, TrustPicture, read_as_is
from graphveil.reports.base.charts import Chart, training_charts
from graphveil.reports.base.parties import parties_of
from graphveil.reports.base.record import RunRecord, Standing
from graphveil.reports.base.templating import page_scripts, render
from graphveil.reports.runs.card import About, attack_command, public_card
from graphveil.reports.runs.picture import Drawing, Picture
from graphveil.runtime.words import count_of


def page_html(record: RunRecord, attacks: AttackResults, picture: Picture | None = None) -> str:
    """The report as one self-contained HTML page, with scripts and pictures inside.

    Args:
        attacks: attack -> attacked -> result.
        picture: the owner's copy, if there is one.
    """
    summary = f"Attacked by {', '.join(attacks)}: see Attacks." if attacks else "No attack was run."
    section = attacks_section(attacks, attack_command(record))
    curves: list[tuple[str, tuple[Chart, ...]]] = []
    if attacks:
        from graphveil.reports.attacks.figure import attack_charts  # late: most runs have no attacks

        curves = [(name, attack_charts(f"attack{n}", results)) for n, (name, results) in enumerate(attacks.items())]
    attacked = {"attacks": section, "attack_curves": tuple(curves), "attack_summary": summary}
    content = {**_content(record), **attacked, **_picture_fields(picture)}
    return render("report.html.j2", **content)


def shared_html(about: About, picture: Picture | None) -> str:
    """The page for publication: the content of the public card, and the picture that the guarantee covers.

    Args:
        picture: the copy for publication, if there is one.
    """
    card = public_card(about)
    tabs = (("Privacy", card.sections[:3]), ("Accuracy", card.sections[3:4]), ("Ledger", card.sections[4:]))
    title = f"{about.method} on {about.data}"
    return render("shared.html.j2", card=card, title=title, tabs=tabs, **_picture_fields(picture))


def _picture_fields(picture: Picture | None) -> dict[str, Any]:
    drawing = None if picture is None else Drawing(picture)
    return {"drawing": drawing, "scripts": page_scripts(graph=picture is not None)}


def _content(record: RunRecord) -> dict[str, Any]:
    runs = len(record.scores.accuracy.runs)
    used = words.used_settings(record.settings, record.privacy.guarantee)
    return {
        "record": record,
        "read_as_is": read_as_is(record.privacy.guarantee, "run"),
        "protected": words.protected_lines(record.privacy.guarantee, record.privacy.epsilon_relationship),
        "trust": TrustPicture(parties_of(record.privacy.guarantee, record.method, record.settings)),
        "less": less_than_a_person(record.privacy.guarantee),
        "exposed": words.not_protected(record.privacy.guarantee, record.settings),
        "figure": words.score_name(record),
        "holds": words.private_content(record),
        "meaning": words.lift_sentence(record),
        "spent": words.spent_line(record.privacy.ledger, record.settings),
        "controls": record.scores.controls,
        "rivals": record.scores.rivals,
        "bars": tuple(map(_bar, record.standings)),
        "scores": tuple(_scores(record)),
        "lead": record.lead,
        "standing": words.rival_sentence(record),
        "spends": cards.spend_rows(record.privacy.ledger),
        "totals": cards.total_rows(record.privacy.ledger),
        "settings": [(key, text.value_text(value)) for key, value in {**used, **record.options}.items()],
        "runs": count_of(runs, "run"),
        "measured": words.measured_with(record),
        "spread_over": words.intervals_over(record.scores.accuracy),
        "training": training_charts(record.history, noisy=words.has_noisy_labels(record.privacy.guarantee)),
        "repeated": runs > 1,
    }


def _bar(standing: Standing) -> dict[str, Any]:
    """One score as a bar, in per cent; its kind is the class of its style: own, rival, control or ceiling."""
    score, name = standing.score, f"{standing.name} (rival)" if standing.kind == "rival" else standing.name
    low, high = (score.low, score.high) if words.has_interval(score) else (score.mean, score.mean)
    number, runs = text.percent(score.mean), ", ".join(text.percent(run) for run in score.runs)
    return {
        "name": name,
        "kind": standing.kind,
        "mean": _per_cent(score.mean),
        "low": _per_cent(low),
        "high": _per_cent(high),
        "measured": words.has_interval(score),
        "number": number,
        "tooltip": f"{name}: {number} (95%: {words.interval(score)}); runs: {runs}",
    }


def _scores(record: RunRecord) -> Iterator[Row]:
    for standing in record.standings:
        meaning = {
            "own": "this run",
            "rival": words.RIVAL_MEANING.get(standing.name, "another method at the same privacy price"),
            "control": words.CONTROL_MEANING.get(standing.name, ""),
            "ceiling": "the same model on the true data, for comparison only",
        }[standing.kind]
        name = f"{standing.name} (best {standing.kind})" if standing.best else standing.name
        cells = name, text.percent(standing.score.mean), words.interval(standing.score), meaning
        yield Row(cells, strong=standing.kind == "own")


def _per_cent(share: float) -> str:
    """A share as per cent for a style, cut to 0..100, which an interval may exceed."""
    # Outside, nothing can be drawn, and the zoomed scale would widen.
    return f"{100 * min(1.0, max(0.0, share)):.2f}"
