"""What an epsilon refers to: who is trusted, what is protected, and which epsilons may be compared.

Two epsilons are comparable only where the same people are trusted, and unit, relation and observers are the same. Such
runs have one :class:`Promise`; all other runs are shown in separate groups.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from graphveil.privacy import Guarantee, Ledger, Observer, ProtectedUnit, compose, several, together
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.privacy.statement.guarantee import not_a_person
from graphveil.privacy.statement.observer import RELEASE_READERS
from graphveil.privacy.statement.unit import EDGE_ENTRY, LIST_ENTRY, RELATIONSHIP, UNDIRECTED_EDGE
from graphveil.reports.base.text import number
from graphveil.runtime.words import count_of

#: trust -> who is trusted, in the order in which groups are shown.
HEADS: Final[Mapping[str, str]] = {
    "local": "Nobody is trusted: every device adds its own noise",
    "vertical": "Organisations and a server: each keeps its own data and follows the protocol",
    "central": "A curator is trusted: it holds the data as they are",
    "release": "A curator is trusted once: what it publishes is public for ever",
    "none": "Nothing is protected: whoever trains sees everything",
}
ASPECTS: Final = ("features", "labels", "edges", "whole person")
MEASURED: Final = (
    "Accuracies, lift and attack figures are measured on the true data: no epsilon here covers them, so think before "
    "you hand them on."
)
LEGEND: Final = (
    "yes: protected; partly: in part; no: used as it is; unused: not even read. Whole person: that somebody takes part "
    "at all, with all their data."
)


@dataclass(frozen=True)
class Part:
    """What one epsilon protects."""

    unit: ProtectedUnit
    relation: str  # how it may change: "replace" or "add/remove"

    @property
    def short(self) -> str:
        """The unit in a word or two, for the heading of a column."""
        return self.unit.heading


@dataclass(frozen=True)
class Promise:
    """What runs must share for their epsilons to be comparable."""

    trust: str  # a key of HEADS
    parts: tuple[Part, ...]  # none where nothing is protected
    against: Observer | None  # None where nothing is protected

    @classmethod
    def of(cls, guarantee: Guarantee) -> Promise:
        """What a run promises, whether or not the guarantee is void."""
        if math.isinf(guarantee.epsilon):
            return cls("none", (), None)
        parts = tuple(Part(part.unit, part.relation) for part in parts_of(guarantee))
        released = guarantee.against == RELEASE_READERS
        return cls("release" if released else guarantee.model, parts, guarantee.against)

    @property
    def observers(self) -> str:
        return "nobody" if self.against is None else self.against.text

    @property
    def unit(self) -> str:
        return " and ".join(part.unit.text for part in self.parts) or "nothing"

    @property
    def protected(self) -> str:
        """One line: whether it is less than a person, then what is protected under which change, against whom."""
        if not self.parts:
            return "Protected: nothing."
        protected = []
        for relation, parts in itertools.groupby(self.parts, key=lambda part: part.relation):
            change = "it may change" if relation == "replace" else "it may be added or removed"
            protected.append(f"{' and '.join(part.unit.text for part in parts)} ({change})")
        sentence = f"Protected: {', and '.join(protected)}; against {self.observers}."
        combined = together(part.unit for part in self.parts)
        return sentence if combined.is_person else f"{not_a_person(combined)} {sentence}"


def parts_of(guarantee: Guarantee) -> tuple[Guarantee, ...]:
    """The smallest parts of a guarantee, composed by unit and relation; the guarantee itself if it has no parts."""
    parts: dict[Part, list[Guarantee]] = {}
    for part in _leaves(guarantee):
        parts.setdefault(Part(part.unit, part.relation), []).append(part)
    return tuple(same[0] if len(same) == 1 else compose(same) for same in parts.values())


def _leaves(guarantee: Guarantee) -> tuple[Guarantee, ...]:
    """The parts of a guarantee that have no parts themselves."""
    return tuple(leaf for part in guarantee.parts for leaf in _leaves(part)) or (guarantee,)


def protection(guarantee: Guarantee, reads: Sequence[str], settings: Mapping[str, Any]) -> dict[str, str]:
    """For each of ASPECTS: "yes" (protected), "partly", "no" (used as it is) or "unused" (not even read).

    Args:
        reads: the aspects that the method reads.
        settings: epsilon_x is None where features are not collected.
    """
    promise = Promise.of(guarantee)
    states = dict.fromkeys(ASPECTS, "no")
    for part in promise.parts:
        aspect = {"features": "features", "label": "labels"}.get(part.unit.kind)
        states |= {aspect: "yes"} if aspect else {}
        states |= {"edges": "yes"} if part.unit.is_connection else {}
    for unit in (part.unit for part in promise.parts if part.unit.is_node):
        edges = "yes" if unit.is_person else "partly"
        states |= {"features": "yes", "labels": "yes", "edges": edges, "whole person": edges}
    if promise.trust == "vertical":  # a person's row, not the rows of neighbours that its features reach
        states |= {"features": "partly"}
        states |= {"labels": "yes"} if guarantee.assumption("labels-randomized") else {}
    unused = {aspect for aspect in ASPECTS[:3] if aspect not in reads}
    unused |= {"features"} if "epsilon_x" in settings and settings["epsilon_x"] is None else set()
    return states | dict.fromkeys(sorted(unused), "unused")


def conversions(guarantee: Guarantee, relationship: float | None) -> tuple[dict[str, Any], ...]:
    """What a guarantee implies for other units, by the method and the accountant: unit, epsilon, delta, why.

    Args:
        relationship: the epsilon of one relationship by the method's own accounting, or None.
    """
    prices = []
    for part in parts_of(guarantee):
        if part.unit.kind == "node and own list" and math.isfinite(part.epsilon):
            two = several(part, 2)
            prices.append(_conversion(RELATIONSHIP.text, two.epsilon, two.delta, "it is in the lists of two nodes"))
        if not part.unit.is_connection or math.isinf(part.epsilon):
            continue
        if part.unit.count > 1 and relationship is not None:
            why = "the same noise, for one of them"
            prices.append(_conversion(RELATIONSHIP.text, relationship, part.delta, why))
            continue
        relationship_part = part
        assumption = part.assumption("both-ends-report")
        if assumption is not None:
            prices.append(_conversion(LIST_ENTRY.text, part.epsilon / 2, part.delta, assumption.sentence))
        if relationship is not None and math.isfinite(relationship) and not math.isclose(relationship, part.epsilon):
            relationship_part = replace(part, unit=RELATIONSHIP, epsilon=relationship)
            why = "both entries of an undirected edge, by the method's own accounting"
            prices.append(_conversion(RELATIONSHIP.text, relationship, part.delta, why))
        two = several(relationship_part, 2)
        plural = "relationships" if relationship_part is not part else f"{part.unit.heading}s"
        prices.append(_conversion(f"two {plural} of one person at once", two.epsilon, two.delta, "group privacy"))
    return tuple(prices)


def _conversion(unit: str, epsilon: float, delta: float, why: str) -> dict[str, Any]:
    return {"unit": unit, "epsilon": epsilon, "delta": delta, "why": why}


def conversion_text(price: Mapping[str, Any]) -> str:
    """``one relationship: 2.83``, or that nothing is promised, for an infinite epsilon."""
    return f"{price['unit']}: {price_text(price)}"


def price_text(price: Mapping[str, Any]) -> str:
    """``2.83 (delta 1e-05)`` or ``nothing is promised``."""
    if math.isinf(price["epsilon"]):
        return "nothing is promised"
    return rounded_up(price["epsilon"]) + (f" (delta {rounded_up(price['delta'], 2)})" if price["delta"] else "")


def collection_count(ledger: Ledger, promise: Promise) -> str:
    """How often private data are read for one run, in words.

    Args:
        ledger: its parameters say how often the run published or trained.
        promise: says who collects.
    """
    if promise.trust == "none":
        return "as often as one likes"
    facts = [spend.parameters for spend in ledger.spends]
    rounds = max((int(fact["publications"]) for fact in facts if "publications" in fact), default=0)
    trials = max((float(fact["mean_trials"]) for fact in facts if "mean_trials" in fact), default=0.0)
    if rounds:
        return count_of(rounds, "publication")
    if promise.trust == "release":
        return "one release"
    if promise.trust != "central":
        # One spend for each report of everybody.
        most = max(Counter(spend.unit for spend in ledger.spends).values(), default=1)
        return "one report a person" if most == 1 else f"up to {most} reports a person"
    once = f"about {number(trials)} trainings" if trials else "one training"
    # The first spend is the training; each further one is a prediction for other people.
    predictions = max(len(ledger.spends) - 1, 0)
    return once if not predictions else f"{once}, {count_of(predictions, 'more prediction')}"


def comparability(
    promises: Sequence[Promise], epsilons: Sequence[float], open_aspects: Sequence[Sequence[str]]
) -> list[str]:
    """Which epsilons may be compared and which may not, in sentences; groups are called A, B, ... in order.

    Args:
        epsilons: one of each group, for the example.
        open_aspects: the unprotected aspects of each group.
    """
    protected = [group for group, promise in enumerate(promises) if promise.parts]
    if not protected:
        return []
    sentences = [
        "By epsilon compare rows of one group only, and of one delta: they trust the same people and protect the same "
        "unit under the same change from the same observers."
    ]
    pair = next(
        (pair for pair in itertools.combinations(protected, 2) if _unrelated(promises[pair[0]], promises[pair[1]])),
        next(itertools.combinations(protected, 2), None),
    )
    if pair is not None:
        left, right = sorted(pair, key=lambda group: -len(open_aspects[group]))
        price = rounded_up(epsilons[left])
        sentences.append(
            f"Across groups no epsilon is larger or smaller than another. {letter(left)}'s {price}, for "
            f"{_described(promises[left], open_aspects[left])}, is neither a weaker nor a stronger promise than "
            f"{price} would be in {letter(right)}, for {_described(promises[right], open_aspects[right])}: "
            f"{_differences(promises[left], promises[right])}."
        )
    for left, right in itertools.combinations(protected, 2):
        first, second = promises[left], promises[right]
        shared = [part.short for part in first.parts if part in second.parts]
        if shared and (first.trust, first.against) == (second.trust, second.against):
            sentences.append(
                f"{letter(left)} and {letter(right)} both protect {_enumerated(shared)}: what that alone costs may be "
                "compared between them."
            )
        if _counts_entries(first, second) or _counts_entries(second, first):
            entries, edges = (left, right) if _counts_entries(first, second) else (right, left)
            sentences.append(
                f"{letter(entries)} counts one of the two entries of an undirected edge. What its rows say of one "
                f"relationship, both entries, may be compared with {letter(edges)}'s epsilon at the same delta."
            )
    return sentences


def _described(promise: Promise, open_aspects: Sequence[str]) -> str:
    return promise.unit + (f" with {_enumerated(open_aspects)} unprotected" if open_aspects else "")


def _counts_entries(first: Promise, second: Promise) -> bool:
    """Whether the first promise is for single entries of undirected edges, and the second for whole edges."""
    same = (first.trust, first.against) == (second.trust, second.against)
    # Only this pair of units has a conversion by the method's own accounting.
    units = [tuple(part.unit for part in promise.parts) for promise in (first, second)]
    return same and units == [(EDGE_ENTRY,), (UNDIRECTED_EDGE,)]


def letter(index: int) -> str:
    """The name of a group by its index: A, B, ..., Z, group 27."""
    return chr(ord("A") + index) if index < 26 else f"group {index + 1}"


def _unrelated(first: Promise, second: Promise) -> bool:
    return first.trust != second.trust and not set(first.parts) & set(second.parts)


def _differences(first: Promise, second: Promise) -> str:
    why = []
    if {part.unit for part in first.parts} != {part.unit for part in second.parts}:
        why.append("other units")
    if first.trust != second.trust:
        why.append("other people are trusted")
    if {part.relation for part in first.parts} != {part.relation for part in second.parts}:
        why.append("another change")
    if first.against != second.against:
        why.append("other observers")
    return _enumerated(why)


def _enumerated(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
