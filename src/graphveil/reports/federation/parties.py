"""Who sees what in a federation: drawn from the messages that the agreed setting sends, and from its guarantee."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from graphveil.federation.core.guarantees import guarantee_of
from graphveil.federation.core.messages import KINDS, LABELS, ONE_KEY
from graphveil.federation.core.mode import ALIGNING
from graphveil.federation.core.setting import Setting
from graphveil.federation.modes.programs import traffic_of
from graphveil.privacy import Guarantee
from graphveil.privacy.statement.unit import USER_LABEL
from graphveil.reports.base.parties import Arrow, Parties, Party, State, backing_of, noisy_arrow

_AUDIT: Final = "graphveil audit federation"
#: Before the run, between all holders; nothing of it is in the traffic of a run.
_AMONG_HOLDERS: Final = tuple(kind for kind in ALIGNING if kind != "aligned")
#: Kinds that are computed from labels, and those that are computed from published rows.
_OF_LABELS: Final = ("hidden-gradient", "embedding-gradient", "training-labels", "kept-round", "best-round")
_OF_ROWS: Final = ("hidden",)
#: Shares of what their reader opens, without noise.
_TO_OPEN: Final = ("opened-share", "hidden-share")
#: Kind of message and who reads it -> the attack on it.
_ATTACKS: Final[Mapping[tuple[str, str], str]] = {
    ("embeddings", "server"): "feature-recovery-server",
    ("noisy-share", "server"): "shares",
    ("hidden-gradient", "server"): "label-inference",
    ("embedding-gradient", "holders"): "label-inference-holder",
    ("opened-share", "labels"): "feature-recovery",
    ("hidden", "labels"): "feature-recovery",
    ("hidden-share", "labels"): "feature-recovery",
    ("guesses", "labels"): "feature-recovery",
}
_MASKED: Final = "masks, keys and masked numbers"
#: Kinds of messages in a few words; all other kinds are `_MASKED`.
_WORDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(ALIGNING, "which ids are shared"),
    **dict.fromkeys(("labelled-rows", "validation-rows"), "who trains and validates"),
    **dict.fromkeys(("kept-round", "best-round"), "the best round"),
    "embeddings": "embeddings",
    "noisy-share": "shares of a noisy sum",
    "hidden": "a hidden layer",
    "hidden-share": "shares of a hidden layer, to be opened",
    **dict.fromkeys(("hidden-gradient", "embedding-gradient"), "gradients"),
    "training-labels": "training labels",
    "guesses": "guesses of classes",
    "opened-share": "shares of the first layer, to be opened",
}
#: State of an arrow -> codes of the assumptions that belong to it.
_FACTS: Final[Mapping[State, tuple[str, ...]]] = {
    State.SHARES: ("protocol-followed", "server-colludes-not"),
    State.PUBLIC: ("shared-ids-public",),
    State.PLAIN: ("labels-in-gradients", "labels-given", "no-privacy-chosen", "sums-in-the-clear", "paper-opened"),
}


def federation_parties(setting: Setting, guarantee: Guarantee | None = None) -> Parties:
    """Return the picture of a federation.

    Args:
        setting: as agreed.
        guarantee: as a party's folder states it; None: the agreed one.
    """
    guarantee = guarantee_of(setting) if guarantee is None else guarantee
    names = ", ".join(name for name in setting.names if name != setting.label_holder)
    holders = Party("holders", "Holders without labels", f"{names}: each has its own raw data")
    labels = Party("labels", "The label holder", f"{setting.label_holder}: has its own raw data, and the labels")
    server = Party("server", "The server", "has no data of its own", trusted=False)
    readers = Party("readers", "Everybody else", "model, predictions", trusted=False)
    first = (server, holders, labels) if setting.mode.guesses else (holders, server, labels)
    return Parties(guarantee, (*first, readers), (*_messages(setting, guarantee), *_results(setting, guarantee)))


def _messages(setting: Setting, guarantee: Guarantee) -> Iterator[Arrow]:
    """Yield one arrow for all messages of one state from one party to another."""
    role = {setting.server: "server", setting.label_holder: "labels"}
    flows = [(flow.sender, flow.receiver, flow.kind) for flow in traffic_of(setting, 10, 2).flows]
    pairs = [(a, b) for a in setting.names for b in setting.names if setting.label_holder in (a, b) and a != b]
    groups: defaultdict[tuple[str, str, State, str], list[str]] = defaultdict(list)
    for sender, target, kind in (*((a, b, kind) for a, b in pairs for kind in _AMONG_HOLDERS), *flows):
        leg = role.get(sender, "holders"), role.get(target, "holders")
        if leg[0] != leg[1]:  # what holders send each other they also send the label holder
            # Gradients that return to the label holder tell it of its own labels.
            state = State.DERIVED if kind in _OF_LABELS and leg[1] == "labels" else _state(kind, guarantee)
            about = "labels" if kind in _OF_LABELS else "ids" if kind in _AMONG_HOLDERS else ""
            groups[(*leg, state, about)].append(kind)
    for (source, target, state, about), kinds in groups.items():
        back = groups.get((target, source, state, about), []) if state in (State.SHARES, State.PUBLIC) else []
        if back and source > target:  # the other direction stands for both
            continue
        messages = tuple(dict.fromkeys((*kinds, *back)))
        arrow = _arrow(guarantee, (source, target), state, messages, of_labels=about == "labels")
        yield replace(arrow, mutual=bool(back))


def _state(kind: str, guarantee: Guarantee) -> State:
    """Return how messages of a kind are protected, by the list of kinds and the guarantee."""
    facts, finite = KINDS[kind], math.isfinite(guarantee.epsilon)
    if kind in _OF_LABELS or (facts.priced and facts.sender == LABELS):
        return State.NOISY if guarantee.assumption("labels-randomized") else State.PLAIN
    if facts.priced:
        return State.NOISY if finite else State.PLAIN
    if kind in _OF_ROWS:
        return State.DERIVED if finite else State.PLAIN
    if facts.reveals.startswith("nothing") or facts.reveals == ONE_KEY:
        return State.SHARES
    return State.PLAIN if kind in _TO_OPEN else State.PUBLIC


def _arrow(
    guarantee: Guarantee, leg: tuple[str, str], state: State, kinds: tuple[str, ...], *, of_labels: bool
) -> Arrow:
    attacks = dict.fromkeys(_ATTACKS[kind, leg[1]] for kind in kinds if (kind, leg[1]) in _ATTACKS)
    evidence = (_AUDIT, *(f"graphveil attack RUN --attack {name} --truth DATA" for name in attacks))
    names = ", ".join(dict.fromkeys(_WORDS.get(kind, _MASKED) for kind in kinds))
    if state == State.NOISY:
        part = _label_part(guarantee) if of_labels else guarantee
        shows = (*evidence, *backing_of("labels-randomized" if of_labels else part.unit.code))
        return replace(noisy_arrow(guarantee, leg, names, part, shown_by=shows), messages=kinds)
    learns = "; ".join(dict.fromkeys(KINDS[kind].reveals for kind in kinds))
    opens = tuple(fact for fact in guarantee.assumes if fact.code.startswith("opens-"))
    facts = tuple(fact for fact in guarantee.assumes if fact.code in _FACTS.get(state, ())) or opens
    backing = backing_of(*(fact.code for fact in (*facts, *opens)))
    return Arrow.between(leg, names, state, learns, messages=kinds, assumes=facts, shown_by=(*evidence, *backing))


def _label_part(guarantee: Guarantee) -> Guarantee:
    """Return the guarantee of one label, with the epsilon that the assumption about labels states."""
    fact = guarantee.assumption("labels-randomized")
    epsilon = math.inf if fact is None else float(dict(fact.facts)["epsilon"])
    return replace(guarantee, unit=USER_LABEL, epsilon=epsilon, delta=0.0, parts=(), assumes=(fact,) if fact else ())


def _results(setting: Setting, guarantee: Guarantee) -> Iterator[Arrow]:
    """Yield what the model and its predictions tell whoever sees them."""
    leg, kind, labels = ("labels", "readers"), "model and predictions", _label_part(guarantee)
    for name, part in ((kind, guarantee), (f"{kind}, made of labels", labels)):
        if math.isfinite(part.epsilon):
            yield noisy_arrow(guarantee, leg, name, part, shown_by=(_AUDIT, *backing_of(part.unit.code)))
    states = {
        guarantee.unit.text: math.isinf(guarantee.epsilon),
        "training labels": math.isinf(labels.epsilon),
        "the label holder's own features and connections": setting.mode.guesses,
    }
    plain = ", ".join(name for name, is_open in states.items() if is_open)
    if plain:
        facts = tuple(fact for fact in guarantee.assumes if fact.code in (*_FACTS[State.PLAIN], "label-holder-open"))
        shows, learns = (
            backing_of(*(fact.code for fact in facts)),
            f"{plain}: possibly everything, no epsilon covers them",
        )
        yield Arrow.between(leg, f"{kind}, made of {plain}", State.PLAIN, learns, assumes=facts, shown_by=shows)
