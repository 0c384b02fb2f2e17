"""What a federation protects from whom, in words and numbers."""

from __future__ import annotations

import math

from graphveil.federation.core.setting import Setting
from graphveil.privacy import Assumption, Guarantee, Ledger, ProtectedUnit, Spend, assume
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.privacy.statement.assumption import OPENS
from graphveil.privacy.statement.observer import FEDERATION_SERVER, LABEL_HOLDER
from graphveil.privacy.statement.unit import EMBEDDING_ROW, GUESS, PERSON_AND_LIST_AT_HOLDER, PERSON_AT_HOLDER

_TRUSTED = (assume("protocol-followed"), assume("server-colludes-not"))
_ALONE = (assume("holder-randomizes-alone"),)
_AGREED = (assume("shared-ids-public"), assume("agreed-before-data"), assume("runs-add-up"))
#: Who reads the labels of training nodes from gradients, in each mode that does not send them.
_WHO = {
    "shared-linear": "the server",
    "individual": "the server and the holders",
    "paper": "the server and the holders",
}


def guarantee_of(setting: Setting, *, void: str | None = None) -> Guarantee:
    """Return the guarantee of one holder's published rows over all rounds, or of one person at one holder.

    Args:
        setting: the agreed run. void: why it does not hold, or None.
    """
    guesses = setting.protocol.mode == "guesses"
    return Guarantee(
        unit=person_of(setting) if setting.person else GUESS if guesses else EMBEDDING_ROW,
        relation="replace",
        model="vertical",
        epsilon=setting.privacy.epsilon,
        delta=_delta(setting),
        against=LABEL_HOLDER if guesses else FEDERATION_SERVER,
        assumes=(
            *(_ALONE if guesses else _TRUSTED),
            *_AGREED,
            OPENS[setting.protocol.mode],
            _labels(setting),
            *(_of_person(setting) if setting.person else _moving(setting)),
            *_chosen(setting),
        ),
        void=void,
    )


def person_of(setting: Setting) -> ProtectedUnit:
    """Return what one person at one holder is: with their own list, where connections are read."""
    return PERSON_AND_LIST_AT_HOLDER if setting.privacy.degree_bound else PERSON_AT_HOLDER


def _of_person(setting: Setting) -> tuple[Assumption, ...]:
    degree = setting.privacy.degree_bound
    read = assume("own-lists-cut", degree=degree) if degree else assume("connections-unread")
    return assume("trains-or-is-guessed"), read, assume("one-id-a-person"), assume("label-holder-open")


def _moving(setting: Setting) -> tuple[Assumption, ...]:
    guesses = setting.protocol.mode == "guesses"
    moved = "its holder's network, and so the guesses" if guesses else "the weights, and so the rows"
    return assume("neighbours-move", hops=setting.model.hops), assume("training-moves", what=moved)


def _chosen(setting: Setting) -> list[Assumption]:
    assumptions = [assume("paper-opened")] if setting.protocol.mode == "paper" else []
    if setting.price.public:
        assumptions.append(assume("no-privacy-chosen", reader=setting.reader))
    if setting.price.public and setting.protocol.mode == "shared-linear":
        assumptions.append(assume("sums-in-the-clear"))
    return assumptions


def _delta(setting: Setting) -> float:
    # Randomized response is pure: a delta beside it would understate what was promised.
    pure = setting.protocol.mode == "guesses" and not setting.person
    return 0.0 if setting.price.public or pure else setting.privacy.delta


def _labels(setting: Setting) -> Assumption:
    if math.isfinite(setting.privacy.epsilon_y):
        return assume("labels-randomized", epsilon=rounded_up(setting.privacy.epsilon_y))
    if setting.protocol.mode == "guesses":
        return assume("labels-given")
    return assume("labels-in-gradients", who=_WHO[setting.protocol.mode])


def ledger_of(setting: Setting, rounds: int) -> Ledger:
    """Return a holder's ledger after `rounds` publications; its budgets are rows (or people, where they are the unit)
    and labels, without spends where nothing is protected.
    """
    delta, unit = _delta(setting), "people" if setting.person else "rows"
    budgets = Ledger.open({unit: (setting.privacy.epsilon, delta), "labels": (setting.privacy.epsilon_y, 0.0)})
    spends = []
    if not setting.price.public and rounds:
        spent = min(setting.price.spent(rounds), setting.privacy.epsilon)
        mechanism, facts = _mechanism(setting)
        spends.append(Spend("publications", unit, mechanism, {"publications": rounds, **facts}, spent, delta))
    if math.isfinite(epsilon_y := setting.privacy.epsilon_y):
        spends.append(Spend("labels", "labels", "RandomizedResponse", {"classes": setting.classes}, epsilon_y, 0.0))
    return budgets.spend(*spends) if spends else budgets


def _report(setting: Setting) -> tuple[str, dict[str, float | int]]:
    guess = setting.guessing
    facts: dict[str, float | int] = {"classes": setting.classes, "keep": guess.keep}
    return ("SubsetSelection", {**facts, "size": guess.size}) if guess.size > 1 else ("RandomizedResponse", facts)


def _mechanism(setting: Setting) -> tuple[str, dict[str, float | int]]:
    if setting.person:
        paid = setting.of_person
        report, facts = _report(setting)
        trained = "votes and dp-sgd" if paid.votes else "dp-sgd"
        return f"{trained}, or {report}", {**paid.facts, **facts}
    if setting.protocol.mode == "guesses":
        return _report(setting)
    publication = setting.publication
    return "Gaussian", {"sigma": publication.sigma, "clip": setting.privacy.clip, "per_round": publication.per_round}
