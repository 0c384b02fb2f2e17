"""What each party of a federation sees: the messages that reach it, what it sends, and its own data.

The agreed run is simulated in one process by somebody who holds all data: an experiment, nothing that parties run
together. An adversary gets a `View` of it and nothing else: it follows the protocol and looks at what arrives.

    naive design   the first layer of Chen et al. (IJCAI 2022) opened to all holders without noise, its weights handed
                   out after every round, slopes exchanged in the clear, as a lazy backward pass would, and all messages
                   passed on by the server, which deals the masks too

In mode shared-linear attacks are on those who train: their rows of z = Z_0 + G A are sent in every round, of those who
validate every few rounds, of all others once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from graphveil.federation.core.rows import Rows
from graphveil.federation.core.setting import Option, Setting
from graphveil.federation.crypto import ring
from graphveil.federation.crypto.masks import MaskKey, unpack_keys
from graphveil.federation.effects import Checkpoint, Effect, Send
from graphveil.federation.modes.all_shares import AllSharesHolder
from graphveil.federation.modes.holder import Holding
from graphveil.federation.modes.labels import LabelHead
from graphveil.federation.simulation import Trained, simulate_training
from graphveil.privacy import Randomness

#: Of how many rounds an adversary keeps the messages; of these, how many are the first rounds, others evenly spread.
MOST_ROUNDS, _FIRST_ROUNDS = 32, 8
#: How many rounds the naive design has at least.
_NAIVE_ROUNDS = 12
#: Kinds of which the messages of every round are kept: keys, and who trains and validates.
_ANNOUNCED = ("labelled-rows", "validation-rows")
_OF_ALL_ROUNDS = ("mask-keys", *_ANNOUNCED)
#: The sender of a sum that a receiver computes from several messages.
_OPENED = "all holders"
#: Kinds of which the first messages in a round have a row for each of those who train.
_TRAINED = (
    "noisy-share",
    "embeddings",
    "embedding-gradient",
    "hidden",
    "hidden-gradient",
    "gradient-share",
    "hidden-share",
)


@dataclass(frozen=True)
class Message:
    """One message with its content; round 0 is the set-up."""

    round: int
    sender: str
    to: str
    kind: str
    body: Tensor


@dataclass(frozen=True)
class Opening:
    """z of those who train in one round of mode shared-linear, noise inside, and A of that round; words [t, h]."""

    z: Tensor
    a: Tensor


@dataclass(frozen=True)
class Dealt:
    """What the server of mode "shared-linear" expands from the keys that it dealt, one a holder, for all of a run.

        share of z at k   Z_k + E_G a_k + mask of zero sum + noise   E_G = G - U';  a_2 = A - sum of all other a_k
        without the mask  moved by E_G a_k from the first round on: for known a_k, linear in unknown words E_G

    Shapes: Z_k [m, h], A [t, h], G [m, t].
    """

    setting: Setting
    rows: Rows
    keys: Mapping[str, MaskKey] = field(repr=False)

    def summed(self, label: str) -> Tensor:
        """Return the sum of all holders' masks of what they exchange once, int64.

        Args:
            label: "P" for U of P_o [m, d], "W" for V of W_0 [d, h], "G" for U' of G [m, t].
        """
        d, h = self.setting.columns, self.setting.model.width
        m, t = len(self.rows.train_val), len(self.rows.train)
        shape = {"P": (m, d), "W": (d, h), "G": (m, t)}[label]
        return torch.stack([self.keys[name].expand(label, shape) for name in self.setting.names]).sum(dim=0)

    def share_of_a(self, name: str, round: int) -> Tensor:
        """Return a_k, the share that a holder but the second expands of the A that is made in a round, int64 [t, h].

        Args:
            round: from 1.
        """
        return self.keys[name].expand(f"A {round}", (len(self.rows.train), self.setting.model.width))


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
        """Return the bodies that one party sent of one kind, as they were sent, in order.

        Args:
            sender: a party's name.
        """
        return [m.body for m in self.messages if (m.kind, m.sender) == (kind, sender)]

    def received(self, kind: str, sender: str | None = None) -> list[Tensor]:
        """Return the numbers, float64 [., .] each, that reached this party in messages of a kind, in order.

        Args:
            sender: a party's name; None: of anybody.
        """
        own_messages = (m for m in self.messages if m.to == self.party and m.kind == kind)
        return [self.numbers(m) for m in own_messages if sender in (None, m.sender)]

    @property
    def of_trained(self) -> bool:
        """Whether messages say most of those who train; guesses and opened layers say as much of all nodes."""
        return "labelled-rows" in self.setting.mode.sent and not self.bodies("opened-share", self.setting.names[0])

    @cached_property
    def people(self) -> Tensor:
        """The nodes whose rows are attacked, int64: those who train, whom all parties know, or all."""
        if not self.of_trained:
            return torch.arange(self.nodes)
        return next(message.body for message in self.messages if message.kind == "labelled-rows")

    def rows(self) -> dict[str, list[Tensor]]:
        """Return everything that reached this party with a row for each of `people`, float64 [people, .], by kind."""
        trained = {id(message) for message in self.of_training()}
        rows: dict[str, list[Tensor]] = {}
        for message in self.messages:
            if message.to != self.party or message.kind in _ANNOUNCED:
                continue
            if id(message) in trained:
                rows.setdefault(message.kind, []).append(self.numbers(message))
            elif len(message.body) == self.nodes:
                rows.setdefault(message.kind, []).append(self.numbers(message)[self.people])
        return rows

    def of_training(self) -> Iterator[Message]:
        """Yield messages of rounds with a row for each of those who train, in order."""
        seen: Counter[tuple[int, str, str]] = Counter()
        for message in self.messages:
            round, kind = message.round, message.kind
            if not self.of_trained or not 1 <= round <= self.setting.publications:
                continue
            # Rows of those who validate come after them in a round, and may be as many.
            steps = self.setting.steps(round) if kind.startswith("hidden") else 1
            seen[round, message.sender, kind] += 1
            if kind in _TRAINED and seen[round, message.sender, kind] <= steps:
                yield message

    def trained(self, kind: str, sender: str) -> list[Tensor]:
        """Return what a sender sent this party of those who train, round by round, float64 [people, .].

        Args:
            sender: a party's name.
        """
        own_messages = (m for m in self.of_training() if m.to == self.party)
        return [self.numbers(m) for m in own_messages if (m.kind, m.sender) == (kind, sender)]

    def numbers(self, message: Message) -> Tensor:
        """Return a body as float64 numbers [., .]: ring elements at their scale, class numbers [n] as indicators."""
        body = message.body
        if body.dtype == torch.int64 and body.dim() == 1:
            # Class -1 stands for none: shifted by one and cut again, its row is all zeros.
            return functional.one_hot(body + 1, self.setting.classes + 1).double()[:, 1:]
        return body.double() * 2.0**-self.setting.protocol.bits if body.dtype == torch.int64 else body.double()

    def first_layers(self) -> list[Tensor]:
        """Return h0 of every round as a holder opens it in paper mode: the sum of all shares, its own too, float64."""
        opened = [m for m in self.messages if m.kind == "opened-share"]
        rounds = sorted({m.round for m in opened})
        # By sender: a holder's own share went to each of the others and stands here several times, but counts once.
        shares = [{m.sender: m.body for m in opened if m.round == number} for number in rounds]
        scale = 2.0 ** (-2 * self.setting.protocol.bits)
        return [torch.stack([*parts.values()]).sum(dim=0).double() * scale for parts in shares]

    def shares_of_a(self, round: int) -> dict[str, Tensor]:
        """Return what the server of mode shared-linear knows of each holder's share of A in a round, words [t, h]."""
        names, shape = self.setting.names, (len(self.people), self.setting.model.width)
        if round == 1:
            return {name: torch.zeros(shape, dtype=torch.int64) for name in names}
        sent = next(m.body for m in self.messages if (m.kind, m.round) == ("gradient-share", round - 1))
        return {name: sent if name == names[1] else self.dealt.share_of_a(name, round - 1) for name in names}

    @cached_property
    def openings(self) -> list[Opening]:
        """The openings of those who train at the server of mode shared-linear, round by round."""
        shares: dict[int, list[Tensor]] = {}
        for message in self.of_training():
            if message.kind == "noisy-share":
                shares.setdefault(message.round, []).append(message.body)
        u, t = self.dealt.summed("G"), len(self.people)
        part = ring.matmul(self.dealt.summed("P"), self.dealt.summed("W"))
        openings = []
        for round, sent in shares.items():
            a = torch.stack(list(self.shares_of_a(round).values())).sum(dim=0)
            openings.append(Opening(torch.stack(sent).sum(dim=0) + part[:t] + ring.matmul(u[:t], a), a))
        return openings

    def projections(self) -> list[Tensor]:
        """Return z of those who train in every round of mode shared-linear, float64 [t, h], with its noise."""
        return [opening.z.double() * 2.0 ** (-2 * self.setting.protocol.bits) for opening in self.openings]

    def steps(self) -> list[tuple[Tensor, Tensor]]:
        """Return how far z moved since the first round, where A is 0, which is G A, and A; of each later round, float64
        [t, h]."""
        first, *later = self.projections()
        unit = 2.0**-self.setting.protocol.bits
        return [(z - first, o.a.double() * unit) for z, o in zip(later, self.openings[1:], strict=True)]

    @cached_property
    def dealt(self) -> Dealt:
        # Of several sessions the last one's.
        keys = {m.to: unpack_keys(m.body)[0] for m in self.messages if m.kind == "mask-keys"}
        rows = {m.kind: m.body for m in self.messages if m.kind in _ANNOUNCED}
        return Dealt(self.setting, Rows(self.nodes, *(rows[kind] for kind in _ANNOUNCED)), keys)


@dataclass(frozen=True)
class Recorded:
    """A simulated run with the content of its messages.

    Attributes:
        start: holder -> its state before the first round.
        states: holder -> its states after each round, where these were recorded.
    """

    setting: Setting
    holdings: Mapping[str, Holding]
    trained: Trained
    messages: tuple[Message, ...]
    start: Mapping[str, Mapping[str, Tensor]]
    states: Mapping[str, tuple[Mapping[str, Tensor], ...]]

    def view(self, party: str, *, naive: bool = False) -> View:
        """Return what a party sees.

        Args:
            naive: whether the run is of the naive design, which shows more, see the module.
        """
        relays = naive and party == self.setting.server
        # An adversary gets what reached it or left it; in the naive design the server passes all messages on.
        own = tuple(m for m in self._opened_messages() if relays or party in (m.to, m.sender))
        nodes = next(iter(self.holdings.values())).nodes
        holding = self.holdings.get(party)
        weights: dict[str, tuple[Tensor, ...]] = {}
        slopes: dict[str, tuple[Tensor, ...]] = {}
        if naive and holding is not None:
            weights = self._weights()
            slopes = {name: tuple(state["first/pull"] for state in each) for name, each in self.states.items()}
        return View(party, self.setting, holding, nodes, own, weights, slopes)

    def _opened_messages(self) -> Iterator[Message]:
        """Yield all messages; in mode all-shares the sums that the label holder opens, in place of shares of z."""
        yield from (m for m in self.messages if m.kind != "hidden-share")
        holder = self.setting.label_holder
        result = self.trained.holders.get(holder)
        if isinstance(result, AllSharesHolder):
            # One share alone is uniform, and the label holder's own share is in no message.
            yield from (Message(round, _OPENED, holder, "hidden-share", z) for round, z in result.hidden)

    def secret(self, name: str) -> Tensor:
        """Return a secret that all holders of mode shared-linear have shares of, words: the truth.

        Args:
            name: "p" for P_o [m, d], "gram" for G [m, t], "w" for W_0 [d, h].
        """
        return torch.stack([self.start[holder][name] for holder in self.setting.names]).sum(dim=0)

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
        rounds: of which messages are kept, if they have a row for each node or each training node; keys of masks, and
            who trains and validates, are always kept. None: everything, which is far more in mode shared-linear.
        states: whether to keep the holders' states after each round too.
    """
    holdings = {name: _with_new_head(holding) for name, holding in holdings.items()}
    nodes = next(iter(holdings.values())).nodes
    rows = {nodes, *(int(holding.head.train.sum()) for holding in holdings.values() if holding.head is not None)}
    messages: list[Message] = []
    start: dict[str, Mapping[str, Tensor]] = {}
    after: dict[str, list[Mapping[str, Tensor]]] = {name: [] for name in setting.names} if states else {}
    round_of: dict[str, int] = {}

    def watch(name: str, effect: Effect) -> None:
        if isinstance(effect, Send):
            # A party's own count of rounds: in one process some are ahead of others.
            number = round_of.get(name, 0)
            # A of a round is shared in the round before.
            used_in = number + (effect.kind == "gradient-share")
            if rounds is None or effect.kind in _OF_ALL_ROUNDS or (used_in in rounds and len(effect.body) in rows):
                # Cloned: programs go on working in their tensors, and a view would show what was never sent.
                messages.append(Message(number, name, effect.to, effect.kind, effect.body.clone()))
        elif isinstance(effect, Checkpoint):
            round_of[name] = effect.round + 1
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
    unprotected: dict[str, Option] = {
        "mode": "paper",
        "opened": True,
        "epsilon": math.inf,
        "epsilon_y": math.inf,
        "momentum": 0.0,
        "unit": "publication",
        "degree_bound": 0,
    }
    return setting.with_options(**unprotected, epochs=max(_NAIVE_ROUNDS, enough), republish=1)


def _with_new_head(holding: Holding) -> Holding:
    """Return a holding with a new label head: a head keeps the history of its run."""
    head = holding.head
    return holding if head is None else replace(holding, head=LabelHead(head.labels, head.train, head.val, head.test))
