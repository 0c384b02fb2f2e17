"""What a federation protects from whom, in words and numbers."""

from __future__ import annotations

import math

from graphveil.federation.publication import UNIT
from graphveil.federation.setting import MODES, Setting
from graphveil.privacy import Guarantee, Ledger, Spend

_ASSUMED = (
    "all parties follow the protocol and only then are curious",
    "the server colludes with no holder: together they could read all features",
    "which ids all holders share, how many ids each has, and who is labelled are public",
    "the range of features, the number of columns, classes and rounds are agreed before anybody's data is read",
)
_WHO = {
    "shared-linear": "the server",
    "individual": "the server and the holders",
    "paper": "the server and the holders",
}
_OPENED = "paper mode was chosen although it opens features to the other holders"
_NEIGHBOURS = "a person who changes also changes the rows of neighbours up to {hops} hops away: those are other units"


def guarantee_of(setting: Setting, *, void: str | None = None) -> Guarantee:
    """Return the guarantee of one holder's published rows over all rounds, and of labels where they are randomized."""
    labels = (
        f"labels were randomized once: one label costs epsilon {setting.epsilon_y:g} against everybody but its holder"
        if math.isfinite(setting.epsilon_y)
        else f"{_WHO[setting.mode]} can learn the labels of training nodes, up to their names, from gradients"
    )
    return Guarantee(
        unit=UNIT,
        relation="replace",
        model="vertical",
        epsilon=setting.epsilon,
        delta=0.0 if setting.publication.public else setting.delta,
        against="the server, and everybody who sees the trained model or its predictions",
        assumes=(
            *_ASSUMED,
            MODES[setting.mode],
            labels,
            _NEIGHBOURS.format(hops=setting.hops),
            *((_OPENED,) if setting.mode == "paper" else ()),
            *(("no privacy against the server was chosen",) if setting.publication.public else ()),
        ),
        void=void,
    )


def ledger_of(setting: Setting, rounds: int) -> Ledger:
    """Return a holder's ledger after `rounds` publications; empty where nothing is protected."""
    found = Ledger.open({"rows": (setting.epsilon, setting.delta), "labels": (setting.epsilon_y, 0.0)})
    spends = []
    publication = setting.publication
    if not publication.public and rounds:
        facts = {
            "publications": rounds,
            "sigma": publication.sigma,
            "clip": setting.clip,
            "per_round": publication.per_round,
        }
        spent = min(publication.spent(rounds), setting.epsilon)
        spends.append(Spend("publications", "rows", "Gaussian", facts, spent, setting.delta))
    if math.isfinite(setting.epsilon_y):
        spends.append(
            Spend("labels", "labels", "RandomizedResponse", {"classes": setting.classes}, setting.epsilon_y, 0.0)
        )
    return found.spend(*spends) if spends else found
