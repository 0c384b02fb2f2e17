"""The results of attacks in a folder, `attack-<name>.json`, and their section of a privacy card."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from graphveil.errors import ModelFileError
from graphveil.files.reading import read_json
from graphveil.files.serial import unseal
from graphveil.methods.runs.intervals import Interval
from graphveil.reports.base.card import Command, Paragraph, Points, Row, Section, Table
from graphveil.reports.base.text import percent

if TYPE_CHECKING:
    from graphveil.attacks import AttackResult

#: The label of the plain network that is attacked beside the method.
PLAIN = "without protection"
NONE_RUN = "None was run. What an adversary can learn is unknown; to find out:"
_TITLE = "Attacks"
_HEAD = (
    "attack",
    "AUC (95%)",
    "found at 1% false alarms (95%)",
    "epsilon allows",
    "AUC without the secret",
    "AUC without protection",
)
MEASURED = (
    "Measured on the true data: these figures are not covered by epsilon. An attack that finds nothing proves nothing: "
    "another may find more."
)

AttackResults = Mapping[str, Mapping[str, "AttackResult"]]


def read_attacks(folder: Path) -> dict[str, dict[str, AttackResult]]:
    """Return attack -> attacked -> result of a folder; ModelFileError where a file is damaged or was changed."""
    files = sorted(folder.glob("attack-*.json"))
    if not files:
        return {}
    from graphveil.attacks import AttackResult  # late: slow to import, and most folders hold no attack

    attacks = {}
    for file in files:
        try:
            content = unseal(read_json(file), file)
            results = {str(label): AttackResult.from_dict(facts) for label, facts in content.items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ModelFileError(f"damaged attack: {error}", where=str(file)) from error
        attacks[file.stem.removeprefix("attack-")] = results
    return attacks


def attacks_section(attacks: AttackResults, command: str, *, none: str = NONE_RUN) -> Section:
    """Return the results of attacks, beside what epsilon allows.

    Args:
        attacks: attack -> attacked model -> result; `PLAIN` is the network without protection.
        command: runs an attack; shown, behind `none`, where there are no attacks.
        none: the sentence where there are no attacks.
    """
    if not attacks:
        return Section(_TITLE, (Paragraph(none), Command(command)))
    rows, lines, alarms = [], [], []
    for attack, results in attacks.items():
        # The plain network has its own column, so that one row compares both.
        plain = results.get(PLAIN)
        attacked = {label: result for label, result in results.items() if label != PLAIN} or results
        for label, result in attacked.items():
            name = attack if len(attacked) == 1 else f"{attack}: {label}"
            rows.append(_row(name, result, plain))
            lines.append(_remarks(name, result))
            if result.beats_limit:
                alarms.append(Paragraph(f"{name}: {above_limit(result)}.", strong=True))
        # Its notes say what it read, which decides who may see the table.
        lines += [f"{attack}, {PLAIN}: {'; '.join(plain.notes)}"] if plain is not None and plain.notes else []
    return Section(_TITLE, (*alarms, Table(_HEAD, tuple(rows)), Points(tuple(lines)), Paragraph(MEASURED)))


def above_limit(result: AttackResult) -> str | None:
    """Return what it means that a score of an attack is above what epsilon allows; None where none is."""
    limits = ((result.tpr_at_1_fpr, result.limit), (result.advantage, result.advantage_limit))
    lows = [score.low > limit for score, limit in limits if limit is not None and score.mean > limit]
    if result.beats_limit and result.name == "averaging":
        return "more than the epsilon of one report allows, which is why the ledger refuses to pay for a second"
    if result.beats_limit:
        return "MORE THAN EPSILON ALLOWS: the method leaks what it claims to protect"
    if not any(lows):
        return "above what epsilon allows, but not significantly" if lows else None
    # The limit holds for each secret by itself, but correlated data of other people and entries reveal it too.
    return (
        "above what epsilon allows for one secret judged by itself: people who are linked, and features of one person, "
        "go together; the excess was there without the secret: no leak"
    )


def _row(name: str, result: AttackResult, plain: AttackResult | None) -> Row:
    tpr = result.tpr_at_1_fpr
    cells = (
        name,
        _auc(result.auc),
        f"{percent(tpr.mean)}% ({percent(tpr.low)} to {percent(tpr.high)})",
        "no limit" if result.limit is None else f"{percent(result.limit)}%",
        "-" if result.baseline is None else f"{result.baseline:.2f}",
        "-" if plain is None else f"{_auc(plain.auc)}, found {percent(plain.tpr_at_1_fpr.mean)}%",
    )
    return Row(cells, strong=result.beats_limit)


def _auc(score: Interval) -> str:
    return f"{score.mean:.2f} ({score.low:.2f} to {score.high:.2f})"


def _remarks(name: str, result: AttackResult) -> str:
    """Return what a reader of a row must know: the source of its limit, and the score without the secret."""
    remarks = [f"{'no limit' if math.isinf(result.epsilon) else 'limit'}: {result.limit_note}"]
    above = None if result.beats_limit else above_limit(result)
    remarks += [above] if above is not None else []
    if result.baseline is not None:
        high = "" if result.baseline_high is None else f", by chance up to {result.baseline_high:.2f}"
        remarks.append(f"without the secret: {result.baseline_note}{high}")
    return f"{name}: {'; '.join([*remarks, *result.notes])}"
