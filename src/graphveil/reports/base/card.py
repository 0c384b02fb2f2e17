"""A privacy card as one value: composed once, and rendered as Markdown and as HTML.

Every card has the same order: what is protected and how strongly, who must be trusted, what is not protected, what the
private data bought, what attacks found, what was spent. The cards of runs, releases and parties of a federation differ
only in a few sections: see `run_card`, `release_card` and `reports.federation.card`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from markupsafe import Markup

from graphveil.files.writing import write_text
from graphveil.privacy import Guarantee, Ledger
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.reports.base import text
from graphveil.reports.base.drawing import picture_svg
from graphveil.reports.base.parties import Parties, State
from graphveil.reports.base.templating import render

MARKDOWN, HTML = "card.md", "card.html"
RESULTS = "Results, and the lift over the free baseline"


@dataclass(frozen=True)
class Paragraph:
    text: str
    strong: bool = False
    kind: ClassVar[str] = "paragraph"


@dataclass(frozen=True)
class Points:
    lines: tuple[str, ...]
    kind: ClassVar[str] = "points"


@dataclass(frozen=True)
class Command:
    text: str
    kind: ClassVar[str] = "command"


@dataclass(frozen=True)
class Row:
    cells: tuple[str, ...]
    strong: bool = False


@dataclass(frozen=True)
class Table:
    head: tuple[str, ...]
    rows: tuple[Row, ...]
    kind: ClassVar[str] = "table"


@dataclass(frozen=True)
class TrustPicture:
    """Who sees what: a drawing, and for each party and arrow what it can learn and why."""

    picture: Parties
    kind: ClassVar[str] = "picture"

    @property
    def svg(self) -> Markup:
        return picture_svg(self.picture)

    @property
    def lines(self) -> tuple[str, ...]:
        """The arrows that carry people's data, with noise or without, as lines of text."""
        arrows = (arrow for arrow in self.picture.arrows if arrow.state in (State.NOISY, State.PLAIN))
        return tuple(self.picture.line(arrow) for arrow in arrows)

    @property
    def facts(self) -> tuple[tuple[str, Mapping[str, Any]], ...]:
        """Each party and arrow in words, and its facts."""
        picture = self.picture
        people = [party for party in picture.parties if party.key != "public"]
        parties = [(f"What {party.within} may learn", picture.facts(party)) for party in people]
        return (*parties, *((picture.line(arrow), picture.facts(arrow)) for arrow in picture.arrows))


class Part(Protocol):
    """A part of a section; `parts.html.j2` renders each kind."""

    kind: ClassVar[str]


@dataclass(frozen=True)
class Section:
    title: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Card:
    """The content of a card."""

    title: str
    sentence: str
    sections: tuple[Section, ...]
    matter: Mapping[str, Any]  # for hubs, see `front_matter`
    alarms: tuple[tuple[str, str], ...] = ()  # shown first; each a bold start and the rest


def pages(card: Card) -> dict[str, str]:
    """Return file name -> the card in this format."""
    return {MARKDOWN: render("card.md.j2", card=card), HTML: render("card.html.j2", card=card)}


def write_card(card: Card, folder: Path) -> None:
    """Write both formats into a folder, replacing older ones; WriteError where the disk refuses.

    Args:
        folder: must exist.
    """
    for name, content in pages(card).items():
        write_text(folder / name, content)


def alarms(guarantee: Guarantee, what: str) -> tuple[tuple[str, str], ...]:
    """Return the alarm, a bold start and the rest, of a guarantee that is void or protects nothing; else none.

    Args:
        what: "run" or "release".
    """
    if guarantee.void is not None:
        reason = f"{guarantee.void}. What follows is what it would have protected."
        return ((f"VOID. This {what} protects nobody:", reason),)
    if guarantee.unprotected:
        return (("NOT PROTECTED.", read_as_is(guarantee, what)),)
    return ()


def read_as_is(guarantee: Guarantee, what: str) -> str:
    """Return the warning of a guarantee that protects nothing.

    Args:
        what: "run" or "release".
    """
    parts = {"features": "features", "label": "labels", "edge": "edges", "edges": "edges", "entry": "edges"}
    covered = guarantee.unit.covers
    read = ", ".join(dict.fromkeys(part for aspect, part in parts.items() if aspect in covered)) or guarantee.unit.text
    return f"This {what} read {read} as they are: keep all of it with those who may see these."


def protected_section(guarantee: Guarantee, trusted: str, *facts: str) -> Section:
    """Return units, relation, epsilon and delta, who must be trusted, and the assumptions.

    Args:
        trusted: who must be trusted, and with what.
        facts: sentences to put first.
    """
    assumes = tuple(f"Assumes: {fact.sentence}" for fact in guarantee.assumes)
    if math.isinf(guarantee.epsilon):
        # No table: under this heading its units would look protected.
        nothing = Paragraph(f"Not {guarantee.unit.text}: epsilon is infinite.", strong=True)
        return Section("What is protected", (nothing, Points((*facts, f"Must be trusted: {trusted}", *assumes))))
    parts = guarantee.parts or (guarantee,)
    # All epsilons on a card are rounded up: a reader may quote them as bounds.
    rows = [Row(_guarantee_cells(part, part.unit.text)) for part in parts]
    if len(parts) > 1:
        rows.append(Row(_guarantee_cells(guarantee, f"together: {guarantee.unit.text}"), strong=True))
    table = Table(("unit", "neighbours differ by", "epsilon", "delta", "trust model"), tuple(rows))
    lines = (*facts, f"Must be trusted: {trusted}", f"Against: {guarantee.against.text}", *assumes)
    return Section("What is protected", (table, Points(lines)))


def exposed_section(lines: tuple[str, ...]) -> Section:
    return Section("What is not protected", (Points(lines),))


def picture_section(picture: Parties) -> Section:
    return Section("Who sees what", (TrustPicture(picture),))


def spent_section(ledger: Ledger) -> Section:
    if not ledger.spends:
        return Section("What was spent", (Paragraph("Nothing was spent: no noise was added."),))
    head = ("step", "unit", "mechanism", "parameters", "epsilon", "delta")
    return Section("What was spent", (Table(head, (*spend_rows(ledger), *total_rows(ledger))),))


def spend_rows(ledger: Ledger) -> tuple[Row, ...]:
    return tuple(
        Row((s.name, s.unit, s.mechanism, text.settings(s.parameters), rounded_up(s.epsilon), rounded_up(s.delta)))
        for s in ledger.spends
    )


def total_rows(ledger: Ledger) -> tuple[Row, ...]:
    """Return what was spent on each unit."""
    units = {spend.unit: ledger.total(spend.unit) for spend in ledger.spends}
    return tuple(
        Row(("total", unit, "", "", rounded_up(epsilon), rounded_up(delta)), strong=True)
        for unit, (epsilon, delta) in units.items()
    )


def _guarantee_cells(part: Guarantee, unit: str) -> tuple[str, ...]:
    return (unit, part.relation, rounded_up(part.epsilon), rounded_up(part.delta), part.model)
