"""A guarantee in three lines for a terminal: what is hidden from whom, what is not protected, what is assumed.

The card has every detail. Assumptions are only counted here, except those that nobody may miss.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from graphveil.privacy import Guarantee
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.privacy.statement.unit import RELATIONSHIP_OF_ONE
from graphveil.reports.base import trust
from graphveil.runtime.words import count_of

#: code -> a short name of the observer, so that a unit and its epsilons fit on the same line.
SHORT_OBSERVERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "server-and-model": "server and its recipients",
        "all-but-curator": "all but the curator",
        "release-readers": "all readers of the release",
        "federation-server": "server and model users",
        "label-holder": "label holder and model users",
    }
)
#: code -> a short name of a unit whose own text fills a line.
SHORT_UNITS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "one-edge-entry": "one entry of an undirected edge",
        "one-node-own-list": "one node's features, label and own list",
        "one-person-and-list-at-one-holder": "one person's features, label and own list at one holder",
    }
)
#: code -> an assumption to show before the card: where it fails, there is no guarantee.
ABOVE_ALL: Final[Mapping[str, str]] = MappingProxyType(
    {
        "asymptotic": "asymptotic, no finite-time guarantee",
        "server-colludes-not": "the server colludes with no holder",
        "protocol-followed": "all parties follow the protocol",
        "holder-randomizes-alone": "each holder's own program adds the noise",
        "joint-privacy": "a node's prediction is for that node alone",
        "degree-promised": "the degree bound was promised",
        "changes-open": "that a value changed is NOT hidden",
        "others-declared": "that these people are new was declared, not checked",
        "rows-declared": "which row is whose was declared, not checked",
        "start-public": "the given weights were trained without these data",
        "statistics-public": "the statistics of answers are public",
        "extractor-public": "the feature extractor is public and never saw these data",
        "proxy-public": "the proxy is public and shares nobody with these data",
        "reports-handed-in": "reports that were handed in are not paid for here",
    }
)


@dataclass(frozen=True)
class Brief:
    """The three lines, without their headings."""

    guarantee: str  # what is hidden from whom
    exposed: str  # what is not protected
    assumes: str


def brief_of(guarantee: Guarantee, exposed: Sequence[str], *, card: str, relationship: float | None = None) -> Brief:
    """Return the three lines.

    Args:
        exposed: the lines of a card; the text before the colon is the short form.
        card: the file with every detail.
        relationship: epsilon of one undirected relationship; None where edges are not private.
    """
    protected = _claim(guarantee, (guarantee,))
    # The epsilon of a whole relationship, unless the claim states it.
    priced = {part.epsilon for part in trust.parts_of(guarantee) if part.unit.covers_connections} | {math.inf}
    if guarantee.protects and relationship is not None and relationship not in priced:
        protected += f"; one relationship: {rounded_up(relationship)}"
    return Brief(protected, open_parts(exposed), f"{assumption_summary(guarantee)} -> {card}")


def claim(guarantees: Sequence[Guarantee]) -> str:
    """What is hidden from whom, for guarantees of one promise: with the least and the largest epsilon."""
    # The epsilons of void guarantees must not appear in what the valid ones promise.
    holds = [guarantee for guarantee in guarantees if not guarantee.void] or guarantees
    return _claim(holds[0], holds)


def open_parts(exposed: Sequence[str]) -> str:
    """What is not protected, in short: the text before the colon of each line of a card."""
    heads = (line.partition(":")[0].rstrip(".") for line in exposed)
    return "; ".join(dict.fromkeys(head[:1].lower() + head[1:] for head in heads))


def assumption_summary(guarantee: Guarantee) -> str:
    """How many facts a guarantee assumes, and those that nobody may miss."""
    count = len(guarantee.assumes)
    facts = count_of(count, "fact") if count else "nothing more"
    first = "; ".join(ABOVE_ALL[fact.code] for fact in guarantee.assumes if fact.code in ABOVE_ALL)
    return f"{facts}{f' (above all: {first})' if first else ''}"


def _claim(guarantee: Guarantee, guarantees: Sequence[Guarantee]) -> str:
    if guarantee.void:
        return f"NONE, this run protects nobody: {guarantee.void}"
    # An observer without a short name is named in full: a long line is better than a wrong one.
    observers = SHORT_OBSERVERS.get(guarantee.against.code, guarantee.against.text)
    if math.isinf(guarantee.epsilon):
        return f"NONE, {observers} may learn {_unit(guarantee)} exactly (epsilon = inf)"
    prefix = "" if guarantee.unit.is_person else "not a person but "
    deltas = [guarantee_part.delta for guarantee_part in guarantees]
    delta = f", delta {_epsilon_range(deltas)}" if any(deltas) else ""
    return f"{prefix}{_units_with_epsilons(guarantees)}{delta}, against {observers}"


def _unit(guarantee: Guarantee) -> str:
    unit = guarantee.unit
    if unit.count > 1 and unit == RELATIONSHIP_OF_ONE.times(unit.count):
        return f"up to {unit.count} relationships of one person"
    return SHORT_UNITS.get(unit.code, unit.text)


def _units_with_epsilons(guarantees: Sequence[Guarantee]) -> str:
    """Return unit and epsilon; with several parts also the total, so that no part's epsilon is taken for it."""
    total = f"epsilon {_epsilon_range([guarantee.epsilon for guarantee in guarantees])}"
    parts = tuple(zip(*map(trust.parts_of, guarantees), strict=True))
    if len(parts) == 1:
        return f"{_unit(guarantees[0])}: {total}"
    *first, last = map(_part, parts)
    return f"one person's {', '.join(first)} and {last}: {total} together"


def _part(guarantees: Sequence[Guarantee]) -> str:
    unit = guarantees[0].unit
    # ONE in capitals, so that nobody takes it for all connections of a person.
    epsilons = _epsilon_range([part.epsilon for part in guarantees])
    return f"{'ONE ' if unit.is_connection else ''}{unit.heading} ({epsilons})"


def _epsilon_range(epsilons: Sequence[float]) -> str:
    return " to ".join(dict.fromkeys((rounded_up(min(epsilons)), rounded_up(max(epsilons)))))
