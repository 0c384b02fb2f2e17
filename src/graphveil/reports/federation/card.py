"""The privacy card of a party of a federation, from what its folder holds."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphveil.errors import DataError, ModelFileError
from graphveil.federation.core.agreement import read_agreement
from graphveil.federation.core.guarantees import guarantee_of, ledger_of
from graphveil.federation.core.messages import KINDS
from graphveil.federation.core.mode import MODE_OF
from graphveil.federation.core.setting import Member, Option, Setting
from graphveil.files.reading import read_json
from graphveil.methods.base.storage import DIGESTS
from graphveil.privacy import Guarantee, Ledger
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.privacy.ledger_file import read_ledger
from graphveil.privacy.statement.guarantee import claim
from graphveil.privacy.statement.unit import PERSON_AND_LIST_AT_HOLDER, PERSON_AT_HOLDER
from graphveil.reports.attacks.files import AttackResults, attacks_section, read_attacks
from graphveil.reports.base import card as cards
from graphveil.reports.base import front_matter, text, words
from graphveil.reports.base.card import Card, Command, Paragraph, Points, Row, Section, Table
from graphveil.reports.base.parts import GUARANTEE, LEDGER, REMEDY, read_object, require_unchanged
from graphveil.reports.base.record import interval_from_dict
from graphveil.reports.federation.parties import federation_parties
from graphveil.runtime.words import count_of

OUTCOME, AGREEMENT = "outcome.json", "agreement.toml"
PREDICTED = "predictions.csv"
_SHARED = "Shared ids: all parties learn which ids all holders share, how many each of them has, and who is labelled."
_ROWS = "Rows of neighbours: a person's features change them too, and every row is a separate unit."
_OF_OTHERS = "The label holder's own data about a person: it trains on them as they are."
_ALONE = (
    "The free baseline is the accuracy the label holder reaches alone, with its own features, edges and labels. It "
    "has not been trained. To train it, at the label holder:"
)
_UNKNOWN = "People who join later have no labels here: their accuracy is not known, nor its lift over a baseline."
_NOBODY = "None was run: an attack needs the data of all holders, which no party has. Whoever has it can simulate one:"


def _party_card(outcome: Mapping[str, Any], ledger: Ledger, attacks: AttackResults) -> Card:
    """Return the card of a party, from the outcome of its run and one holder's ledger."""
    guarantee, party, about = Guarantee.from_dict(outcome["guarantee"]), Path(outcome["folder"]), ""
    picture: tuple[Section, ...] = ()  # of all that a run sends, much of which a prediction does not
    if "prediction" in outcome:
        party = party.parents[1] if len(party.parents) > 1 else party / ".." / ".."
        about = f", prediction {outcome['prediction']}"
    else:
        picture = (cards.picture_section(federation_parties(_setting(outcome), guarantee)),)
    units = map(unit_line, outcome.get("units", ()))  # outcomes of earlier versions state none
    typed = f"graphveil attack {shlex.quote(str(party))} --attack feature-recovery --truth DATA"
    kinds = sorted({(message["from"], message["to"], message["kind"]) for message in outcome["messages"]})
    rows = tuple(Row((sender, to, kind, KINDS[kind].reveals)) for sender, to, kind in kinds)
    sent = Table(("from", "to", "what", "what it reveals"), rows)
    return Card(
        title=f"Privacy card: {outcome['run']}, {outcome['party']}{about}",
        sentence=claim(guarantee),
        alarms=cards.alarms(guarantee, "run"),
        sections=(
            cards.protected_section(guarantee, words.trusted_parties(guarantee), *units, _published(outcome)),
            cards.exposed_section(open_lines(outcome)),
            *picture,
            _bought(outcome),
            attacks_section(attacks, typed, none=_NOBODY),
            Section("Messages sent and received", (sent if rows else Points(("Nothing.",)),)),
            cards.spent_section(ledger),
        ),
        matter=_matter(outcome, guarantee),
    )


def _setting(outcome: Mapping[str, Any]) -> Setting:
    """Return the agreed setting, or a similar one where a folder of an earlier version has no agreement."""
    folder = Path(outcome["folder"])
    if (folder / AGREEMENT).is_file():
        return read_agreement(folder).setting
    members = Member("label holder", 1, labels=True), Member("another holder", 1)
    epsilon, epsilon_y = float(outcome["epsilon"]), float(outcome["epsilon_y"])
    options: dict[str, Option] = {"mode": str(outcome["mode"]), "epsilon": epsilon, "epsilon_y": epsilon_y}
    return Setting.of(members, 2).with_options(opened=True, **options)


def _matter(outcome: Mapping[str, Any], guarantee: Guarantee) -> dict[str, Any]:
    """Return the front matter that model hubs read; only the label holder, which knows the accuracy, states it."""
    subject = front_matter.Subject("federation", f"federation-{outcome['mode']}", str(outcome["run"]), guarantee)
    if "accuracy" not in outcome:
        return front_matter.of_model(subject)
    score = interval_from_dict(outcome["accuracy"])
    return front_matter.of_model(subject, [front_matter.Metric("accuracy", "accuracy on the test nodes", score)])


def is_party(folder: Path) -> bool:
    """Whether a party of a federation has finished in a folder."""
    return (folder / OUTCOME).is_file()


def rewrite_party(folder: Path) -> dict[str, str | None]:
    """Write both cards of a party anew, with the attacks on it or its federation; errors as `check_party`."""
    attacks = {**read_attacks(folder.parent), **read_attacks(folder)}
    try:
        outcome = read_json(folder / OUTCOME)
        ledger = Ledger.from_dict(read_json(folder / "ledger.json"))
        card = _party_card({**outcome, "folder": str(folder)}, ledger, attacks)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"damaged: {error}", where=str(folder / OUTCOME)) from error
    check_party(folder)
    cards.write_card(card, folder)
    return {
        "run": str(folder),
        "report": None,
        "card": str(folder / cards.MARKDOWN),
        "method": f"federation ({outcome['mode']})",
        "data": str(outcome["run"]),
        "void": outcome["guarantee"]["void"],
    }


def check_party(folder: Path) -> None:
    """Refuse a file that was changed, or contradicts another or the agreement, by ModelFileError or DataError."""
    if (folder / DIGESTS).is_file():
        require_unchanged(folder, (OUTCOME, GUARANTEE, LEDGER))
    outcome = read_object(folder / OUTCOME)
    guarantee = read_object(folder / GUARANTEE) if (folder / GUARANTEE).is_file() else outcome.get("guarantee")
    if not isinstance(guarantee, Mapping):
        return
    epsilon = guarantee.get("epsilon")
    if outcome.get("guarantee", guarantee) != guarantee or outcome.get("epsilon", epsilon) != epsilon:
        raise ModelFileError(f"contradicts {GUARANTEE}", where=str(folder / OUTCOME), remedy=REMEDY)
    if (folder / AGREEMENT).is_file():
        setting = read_agreement(folder).setting
        agreed = guarantee_of(setting).to_dict()
        if any(guarantee.get(name) != agreed[name] for name in ("epsilon", "delta")):
            raise ModelFileError(f"contradicts {AGREEMENT}", where=str(folder / GUARANTEE), remedy=REMEDY)
        ledger = read_ledger(folder / LEDGER)
        expected = ledger_of(setting, setting.publications_of(outcome.get("party")))
        if ledger.budget != expected.budget or {s.unit for s in ledger.spends} != {s.unit for s in expected.spends}:
            raise ModelFileError(f"contradicts {AGREEMENT}", where=str(folder / LEDGER), remedy=REMEDY)


def _published(outcome: Mapping[str, Any]) -> str:
    what = count_of(outcome["publications"], "publication")
    if "prediction" in outcome:
        # The server of mode guesses is not told who is new.
        count = "" if outcome["people"] is None else f"{outcome['people']:,} "
        what = f"one publication of {count}people who joined after the run"
    line = f"Mode {outcome['mode']}, {what}"
    if math.isinf(float(outcome["epsilon"])):
        return f"{line}, without noise"
    each, total = (rounded_up(float(outcome[name]), 3) for name in ("epsilon_per_publication", "epsilon"))
    return f"{line}: epsilon {each} each, {total} in total"


def open_lines(outcome: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what a reader might wrongly think is protected."""
    sent = "guesses" if MODE_OF[outcome["mode"]].guesses else "rows"
    lines = [f"The {sent}: they are published as they are."] if math.isinf(float(outcome["epsilon"])) else []
    lines.append(f"Between the parties: {outcome['opens']}.")
    if math.isinf(float(outcome["epsilon_y"])):
        lines.append("The labels of training nodes: they are not randomized.")
    people = (PERSON_AT_HOLDER, PERSON_AND_LIST_AT_HOLDER)
    rows = _OF_OTHERS if Guarantee.from_dict(outcome["guarantee"]).unit in people else _ROWS
    return (*lines, rows, _SHARED, words.GROUP)


def _bought(outcome: Mapping[str, Any]) -> Section:
    """Return the accuracy, where the party knows it, and the free baseline to compare it with."""
    if "prediction" in outcome:
        return Section(cards.RESULTS, (Paragraph(_UNKNOWN),))
    accuracy = "Only the label holder can measure accuracy."
    if "accuracy" in outcome:
        score = interval_from_dict(outcome["accuracy"])
        share = f"{text.percent(score.mean)}% ({words.interval(score)})"
        accuracy = f"Accuracy on {count_of(outcome['test_nodes'], 'test node')}: {share}. {words.ON_TRUTH}"
    if "accuracy_alone" in outcome:
        alone = interval_from_dict(outcome["accuracy_alone"]).mean
        lift = text.percent(interval_from_dict(outcome["accuracy"]).mean - alone)
        comparison = (
            f"Lift over the free baseline: {lift} points; the label holder's own network alone: {text.percent(alone)}%."
        )
        return Section(cards.RESULTS, (Paragraph(accuracy), Paragraph(comparison, strong=True)))
    none = Paragraph("Lift over the free baseline: not measured.", strong=True)
    parts = (Paragraph(accuracy), none, Paragraph(_ALONE), Command("graphveil train sage DATA"))
    return Section(cards.RESULTS, parts)


def unit_line(unit: Mapping[str, Any]) -> str:
    """Return one unit's price and warning, as a plan and an outcome state them, as a sentence."""
    epsilon = float(unit["epsilon"])
    price = (
        "epsilon inf" if math.isinf(epsilon) else f"epsilon {rounded_up(epsilon)}, delta {rounded_up(unit['delta'])}"
    )
    return f"{unit['unit']}: {price}; {str(unit['warning']).rstrip('.')}."
