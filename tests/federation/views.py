"""Whole runs in one process with all that each party sends, draws and keeps: for tests of what it can tell."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from graphveil.federation.core.messages import simulate
from graphveil.federation.core.setting import Member, Setting
from graphveil.federation.core.states import RunContext
from graphveil.federation.crypto.masks import MaskKey, unpack_keys
from graphveil.federation.effects import Checkpoint, Effect, Send
from graphveil.federation.modes.holder import Holding
from graphveil.federation.modes.labels import LabelHead
from graphveil.federation.simulation import party_programs
from graphveil.privacy import SeededRandomness

CLASSES = 3
FALSE_ALARM = 1e-6


@dataclass
class Views:
    """A run: all messages (sender, message) in order, what was expanded from keys, and what holders keep by round."""

    setting: Setting
    messages: list[tuple[str, Send]] = field(default_factory=list)
    expanded: list[tuple[bytes, str, Tensor]] = field(default_factory=list)
    checkpoints: dict[str, list[Mapping[str, Tensor]]] = field(default_factory=dict)

    def bodies(self, kind: str, sender: str | None = None, to: str | None = None) -> list[Tensor]:
        """What was sent of a kind, in order."""
        return [
            send.body
            for name, send in self.messages
            if send.kind == kind and sender in (None, name) and to in (None, send.to)
        ]

    def dealt(self, to: str | None = None) -> list[Tensor]:
        """All masks from keys that the server dealt (to one holder), and all other ring elements that it sent (it)."""
        keys = {key.secret for body in self.bodies("mask-keys", to=to) for key in unpack_keys(body)}
        sent = [*self.bodies("correction", to=to), *self.bodies("gradient-share", to=to)]
        return [*(words for secret, _, words in self.expanded if secret in keys), *sent]


class Recorder:
    """Who sends what, and what each party keeps by round: `watch` hears of all effects."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Send]] = []
        self.checkpoints: dict[tuple[str, int], Mapping[str, Tensor]] = {}

    def watch(self, name: str, effect: Effect) -> None:
        if isinstance(effect, Send):
            self.sent.append((name, effect))
        elif isinstance(effect, Checkpoint):
            self.checkpoints[name, effect.round] = copied(effect.state())


def copied(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {key: value.clone() for key, value in state.items()}


def altered(program: Any, change: Callable[[Any], Any]) -> Any:
    """A party that deviates: `change`, a program too, is given each effect and returns what takes its place."""
    reply = None
    while True:
        try:
            effect = program.send(reply)
        except StopIteration as stop:
            return stop.value
        reply = yield (yield from change(effect))


def holdings(holders: int, nodes: int, columns: int, *, seed: int = 0) -> dict[str, Holding]:
    """Holders "h1" (the labels), "h2", .. of random features and edges."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(nodes) % CLASSES
    train, val = torch.arange(nodes) < nodes // 2, torch.arange(nodes) >= nodes - nodes // 4
    by_holder = {}
    for number in range(1, holders + 1):
        pairs = torch.randint(0, nodes, (2, 2 * nodes), generator=generator)
        pairs = torch.unique(pairs[:, pairs[0] < pairs[1]], dim=1)
        head = LabelHead(labels, train, val, ~(train | val)) if number == 1 else None
        x = torch.rand(nodes, columns, generator=generator)
        by_holder[f"h{number}"] = Holding(x, torch.cat([pairs, pairs.flip(0)], 1), 1.0, head)
    return by_holder


def setting_of(by_holder: Mapping[str, Holding], **changes: Any) -> Setting:
    """A small run of the default mode."""
    members = tuple(Member(name, int(holding.features.shape[1]), name == "h1") for name, holding in by_holder.items())
    plain: dict[str, Any] = {"width": 8, "hops": 2, "dropout": 0.0, "epochs": 2, "epsilon": math.inf}
    return Setting.of(members, CLASSES, **{**plain, **changes})


def watched(
    setting: Setting,
    by_holder: Mapping[str, Holding],
    patch: pytest.MonkeyPatch,
    *,
    seed: int = 1,
    done: int = 0,
    states: Mapping[str, Mapping[str, Tensor]] | None = None,
) -> Views:
    """Run all parties, each with randomness of its own; from saved states where they are given."""
    views = Views(setting, checkpoints={name: [] for name in (setting.server, *setting.names)})
    real = MaskKey.expand

    def expand(key: MaskKey, label: str, shape: tuple[int, ...]) -> Tensor:
        words = real(key, label, shape)
        views.expanded.append((key.secret, label, words.clone()))
        return words

    def watch(name: str, effect: Effect) -> None:
        if isinstance(effect, Send):
            views.messages.append((name, Send(effect.to, effect.kind, effect.body.clone(), effect.name)))
        elif isinstance(effect, Checkpoint):
            views.checkpoints[name].append(copied(effect.state()))

    sources = {name: SeededRandomness(1000 * seed + place) for place, name in enumerate((setting.server, *by_holder))}
    generator = torch.Generator().manual_seed(1)
    head = by_holder["h1"].head
    assert head is not None
    head.open(setting, randomness=sources["h1"], generator=generator)
    contexts = {
        name: RunContext(name, setting, source, generator, done, None if states is None else states[name])
        for name, source in sources.items()
    }
    programs = party_programs(contexts, by_holder)
    with patch.context() as here:
        here.setattr(MaskKey, "expand", expand)
        torch.manual_seed(1)
        simulate(programs, watch=watch)
    return views


def is_uniform(words: Tensor, tests: int = 1) -> bool:
    """Chi-square of the four highest and four lowest bits, 16 cells each; `tests` share a false alarm of 1e-6."""
    numbers = words.contiguous().numpy().view(np.uint64).ravel()
    assert len(numbers) >= 160
    for shift in (60, 0):
        seen = np.bincount((numbers >> np.uint64(shift) & np.uint64(15)).astype(np.int64), minlength=16)
        if stats.chisquare(seen).pvalue < FALSE_ALARM / (2 * tests):
            return False
    return True
