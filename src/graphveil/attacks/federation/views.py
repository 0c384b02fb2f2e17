"""What each party of a federation sees: the messages that reach it, what it sends, and its own data.

The agreed run is simulated in one process by somebody who holds all data: an experiment, nothing that parties run
together. An adversary gets a `View` of it and nothing else: it follows the protocol and looks at what arrives.

    naive design   the first layer of Chen et al. (IJCAI 2022) opened to all holders without noise, its weights handed
                   out after every round, slopes exchanged in the clear, as a lazy backward pass would, and all messages
                   passed on by the server, which deals the masks too
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from graphveil.federation.core.setting import Option, Setting
from graphveil.federation.effects import Checkpoint, Effect, Send
from graphveil.federation.modes.dealer_view import DealerView
from graphveil.federation.modes.holder import Holding
from graphveil.federation.modes.labels import LabelHead
from graphveil.federation.simulation import Trained, simulate_training
from graphveil.privacy import Randomness

#: Of how many rounds an adversary keeps the messages: the first ones, and others evenly spread.
MOST_ROUNDS = 32
_FIRST_ROUNDS = 8
_NAIVE_ROUNDS = 12


@dataclass(frozen=True)
class Message:
    """One message with its content; round 0 is the set-up."""

    round: int
    sender: str
    to: str
    kind: str
    body: Tensor


@dataclass(frozen=True)
class View:
    """What one party has in the end; no holding at the server.

    Attributes:
        messages: those that it received, sent or passed on, in order.
        weights: block -> the first layer of every round, where the design hands it out.
        slopes: holder -> dL/dh0 of every round, where the design exchanges it.
    """

    party: str
    setting: Setting
    holding: Holding | None
    nodes: int
    messages: tuple[Message, ...]
    weights: Mapping[str, tuple[Tensor, ...]]
    slopes: Mapping[str, tuple[Tensor, ...]]

    @property
    def is_server(self) -> bool:
        return self.holding is None

    def bodies(self, kind: str, sender: str) -> list[Tensor]:
        """What one party sent of one kind, as it was sent, in order.

        Args:
            kind: of the messages.
            sender: a party's name.
        """
        return [m.body for m in self.messages if (m.kind, m.sender) == (kind, sender)]

    def received(self, kind: str, sender: str | None = None) -> list[Tensor]:
        """Numbers, float64 [., .] each, that reached this party in messages of a kind, in order.

        Args:
            kind: of the messages.
            sender: a party's name; None: of anybody.
        """
        own_messages = (m for m in self.messages if m.to == self.party and m.kind == kind)
        return [self.numbers(m) for m in own_messages if sender in (None, m.sender)]

    def rows(self) -> dict[str, list[Tensor]]:
        """Everything that reached this party with a row a node, float64 [n, .], by kind."""
        rows: dict[str, list[Tensor]] = {}
        for message in self.messages:
            if message.to == self.party and len(message.body) == self.nodes:
                rows.setdefault(message.kind, []).append(self.numbers(message))
        return rows

    def numbers(self, message: Message) -> Tensor:
        """Return a body as float64 numbers [., .]: ring elements at their scale, class numbers [n] as indicators."""
        body = message.body
        if body.dtype == torch.int64 and body.dim() == 1:
            # Classes start at -1, for nobody's: shifted by one and cut again, such a row is all zeros.
            return functional.one_hot(body + 1, self.setting.classes + 1).double()[:, 1:]
        return body.double() * 2.0**-self.setting.protocol.bits if body.dtype == torch.int64 else body.double()

    def first_layers(self) -> list[Tensor]:
        """h0 of every round as a holder opens it in paper mode: its own share and what the others sent, float64."""
        opened = [m for m in self.messages if m.kind == "opened-share"]
        rounds = sorted({m.round for m in opened})
        # By sender: a holder's own share went to each of the others and stands here several times, but counts once.
        shares = [{m.sender: m.body for m in opened if m.round == number} for number in rounds]
        return [_opened(list(parts.values()), self.setting) for parts in shares]

    def projections(self) -> list[Tensor]:
        """z of every round as the server opens it in mode shared-linear, float64, its noise inside."""
        return [words.double() * 2.0 ** (-2 * self.setting.protocol.bits) for words in self.opened_words()]

    def opened_words(self) -> list[Tensor]:
        """The same as words, before they are read as numbers."""
        sent = [self.bodies("noisy-share", name) for name in self.setting.names]
        return [torch.stack(parts).sum(dim=0) for parts in zip(*sent, strict=True)]

    def steps(self) -> list[tuple[Tensor, Tensor]]:
        """What the server of mode shared-linear knows of consecutive rounds: how far z moved, and by which dz."""
        at = sorted({m.round for m in self.messages if m.kind == "noisy-share"})
        z = dict(zip(at, self.projections(), strict=True))
        shares = {
            number: [m for m in self.messages if (m.kind, m.round) == ("gradient-share", number)] for number in at
        }
        slopes = {number: torch.stack([m.body for m in sent]).sum(dim=0) for number, sent in shares.items()}
        return [(z[n] - z[n + 1], slopes[n].double() * 2.0**-self.setting.protocol.bits) for n in at if n + 1 in z]

    def dealt(self) -> DealerView:
        return DealerView.read(self.setting, self.nodes, ((m.to, m.kind, m.body) for m in self.messages))


@dataclass(frozen=True)
class Recorded:
    """A simulated run with the content of its messages; what each holder remembers before the first round (`start`),
    and after each round where asked for (`states`).
    """

    setting: Setting
    holdings: Mapping[str, Holding]
    trained: Trained
    messages: tuple[Message, ...]
    start: Mapping[str, Mapping[str, Tensor]]
    states: Mapping[str, tuple[Mapping[str, Tensor], ...]]

    def view(self, party: str, *, naive: bool = False) -> View:
        """Return what a party sees; with `naive` also what that design shows it, see the module.

        Args:
            party: its name.
            naive: whether it is the naive design.
        """
        relays = naive and party == self.setting.server
        # An adversary gets what reached it or left it; in the naive design the server passes all messages on.
        own = tuple(m for m in self.messages if relays or party in (m.to, m.sender))
        nodes = next(iter(self.holdings.values())).nodes
        holding = self.holdings.get(party)
        weights = self._weights() if naive and holding is not None else {}
        slopes = self._slopes() if naive and holding is not None else {}
        return View(party, self.setting, holding, nodes, own, weights, slopes)

    def secrets(self, round: int = 1) -> tuple[Tensor, Tensor]:
        """Return P [n, d] and W [d, h] of a round of mode shared-linear, words: the truth."""
        p = torch.stack([self.start[name]["p"] for name in self.setting.names]).sum(dim=0)
        return p, torch.stack(list(self.weight_shares(round).values())).sum(dim=0)

    def weight_shares(self, round: int) -> dict[str, Tensor]:
        """Return each holder's share of W in a round of mode shared-linear, words [d, h]."""
        return {
            name: (self.start[name] if round == 1 else self.states[name][round - 2])["w"] for name in self.setting.names
        }

    @property
    def labels(self) -> Tensor:
        """The labels [n]: the truth."""
        return self._head.labels

    @property
    def train(self) -> Tensor:
        return self._head.train

    @property
    def _head(self) -> LabelHead:
        return next(holding.head for holding in self.holdings.values() if holding.head is not None)

    def _weights(self) -> dict[str, tuple[Tensor, ...]]:
        """W of each block after every round."""
        rounds = zip(*self.states.values(), strict=True) if self.states else ()
        weights: dict[str, list[Tensor]] = {name: [] for name in self.setting.names}
        for states in rounds:
            for name in weights:
                shares = [state[f"first/shares/{name}"] for state in states]
                weights[name].append(torch.stack(shares).sum(dim=0).double() * 2.0**-self.setting.protocol.bits)
        return {name: tuple(each) for name, each in weights.items()}

    def _slopes(self) -> dict[str, tuple[Tensor, ...]]:
        return {name: tuple(state["first/pull"] for state in each) for name, each in self.states.items()}


def record(
    setting: Setting,
    holdings: Mapping[str, Holding],
    *,
    randomness: Randomness,
    seed: int = 0,
    rounds: Collection[int] | None = None,
    states: bool = False,
) -> Recorded:
    """Run all parties in this process and keep what they send.

    Args:
        rounds: whose messages are kept, and only those with a row a node or a row a training node; keys of masks are
            kept always. None: everything, which is far more in mode shared-linear.
        states: keep what holders remember after each round too.
    """
    holdings = {name: _with_new_head(holding) for name, holding in holdings.items()}
    nodes = next(iter(holdings.values())).nodes
    rows = {nodes, *(int(holding.head.train.sum()) for holding in holdings.values() if holding.head is not None)}
    messages: list[Message] = []
    start: dict[str, Mapping[str, Tensor]] = {}
    after: dict[str, list[Mapping[str, Tensor]]] = {name: [] for name in setting.names} if states else {}
    at: dict[str, int] = {}

    def watch(name: str, effect: Effect) -> None:
        if isinstance(effect, Send):
            # A party's own count of rounds: in one process some are ahead of others.
            number = at.get(name, 0)
            recorded = rounds is None or effect.kind == "mask-keys" or (number in rounds and len(effect.body) in rows)
            if recorded:
                # Cloned: programs go on working in their tensors, and a view would show what was never sent.
                messages.append(Message(number, name, effect.to, effect.kind, effect.body.clone()))
        elif isinstance(effect, Checkpoint):
            at[name] = effect.round + 1
            if not effect.round and name in holdings:
                start[name] = _copied(effect)
            elif name in after:
                after[name].append(_copied(effect))

    trained = simulate_training(setting, holdings, randomness=randomness, seed=seed, watch=watch)
    return Recorded(
        setting, holdings, trained, tuple(messages), start, {name: tuple(each) for name, each in after.items()}
    )


def _copied(effect: Checkpoint) -> Mapping[str, Tensor]:
    return {key: value.clone() for key, value in effect.state().items()}


def agreed_rounds(setting: Setting) -> frozenset[int]:
    """Return the rounds that an adversary keeps: the first ones, and others evenly spread."""
    # Early rounds move most and say most; all of them would be gigabytes in long runs.
    first_rounds = range(1, min(_FIRST_ROUNDS, setting.rounds) + 1)
    spread = np.linspace(first_rounds[-1], setting.rounds, min(MOST_ROUNDS, setting.rounds) - len(first_rounds) + 1)
    return frozenset(first_rounds) | frozenset(round(number) for number in spread)


def naive(setting: Setting) -> Setting:
    """Return the naive design for the same holders, with enough rounds to solve for all features but one's own."""
    unknown = setting.columns - min(member.columns for member in setting.members)
    enough = math.ceil(1.1 * unknown / setting.model.width) + 2
    open_: dict[str, Option] = {
        "mode": "paper",
        "opened": True,
        "epsilon": math.inf,
        "epsilon_y": math.inf,
        "momentum": 0.0,
        "unit": "publication",
        "degree_bound": 0,
    }
    return setting.with_options(**open_, epochs=max(_NAIVE_ROUNDS, enough), republish=1)


def _with_new_head(holding: Holding) -> Holding:
    """A label head remembers its run."""
    head = holding.head
    return holding if head is None else replace(holding, head=LabelHead(head.labels, head.train, head.val, head.test))


def _opened(shares: Sequence[Tensor], setting: Setting) -> Tensor:
    return torch.stack(list(shares)).sum(dim=0).double() * 2.0 ** (-2 * setting.protocol.bits)
