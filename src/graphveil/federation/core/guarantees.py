"""What a federation protects from whom, in words and numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator

from graphveil.federation.core.setting import Setting
from graphveil.privacy import Assumption, Guarantee, Ledger, ProtectedUnit, Spend, assume
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.privacy.statement.observer import FEDERATION_SERVER, LABEL_HOLDER
from graphveil.privacy.statement.unit import PERSON_AND_LIST_AT_HOLDER, PERSON_AT_HOLDER

#: What every mode but "guesses" assumes, what that one assumes in their place, and what all assume.
_TRUSTED = (assume("protocol-followed"), assume("server-colludes-not"))
_ALONE = (assume("holder-randomizes-alone"),)
_AGREED = (assume("shared-ids-public"), assume("agreed-before-data"), assume("runs-add-up"))


def guarantee_of(setting: Setting, *, void: str | None = None) -> Guarantee:
    """Return the guarantee of one holder's published rows over all rounds, or of one person at one holder.

    Args:
        void: why the guarantee does not hold; None where it does.
    """
    mode = setting.mode
    return Guarantee(
        unit=person_of(setting) if setting.per_person else mode.unit,
        relation="replace",
        model="vertical",
        epsilon=setting.privacy.epsilon,
        delta=_delta(setting),
        against=FEDERATION_SERVER if mode.reader == "the server" else LABEL_HOLDER,
        assumes=(*(_ALONE if mode.guesses else _TRUSTED), *_AGREED, mode.opens, *_facts(setting)),
        void=void,
    )


def person_of(setting: Setting) -> ProtectedUnit:
    """Return the unit of one person at one holder, with their own neighbour list where connections are read."""
    return PERSON_AND_LIST_AT_HOLDER if setting.privacy.degree_bound else PERSON_AT_HOLDER


def _facts(setting: Setting) -> Iterator[Assumption]:
    """Yield what is assumed of labels, and of a person or a published row, and what all agreed to leave open."""
    mode, public = setting.mode, setting.price.public
    if math.isfinite(setting.privacy.epsilon_y):
        yield assume("labels-randomized", epsilon=rounded_up(setting.privacy.epsilon_y))
    elif mode.labels is not None:
        yield mode.labels
    if setting.per_person:
        degree = setting.privacy.degree_bound
        yield assume("trains-or-is-guessed")
        yield assume("own-lists-cut", degree=degree) if degree else assume("connections-unread")
        yield assume("one-id-a-person")
        yield assume("label-holder-open")
    else:
        moved = "its holder's network, and so the guesses" if mode.guesses else "the weights, and so the rows"
        yield assume("neighbours-move", hops=setting.model.hops)
        yield assume("training-moves", what=moved)
    yield from mode.assumes
    if public:
        yield assume("no-privacy-chosen", reader=mode.reader)
        yield from mode.assumes_public


def _delta(setting: Setting) -> float:
    # Randomized response is pure: a delta beside it would understate what was promised.
    pure = setting.mode.guesses and not setting.per_person
    return 0.0 if setting.price.public or pure else setting.privacy.delta


def ledger_of(setting: Setting, rounds: int) -> Ledger:
    """Return a holder's ledger after `rounds` publications, of rows (or people) and labels; no spends without noise."""
    delta, unit = _delta(setting), "people" if setting.per_person else "rows"
    budgets = Ledger.open({unit: (setting.privacy.epsilon, delta), "labels": (setting.privacy.epsilon_y, 0.0)})
    spends = []
    if not setting.price.public and rounds:
        spent = min(setting.price.spent(rounds), setting.privacy.epsilon)
        mechanism, facts = _mechanism(setting)
        spends.append(Spend("publications", unit, mechanism, {"publications": rounds, **facts}, spent, delta))
    if math.isfinite(epsilon_y := setting.privacy.epsilon_y):
        spends.append(Spend("labels", "labels", "RandomizedResponse", {"classes": setting.classes}, epsilon_y, 0.0))
    return budgets.spend(*spends) if spends else budgets


def _guess_mechanism(setting: Setting) -> tuple[str, dict[str, float | int]]:
    """Return the mechanism of one guess and its public parameters, as a ledger names them."""
    guess = setting.guessing
    facts: dict[str, float | int] = {"classes": setting.classes, "keep": guess.keep}
    return ("SubsetSelection", {**facts, "size": guess.size}) if guess.size > 1 else ("RandomizedResponse", facts)


def _mechanism(setting: Setting) -> tuple[str, dict[str, float | int]]:
    """Return the mechanism of a holder's publications and its public parameters, as a ledger names them."""
    if setting.per_person:
        price = setting.person_price
        report, facts = _guess_mechanism(setting)
        training = "votes and dp-sgd" if price.votes else "dp-sgd"
        return f"{training}, or {report}", {**price.facts, **facts}
    if setting.mode.guesses:
        return _guess_mechanism(setting)
    publication = setting.publication
    return "Gaussian", {"sigma": publication.sigma, "clip": setting.privacy.clip, "per_round": publication.per_round}
