"""Who sees what: the parties of a run, what they send to each other at which epsilon, and what each can learn.

Nothing about privacy is decided here: every epsilon, delta and unit is that of a part of the guarantee, assumptions and
tests follow from its codes, and what is used without noise follows from `trust.protection`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from graphveil.methods.base.method import RELEASE
from graphveil.methods.registry import METHODS
from graphveil.privacy import Assumption, Guarantee
from graphveil.privacy.accounting.guessing import PRIOR, adversary, guesses_about
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.privacy.statement.observer import OBSERVER_CODES, RELEASE_READERS
from graphveil.privacy.statement.registry import explain_code
from graphveil.reports.base.trust import ASPECTS, parts_of, protection


class State(StrEnum):
    """How data is sent: noisy data has an epsilon, derived data is computed from what arrived before."""

    NOISY = "with noise"
    PLAIN = "as they are"
    SHARES = "secret shares"
    PUBLIC = "public"
    DERIVED = "nothing new"


_COVERS: Final = {"features": {"features"}, "labels": {"label"}, "edges": {"edge", "edges", "entry"}}
#: Aspect -> codes of the assumptions that say that it is used without noise.
_OPEN: Final = {
    "features": ("features-sent-open", "features-published-open", "features-and-labels-open"),
    "labels": ("labels-sent-open", "labels-published-open", "features-and-labels-open"),
    "edges": ("topology-public", "links-sent-open", "edges-published-open"),
}
#: The fields of an arrow that its JSON has unchanged.
_FIELDS: Final = ("source", "target", "mutual", "kind", "state", "epsilon", "delta", "unit")
_ATTACKS: Final = {"features": "attribute", "labels": "membership", "edges": "link-stealing"}


@dataclass(frozen=True, kw_only=True)
class Arrow:
    """What one party sends another.

    Attributes:
        source, target: keys of parties.
        kind: what is sent, in a few words.
        learns: what the target can learn from it.
        epsilon, delta, unit: only of noisy data.
        mutual: whether each sends the other the same kind of data.
        messages: names of the messages.
        assumes: what `learns` rests on.
        shown_by: commands and tests that show it.
    """

    source: str
    target: str
    kind: str
    state: State
    learns: str
    epsilon: float | None = None
    delta: float = 0.0
    unit: str = ""
    mutual: bool = False
    messages: tuple[str, ...] = ()
    assumes: tuple[Assumption, ...] = ()
    shown_by: tuple[str, ...] = ()

    @classmethod
    def between(cls, ends: tuple[str, str], kind: str, state: State, learns: str, **facts: Any) -> Arrow:
        """Return an arrow from the first to the second of `ends`.

        Args:
            ends: keys of two parties.
            kind, state, learns, facts: fields of the class.
        """
        return cls(source=ends[0], target=ends[1], kind=kind, state=state, learns=learns, **facts)

    @property
    def readers(self) -> tuple[str, ...]:
        return (self.source, self.target) if self.mutual else (self.target,)

    @property
    def sees(self) -> str:
        """What arrives: its kind, its messages by name, and its price."""
        messages = f" ({', '.join(self.messages)})" if self.messages else ""
        return f"{self.kind}{messages}, {self.price}"

    @property
    def price(self) -> str:
        """How it is sent, with epsilon, delta and unit where there is noise."""
        if self.epsilon is None:
            return self.state
        delta = f", delta {rounded_up(self.delta)}" if self.delta else ""
        return f"{self.state}, epsilon {rounded_up(self.epsilon)}{delta} for {self.unit}"


@dataclass(frozen=True)
class Party:
    """A party of a run."""

    key: str
    name: str
    holds: str  # what it has, in a few words
    trusted: bool | None = None  # None where the question does not arise
    learns: str = ""  # replaces what arrows say

    @property
    def role(self) -> str:
        """Whether the party is trusted, and what it has."""
        return ("" if self.trusted is None else "trusted: " if self.trusted else "not trusted: ") + self.holds

    @property
    def within(self) -> str:
        """The name inside a sentence."""
        return self.name[0].lower() + self.name[1:]


@dataclass(frozen=True)
class Parties:
    """The picture of trust: parties, in order from the owners of data to the readers of results, and arrows."""

    guarantee: Guarantee
    parties: tuple[Party, ...]
    arrows: tuple[Arrow, ...]

    @property
    def void(self) -> str:
        """Why the guarantee is void; "" where it is valid."""
        return "" if self.guarantee.void is None else f"VOID, nobody is protected: {self.guarantee.void}"

    def party_named(self, key: str) -> Party:
        return next(party for party in self.parties if party.key == key)

    def line(self, arrow: Arrow) -> str:
        """Return an arrow as a line of text."""
        return f"{self.ends(arrow)}: {arrow.kind}, {self.price(arrow)}"

    def ends(self, arrow: Arrow) -> str:
        """Return the two parties of an arrow, in words."""
        source, target = self.party_named(arrow.source), self.party_named(arrow.target)
        return f"{source.name} {'and' if arrow.mutual else 'to'} {target.within}"

    def price(self, arrow: Arrow) -> str:
        """Return the price of an arrow; the epsilon of a void guarantee is marked."""
        return arrow.price + (" (VOID)" if self.void and arrow.epsilon is not None else "")

    def learns(self, party: Party) -> str:
        """Return what a party can learn from all arrows that reach it."""
        reached = self.arrows_to(party)
        sentences = dict.fromkeys(arrow.learns for arrow in reached)
        if len({arrow.unit for arrow in reached if arrow.epsilon is not None}) > 1 and not self.void:
            sentences[f"together: {adversary(self.guarantee)}"] = None
        text = "; ".join(sentences)
        if text.count(PRIOR) > 1:
            text = f"{text.replace(f', where {PRIOR}', '')}; each time, {PRIOR}"
        return party.learns or text or "nothing about anybody else: nothing is sent to it"

    def arrows_to(self, party: Party) -> tuple[Arrow, ...]:
        return tuple(arrow for arrow in self.arrows if party.key in arrow.readers)

    def facts(self, item: Party | Arrow) -> dict[str, Any]:
        """Return what a party or an arrow sees, learns and assumes, and what shows it, as JSON types."""
        arrows = (item,) if isinstance(item, Arrow) else self.arrows_to(item)
        received = [arrow.sees for arrow in arrows]
        sees = "; ".join(received if isinstance(item, Arrow) else [item.holds, *received])
        learns = item.learns if isinstance(item, Arrow) else self.learns(item)
        texts = {fact.code: fact.sentence for arrow in arrows for fact in arrow.assumes}
        if isinstance(item, Party) and item.trusted and self.guarantee.against.code in OBSERVER_CODES:
            texts = {self.guarantee.against.code: OBSERVER_CODES[self.guarantee.against.code].limits}
        # A party that receives nothing is trusted, or no observer: the code of the observer names the tests for that.
        evidence = [name for arrow in arrows for name in arrow.shown_by] or backing_of(self.guarantee.against.code)
        return {
            "sees": sees,
            "learns": learns,
            "assumes": [{"code": code, "text": text} for code, text in texts.items()],
            "shown_by": [name for name in dict.fromkeys(evidence) if name],
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the picture as JSON types, without the drawing."""
        return {
            "void": self.guarantee.void,
            "parties": [
                {"key": p.key, "name": p.name, "holds": p.holds, "trusted": p.trusted, **self.facts(p)}
                for p in self.parties
            ],
            "arrows": [
                {"key": f"arrow-{number}", **{name: getattr(arrow, name) for name in _FIELDS}, **self.facts(arrow)}
                for number, arrow in enumerate(self.arrows, 1)
            ],
        }


def parties_of(
    guarantee: Guarantee,
    method: str,
    settings: Mapping[str, Any],
    *,
    private: Sequence[str] = (),
    release: bool = False,
) -> Parties:
    """Return the picture of a run, a plan or a release.

    Args:
        method, settings: of the run; an unregistered method counts as reading everything.
        private: the parts that the data declare private.
        release: whether the picture is of a released graph, and not of a run.
    """
    entry, states = METHODS.get(method), _states(guarantee, method, settings)
    # A network on a release promises nothing itself: the method that released the graph added the noise.
    promises = entry is not None and entry.trust != "none" and (RELEASE in entry.tags or not _is_release(guarantee))
    sketch = _Sketch(guarantee, states, method if promises else "", tuple(private), release)
    people, middle, readers = _people(guarantee)
    first, second = (people.key, middle.key), (middle.key, readers.key)
    if guarantee.model == "local":
        derived = "no more than the collector: it is computed from what arrived there"
        last = Arrow.between(second, "model and predictions", State.DERIVED, derived, shown_by=(_AFTERWARDS,))
        arrows = (*sketch.arrows(first), last)
    else:
        evidence = backing_of(guarantee.against.code)
        raw = Arrow.between(first, ", ".join(sketch.used), State.PLAIN, _EVERYTHING, shown_by=evidence)
        arrows = (raw, *sketch.arrows(second))
    if not settings.get("start"):
        return Parties(guarantee, (people, middle, readers), arrows)
    public = Party("public", "Public graphs", "open data, of nobody in this run")
    nothing = "nothing of anybody in this run"
    start = Arrow.between(
        (public.key, middle.key), "a reader trained on them", State.PUBLIC, nothing, shown_by=(_STARTS,)
    )
    return Parties(guarantee, (public, people, middle, readers), (start, *arrows))


def uncovered(
    guarantee: Guarantee, method: str, settings: Mapping[str, Any], private: Sequence[str]
) -> tuple[str, ...]:
    """Return the private parts of data that a method reads without noise: no epsilon covers what follows from them.

    Args:
        guarantee: where it is void, all parts are uncovered.
        method, settings, private: as of `parties_of`.
    """
    states = _states(guarantee, method, settings)
    return tuple(part for part in private if guarantee.void is not None or states[part] not in ("yes", "unused"))


def _states(guarantee: Guarantee, method: str, settings: Mapping[str, Any]) -> dict[str, str]:
    entry = METHODS.get(method)
    return protection(guarantee, ASPECTS[:3] if entry is None else entry.reads, settings)


_EVERYTHING: Final = "everything: it holds the raw data"
_AFTERWARDS, _STARTS = "tests/methods/conformance.py", "docs/explanation/pretraining.md"


def _is_release(guarantee: Guarantee) -> bool:
    return guarantee.against == RELEASE_READERS


def _people(guarantee: Guarantee) -> tuple[Party, Party, Party]:
    """Return who has the data, who collects them, and who sees results."""
    if guarantee.model == "local":
        noise = "no noise" if guarantee.unprotected else "the noise itself"
        device = Party("people", "Each person's device", f"has the true values, adds {noise}", trusted=True)
        collector = Party("collector", "The collector", "trains on what arrives", trusted=False)
        return (
            device,
            collector,
            Party("readers", "Everybody it shares with", "reports, model, predictions", trusted=False),
        )
    published = _is_release(guarantee)
    if guarantee.unprotected and not published:
        people = Party("people", "The people", "their data are with whoever trains")
        trainer = Party("curator", "Whoever trains", "holds the raw data, and adds no noise", learns=_EVERYTHING)
        return people, trainer, Party("readers", "Everybody else", "model, predictions")
    people = Party("people", "The people", "their data are with the curator")
    holds = f"holds the raw data, {'publishes once' if published else 'adds the noise'}"
    curator = Party("curator", "The curator", holds, trusted=True, learns=_EVERYTHING)
    if published:
        return people, curator, Party("readers", "The public", "the released graph, for ever", trusted=False)
    return people, curator, Party("readers", "Everybody else", "model, predictions, noisy sums", trusted=False)


@dataclass(frozen=True)
class _Sketch:
    """The arrows that carry people's data."""

    guarantee: Guarantee
    states: Mapping[str, str]  # aspect -> its value in `protection`
    method: str  # for `graphveil audit`; "" where the method promises nothing itself
    private: tuple[str, ...]  # with release: as of `parties_of`
    release: bool

    @property
    def used(self) -> tuple[str, ...]:
        return tuple(aspect for aspect in ASPECTS[:3] if self.states[aspect] != "unused")

    @property
    def trained(self) -> bool:
        """Whether data leave only as a model, neither as reports nor as a graph."""
        return self.guarantee.model == "central" and not _is_release(self.guarantee)

    def arrows(self, ends: tuple[str, str]) -> tuple[Arrow, ...]:
        """Return an arrow for each protected part, and one for all unprotected parts."""
        noisy = [self._noisy(ends, part) for part in parts_of(self.guarantee) if math.isfinite(part.epsilon)]
        if noisy and self.guarantee.assumption("joint-privacy"):
            own = replace(noisy[0], target="people", kind="to each person their own prediction")
            noisy.append(replace(own, learns=f"about anybody else: {own.learns}"))
        plain = [aspect for aspect in self.used if self.states[aspect] == "no"]
        public = self.guarantee.assumption("private-nodes-public")
        return (*noisy, *([self._plain(ends, plain)] if plain else []), *([_public(ends, public)] if public else []))

    def _noisy(self, ends: tuple[str, str], part: Guarantee) -> Arrow:
        aspects = [aspect for aspect in self.used if part.unit.covers & _COVERS[aspect]]
        audit = f"graphveil audit {self.method}" if self.method else ""
        evidence = (audit, *self._attacks(aspects, noisy=True), *backing_of(part.unit.code))
        return noisy_arrow(self.guarantee, ends, self._kind(aspects or [part.unit.text]), part, shown_by=evidence)

    def _plain(self, ends: tuple[str, str], aspects: Sequence[str]) -> Arrow:
        facts = tuple(f for f in self.guarantee.assumes if any(f.code in _OPEN[aspect] for aspect in aspects))
        private = ", ".join(aspect for aspect in aspects if aspect in self.private)
        learns = f"{', '.join(aspects)}: {'possibly ' * self.trained}everything, since no epsilon covers them"
        learns += f", although the data declare them private ({private})" if private else ""
        evidence = (*self._attacks(aspects), *backing_of(*(fact.code for fact in facts)))
        return Arrow.between(ends, self._kind(aspects), State.PLAIN, learns, assumes=facts, shown_by=evidence)

    def _kind(self, names: Sequence[str]) -> str:
        return f"{'model and predictions, made of ' * self.trained}{', '.join(names)}"

    def _attacks(self, aspects: Sequence[str], *, noisy: bool = False) -> tuple[str, ...]:
        if self.release:
            return ("graphveil attack RELEASE --attack published-edges --truth DATA",) if "edges" in aspects else ()
        names = dict(_ATTACKS)
        if noisy and self.guarantee.model == "local":  # reports can be attacked, not only the model
            names["labels"] = "averaging-labels"
        if self.guarantee.assumption("joint-privacy"):  # nobody sees another person's prediction
            names["features"] = names["labels"]
        truth = " --truth DATA" if _is_release(self.guarantee) and not self.method else ""
        return tuple(f"graphveil attack RUN --attack {names[aspect]}{truth}" for aspect in aspects if aspect in names)


def _public(ends: tuple[str, str], fact: Assumption) -> Arrow:
    learns = "which nodes there are, which may have private edges, and all public edges"
    evidence = backing_of(fact.code)
    return Arrow.between(ends, "nodes and public edges", State.PUBLIC, learns, assumes=(fact,), shown_by=evidence)


def noisy_arrow(
    guarantee: Guarantee, ends: tuple[str, str], kind: str, part: Guarantee, *, shown_by: Sequence[str]
) -> Arrow:
    """Return the arrow of a part of a guarantee; it is marked void where the whole guarantee is."""
    unit, epsilon, delta = part.unit.text, part.epsilon, part.delta
    learns = guesses_about(unit, epsilon, delta) if guarantee.void is None else f"anything: VOID, {guarantee.void}"
    price: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "unit": unit}
    return Arrow.between(ends, kind, State.NOISY, learns, assumes=part.assumes, shown_by=tuple(shown_by), **price)


def backing_of(*codes: str) -> tuple[str, ...]:
    """Return the tests and pages that back the codes of units, observers and assumptions."""
    entries = (entry for code in codes for entry in explain_code(code) if entry.code != "other")
    return tuple(re.split("::|#", entry.backed_by)[0] for entry in entries)
