"""Attacks on a federation by name: who looks, at what, in the agreed run and in the naive design beside it.

All of them are an experiment by somebody who holds the data of all holders, never something that parties run together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from graphveil.attacks.federation.features import feature_recovery, rows_alike
from graphveil.attacks.federation.labels import label_inference
from graphveil.attacks.federation.shares import low_bits, require_shares, shares
from graphveil.attacks.federation.views import Message, Recorded, agreed_rounds, naive, record
from graphveil.attacks.result import AttackResult
from graphveil.errors import InputError
from graphveil.federation.core.setting import Setting
from graphveil.federation.crypto import ring
from graphveil.federation.modes.holder import Holding
from graphveil.privacy import Randomness

_EXPERIMENT = "an experiment on all holders' true data: not covered by any epsilon"


@dataclass(frozen=True)
class FederationAttack:
    """One line about an attack on a federation, who looks, and the attack: (view, truth, seed=, and what it `reads`).
    With `bare` the naive design is the agreed one with bare shares, and not the opened layer.
    """

    summary: str
    spy: str
    run: Callable[..., AttackResult]
    reads: tuple[str, ...]
    bare: bool = False


#: Who looks: the server, the label holder, or the first holder without labels, whose features are the secret.
SERVER, LABELS, OTHER = "server", "label holder", "holder without labels"
_LABELS, _FEATURES = (label_inference, ("nodes",)), (feature_recovery, ("victim",))
_ALIKE = rows_alike, ("victim", "nodes")
FEDERATION_ATTACKS: Mapping[str, FederationAttack] = MappingProxyType(
    {
        "label-inference": FederationAttack("labels, from the gradients that reach the server", SERVER, *_LABELS),
        "label-inference-holder": FederationAttack("the same by a holder without labels", OTHER, *_LABELS),
        "feature-recovery": FederationAttack("another holder's features, by the label holder", LABELS, *_FEATURES),
        "feature-recovery-server": FederationAttack("the same by the server", SERVER, *_FEATURES),
        "gram": FederationAttack("who is alike at another holder, by the label holder", LABELS, *_ALIKE),
        "gram-server": FederationAttack("the same by the server", SERVER, *_ALIKE),
        "shares": FederationAttack(
            "who is alike, from shares and what was dealt", SERVER, shares, ("people",), bare=True
        ),
        "low-bits": FederationAttack(
            "propagated features, from bits below the noise's steps", SERVER, low_bits, ("people",), bare=True
        ),
    }
)


def require_federation_attack(name: str) -> FederationAttack:
    """Return an attack by name; InputError where no attack on a federation has that name."""
    if name not in FEDERATION_ATTACKS:
        raise InputError(f"attack {name!r} does not apply to a federation", allowed=", ".join(FEDERATION_ATTACKS))
    return FEDERATION_ATTACKS[name]


def simulate_run(
    setting: Setting,
    holdings: Mapping[str, Holding],
    *,
    randomness: Randomness,
    seed: int = 0,
    unprotected: bool = False,
    name: str | None = None,
) -> Recorded:
    """Simulate the agreed run, or with `unprotected` the naive design on the same data, and keep what is sent.

    Args:
        holdings: what each holder has, rows in one order.
        name: the attack that it is for, which may have a naive design of its own; None: the opened first layer.

    Raises:
        InputError: an attack that does not fit the setting.
    """
    if name is not None and FEDERATION_ATTACKS[name].bare:
        require_shares(setting, name)
        if unprotected:
            run = record(setting, holdings, randomness=randomness, seed=seed, rounds=agreed_rounds(setting))
            return bare(run, randomness=randomness)
    setting, rounds = (naive(setting), None) if unprotected else (setting, agreed_rounds(setting))
    return record(setting, holdings, randomness=randomness, seed=seed, rounds=rounds, states=unprotected)


def attack_federation(
    name: str, recorded: Recorded, *, nodes: int = 500, seed: int = 0, unprotected: bool = False
) -> AttackResult:
    """Return what an attack finds in a simulated run; InputError where the attack cannot judge the data.

    Args:
        recorded: of `simulated`, with the same `unprotected` and, where that is set, this name.
        nodes: among how many people's pairs pairs are judged.
    """
    chosen, setting = require_federation_attack(name), recorded.setting
    other = next(member.name for member in setting.members if not member.labels)
    spy = {SERVER: setting.server, LABELS: setting.label_holder, OTHER: other}[chosen.spy]
    options: dict[str, Any] = {"victim": other, "nodes": nodes, "people": nodes}
    options = {name: options[name] for name in chosen.reads}
    result = chosen.run(recorded.view(spy, naive=unprotected), recorded, seed=seed, **options)
    return replace(result, name=name, notes=(*result.notes, _EXPERIMENT))


def bare(recorded: Recorded, *, randomness: Randomness) -> Recorded:
    """Return the attack's own copy of a run of mode "shared-linear" with two protections left out, to show their use.

        shares    each share of z of those who train goes to the server as it is, without masks between holders
        noise     whole steps, nothing below a step

    Shares of G, Z_0 and A are those of the recorded run; keys and masks those that its server dealt.

    Args:
        recorded: of mode "shared-linear".
    """
    view, setting = recorded.view(recorded.setting.server), recorded.setting
    masked_gram = recorded.secret("gram") - view.dealt.summed("G")
    dither, people = setting.dither_of(setting.publication), len(view.people)

    def without_protection(message: Message) -> Message:
        a = view.shares_of_a(message.round)[message.sender]
        share = (recorded.start[message.sender]["z"] + ring.matmul(masked_gram, a))[:people]
        if dither is not None:
            share += dither.draw(tuple(share.shape), randomness) >> dither.step_bits << dither.step_bits
        return replace(message, body=share)

    instead = {id(m): without_protection(m) for m in view.of_training() if m.kind == "noisy-share"}
    # Rows that are sent less often are not attacked.
    messages = (instead.get(id(m), m) for m in recorded.messages if m.kind != "noisy-share" or id(m) in instead)
    return replace(recorded, messages=tuple(messages))
