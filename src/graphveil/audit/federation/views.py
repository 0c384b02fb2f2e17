"""Small runs of a federation for audits of views: each party with its own randomness, every message and state kept.

again      the same secrets of some parties, others of the rest
resumed    gone on from what everybody kept after a round, with new secrets, and with other data where asked for
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import torch
from torch import Tensor

from graphveil.audit.federation.replay import made_setting
from graphveil.federation.core.programs import simulate
from graphveil.federation.core.setting import Member, Setting
from graphveil.federation.core.states import RunContext
from graphveil.federation.effects import Checkpoint, Effect, Send
from graphveil.federation.modes.dealer_view import DealerView
from graphveil.federation.modes.holder import Holding
from graphveil.federation.modes.labels import LabelHead
from graphveil.federation.simulation import party_programs
from graphveil.privacy import Randomness, SeededRandomness

NODES: Final = 80
COLUMNS: Final = 3
#: Which round runs again after a resume.
AGAIN: Final = 2
State = Mapping[str, Tensor]


@dataclass(frozen=True)
class Run:
    """All messages (round, sender, message) of a run, and what each party kept after each round."""

    messages: tuple[tuple[int, str, Send], ...]
    states: Mapping[int, Mapping[str, State]]

    def bodies(self, round: int, *kinds: str) -> dict[tuple[str, str, str], list[Tensor]]:
        """Return what was sent in a round, by sender, receiver and kind."""
        bodies: dict[tuple[str, str, str], list[Tensor]] = {}
        for number, sender, sent in self.messages:
            if number == round and sent.kind in kinds:
                bodies.setdefault((sender, sent.to, sent.kind), []).append(sent.body)
        return bodies

    def dealt(self, setting: Setting) -> DealerView:
        """Return what the server of mode shared-linear dealt."""
        return DealerView.read(setting, NODES, ((sent.to, sent.kind, sent.body) for _, _, sent in self.messages))


def apart_setting(mode: str, holders: int) -> Setting:
    """Return a small federation of so many holders.

    Args:
        mode: one of MODES. holders: how many.
    """
    members = tuple(Member(f"holder{number + 1}", COLUMNS, number == 0) for number in range(holders))
    return replace(made_setting(mode), members=members)


def _holdings(setting: Setting, *, changed: bool) -> dict[str, Holding]:
    """Return what holders have; with `changed` other features of one person at the last holder."""
    # Data of an own seed: they stay the same whatever secrets the parties of a run draw.
    generator = torch.Generator().manual_seed(23)
    labels, place = torch.randint(setting.classes, (NODES,), generator=generator), torch.arange(NODES)
    train, val = place < 20, (place >= 20) & (place < 30)
    holdings = {}
    for member in setting.members:
        x = torch.rand(NODES, member.columns, generator=generator)
        pairs = torch.randint(NODES, (2, 80), generator=generator)
        if changed and member is setting.members[-1]:
            x[0] = 1 - x[0]
        head = LabelHead(labels, train, val, ~(train | val)) if member.labels else None
        holdings[member.name] = Holding(x, torch.cat([pairs, pairs.flip(0)], dim=1), 1.0, head)
    return holdings


def run_apart(
    setting: Setting, sources: Mapping[str, Randomness], *, before: Run | None = None, changed: bool = False
) -> Run:
    """Run all parties, each with its own randomness.

    Args:
        before: the run that is gone on from before its round `AGAIN`.
        changed: with other data of one holder, or after a resume another share of W, as after an older checkpoint.
    """
    holdings = _holdings(setting, changed=changed)
    done = 0 if before is None else AGAIN - 1
    states: Mapping[str, State] = {} if before is None else _checkpoint(before, setting, changed=changed)
    head = holdings[setting.label_holder].head
    assert head is not None
    generator = torch.Generator().manual_seed(1)
    head.open(setting, randomness=sources[setting.label_holder], generator=generator)

    contexts = {
        name: RunContext(name, setting, sources[name], generator, done, states.get(name))
        for name in (setting.server, *setting.names)
    }
    programs = party_programs(contexts, holdings)
    at = dict.fromkeys(programs, 0 if before is None else done + 1)
    messages: list[tuple[int, str, Send]] = []
    checkpoints: dict[int, dict[str, State]] = {}

    def watch(name: str, effect: Effect) -> None:
        if isinstance(effect, Send):
            messages.append((at[name], name, replace(effect, body=effect.body.clone())))
        elif isinstance(effect, Checkpoint):
            at[name] = effect.round + 1
            checkpoints.setdefault(effect.round, {})[name] = {
                key: value.clone() for key, value in effect.state().items()
            }

    # Weights start alike in all runs: what differs between two of them is the one thing that was changed.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        simulate(programs, watch=watch)
    if before is not None:
        checkpoints[done] = dict(states)
    return Run(tuple(messages), checkpoints)


def _checkpoint(before: Run, setting: Setting, *, changed: bool) -> dict[str, State]:
    """Return what each party kept; with `changed` a share of W that is another one, as after an older checkpoint."""
    states, last = dict(before.states[AGAIN - 1]), setting.names[-1]
    if changed and "w" in states[last]:
        # One unit in the last place is enough: under the same masks it would show as a difference of exactly 1.
        states[last] = {**states[last], "w": states[last]["w"] + 1}
    return states


def sources_of(setting: Setting, server: int, holders: int) -> dict[str, Randomness]:
    """Return everybody's randomness, of one seed for the server and one for the holders. Returns by name.

    Args:
        setting: the agreed run. server, holders: seeds.
    """
    # Seeds a thousand apart, so that no two parties of any run draw the same words.
    sources: dict[str, Randomness] = {setting.server: SeededRandomness(1_000 * server)}
    return sources | {name: SeededRandomness(1_000 * holders + n) for n, name in enumerate(setting.names, start=1)}
