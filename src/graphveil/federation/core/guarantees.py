"""What a federation protects from whom, in words and numbers."""

from __future__ import annotations

import math

from graphveil.federation.core.publication import GUESS_UNIT, UNIT
from graphveil.federation.core.setting import MODES, Setting
from graphveil.privacy import Guarantee, Ledger, Spend
from graphveil.privacy.printed import rounded_up

_TRUSTED = (
    "all parties follow the protocol and only then are curious",
    "the server colludes with no holder: together they could read all features",
)
_ALONE = ("each holder's own program randomizes its guesses: nobody else is trusted, whoever colludes",)
_ASSUMED = (
    "which ids all holders share, how many ids each has, and who is labelled are public",
    "the range of features, the number of columns, classes and rounds are agreed before anybody's data is read",
    "a run under another agreement asks the same people again: the epsilons of all runs add up",
)
_WHO = {
    "shared-linear": "the server",
    "individual": "the server and the holders",
    "paper": "the server and the holders",
}
_OPENED = "paper mode was chosen although it opens features to the other holders"
_CLEAR = (
    "without noise the server can tell after two rounds whose propagated features are alike, and with as many known "
    "people as there are columns it solves for everybody's"
)
_NEIGHBOURS = "a person who changes also changes the rows of neighbours up to {hops} hops away: those are other units"
_TRAINING = "a node that trains also moves {what} of all nodes: other units again"
_MOVED = {True: "its holder's network, and so the guesses", False: "the weights, and so the rows"}
_GIVEN = "the labels of training nodes are given to all holders as they are"


def guarantee_of(setting: Setting, *, void: str | None = None) -> Guarantee:
    """Return the guarantee of one holder's published rows over all rounds, and of labels where they are randomized."""
    guesses = setting.mode == "guesses"
    return Guarantee(
        unit=GUESS_UNIT if guesses else UNIT,
        relation="replace",
        model="vertical",
        epsilon=setting.epsilon,
        delta=_delta(setting),
        against=f"{setting.reader}, and everybody who sees the trained model or its predictions",
        assumes=(
            *(_ALONE if guesses else _TRUSTED),
            *_ASSUMED,
            MODES[setting.mode],
            _labels(setting),
            _NEIGHBOURS.format(hops=setting.hops),
            _TRAINING.format(what=_MOVED[guesses]),
            *((_OPENED,) if setting.mode == "paper" else ()),
            *((f"no privacy against {setting.reader} was chosen",) if setting.price.public else ()),
            *((_CLEAR,) if setting.price.public and setting.mode == "shared-linear" else ()),
        ),
        void=void,
    )


def _delta(setting: Setting) -> float:
    return 0.0 if setting.price.public or setting.mode == "guesses" else setting.delta


def _labels(setting: Setting) -> str:
    if math.isfinite(setting.epsilon_y):
        price = f"{rounded_up(setting.epsilon_y)}"
        return f"labels were randomized once: one label costs epsilon {price} against everybody but its holder"
    if setting.mode == "guesses":
        return _GIVEN
    return f"{_WHO[setting.mode]} can learn the labels of training nodes, up to their names, from gradients"


def ledger_of(setting: Setting, rounds: int) -> Ledger:
    """Return a holder's ledger after `rounds` publications; empty where nothing is protected."""
    delta = _delta(setting)
    found = Ledger.open({"rows": (setting.epsilon, delta), "labels": (setting.epsilon_y, 0.0)})
    spends = []
    if not setting.price.public and rounds:
        spent = min(setting.price.spent(rounds), setting.epsilon)
        mechanism, facts = _mechanism(setting)
        spends.append(Spend("publications", "rows", mechanism, {"publications": rounds, **facts}, spent, delta))
    if math.isfinite(setting.epsilon_y):
        spends.append(
            Spend("labels", "labels", "RandomizedResponse", {"classes": setting.classes}, setting.epsilon_y, 0.0)
        )
    return found.spend(*spends) if spends else found


def _mechanism(setting: Setting) -> tuple[str, dict[str, float | int]]:
    """Return what makes the noise, and its parameters."""
    if setting.mode == "guesses":
        return "RandomizedResponse", {"classes": setting.classes, "keep": setting.guessing.keep}
    publication = setting.publication
    return "Gaussian", {"sigma": publication.sigma, "clip": setting.clip, "per_round": publication.per_round}
