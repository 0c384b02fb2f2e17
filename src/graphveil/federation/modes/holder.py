"""Modes "individual" and "paper", as the program of a data holder; the server's is `embedding_server`.

    set-up   who trains and who validates; keys from the server, masked features to the other holders (paper alone)
    round    h0 (own, or on shares and opened) -> K hops over own edges -> publish those who train, in some rounds those
             who validate -> the server's steps -> gradient back -> own weights by Adam, the shared first layer by
             descent on shares
    end      publish all others as they were in the round that validated best

    backward of the shared layer, by pairs of holders:  dW_j = X_j^T sum_i G_i,  G_i = dL/dh0 along i's branch

The server deals masks and colludes with no holder; masked matrices pass between holders and never reach it.
Protocol: Chen et al., IJCAI 2022, arXiv 2005.11903, Algorithm 3, with owner-private products (see `sharing`); there
every row is published in every round.
Shapes: h [n, h], of those who train [t, h].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse
import torch
from torch import Tensor, nn

from graphveil.federation.core import states
from graphveil.federation.core.networks import Propagation
from graphveil.federation.core.publisher import Publisher, name_of_rows
from graphveil.federation.core.rows import REST, PublishesRows, publishers_of, receive_rows
from graphveil.federation.core.setting import Setting
from graphveil.federation.crypto import ring
from graphveil.federation.crypto.masks import MaskKey
from graphveil.federation.crypto.products import (
    LeftMatrix,
    MaskedMatrices,
    Product,
    multiply,
    products_with,
    set_up,
    transpose,
)
from graphveil.federation.crypto.ring import RingMatrix
from graphveil.federation.crypto.sharing import reconstruct, secret_numbers, truncate
from graphveil.federation.effects import Checkpoint, Program, Receive, Send
from graphveil.federation.modes.labels import LabelHead
from graphveil.federation.modes.local_network import operator_of
from graphveil.federation.modes.propagation import Features
from graphveil.models import structure_for
from graphveil.models.networks.layers import glorot

#: The prefix in states of all that is kept of the round that validated best.
KEPT = "kept/"


@dataclass(frozen=True)
class Holding:
    """One holder's data.

    Attributes:
        features: float [n, d_i], dense or scipy CSR.
        edge_index: int64 [2, E].
        bound: the declared largest absolute value of a feature.
        head: labels and last layer, at the label holder.
    """

    features: Features
    edge_index: Tensor
    bound: float = 1.0
    head: LabelHead | None = None

    @property
    def nodes(self) -> int:
        """n."""
        return int(self.features.shape[0])


def lefts_of(setting: Setting, nodes: int) -> tuple[LeftMatrix, ...]:
    """List the private matrices of paper mode: every holder's features; `nodes` is n."""
    if not setting.mode.opens_layer:
        return ()
    return tuple(
        LeftMatrix(name, name, tuple(other for other in setting.names if other != name), nodes, member.columns)
        for name, member in zip(setting.names, setting.members, strict=True)
    )


def products_of(setting: Setting, nodes: int, *, transposed: bool = False) -> tuple[Product, ...]:
    """List all products of one round, in the order in which all parties take them; none but in mode "paper".

    Args:
        nodes: n, rows that all holders share.
        transposed: those of the backward pass.
    """
    return products_with(lefts_of(setting, nodes), setting.model.width, transposed=transposed)


@dataclass(frozen=True)
class EmbeddingHolder(PublishesRows):
    """What a holder's program trains and returns.

    Attributes:
        propagation: K hops over its own edges.
        first: its own or the shared first layer.
        head: the label holder's last layer.
        rest: rows of those who neither train nor validate, in the round that validated best so far, float32 [n - m, h].
        best: the weights that gave them.
    """

    propagation: Propagation
    optimiser: torch.optim.Optimizer
    first: _LocalLayer | _SharedLayer
    publishers: Mapping[str, Publisher]
    head: LabelHead | None
    rest: Tensor
    best: Mapping[str, Tensor] = field(default_factory=dict, repr=False)

    def weights(self) -> dict[str, Tensor]:
        """Return copies of all present weights, with names as in `best`."""
        weights = {**states.module_state("propagation", self.propagation), **self.first.weights()}
        return {f"{KEPT}{name}": value.clone() for name, value in weights.items()}

    def state(self) -> dict[str, Tensor]:
        state = states.module_state("propagation", self.propagation) | states.adam_state("adam", self.optimiser)
        state |= self.first.state() | states.publishers_state(self.publishers) | {"rest": self.rest, **self.best}
        return state | (self.head.state() if self.head is not None else {})

    def restored(self, state: states.State) -> EmbeddingHolder:
        """Return this holder as of a checkpoint."""
        states.load_module("propagation", self.propagation, state)
        states.load_adam("adam", self.optimiser, state)
        self.first.load(state)
        states.load_publishers(self.publishers, state)
        if self.head is not None:
            self.head.load(state)
        best = {name: value for name, value in state.items() if name.startswith(KEPT)}
        return replace(self, rest=state["rest"], best=best)


def holder(run: states.RunContext, holding: Holding) -> Program[EmbeddingHolder]:
    """The program of one holder in modes "individual" and "paper": return its networks, publishers and predictions.

    Args:
        run: its run; the generator draws initial weights, the randomness shares and the noise's key.
    """
    setting, head = run.setting, holding.head
    party = _initial(run, holding)
    structure = structure_for(setting.model.aggregator, holding.edge_index, holding.nodes)
    if run.state is not None:
        party = party.restored(run.state)
    yield from party.first.prepare()
    rows = yield from (head.announce_rows(setting) if head is not None else receive_rows(setting, holding.nodes))
    if run.state is None:  # so that a first round that runs again has the same key, weights and randomized labels
        yield Checkpoint(0, party.state)
    for round in run.rounds_left:
        h0 = yield from party.first.forward(round)
        h = party.propagation(h0, structure)
        # A round that runs again gives the same digest of these rows: all before is computed in the same order.
        published = {group: h[rows.of(group)] for group in rows.groups(setting, round)}
        yield from _publish(party, setting, published, round)
        if head is not None:
            yield from head.answer_steps(setting, round)
        if setting.validates(round) and int((yield Receive(setting.server, "best-round", (1,)))):
            party = replace(party, rest=h[rows.rest].detach(), best=party.weights())
        gradient = torch.zeros_like(h)
        gradient[rows.train] = yield Receive(
            setting.server, "embedding-gradient", (len(rows.train), setting.model.width)
        )
        party.optimiser.zero_grad()
        # The server saw clipped noisy rows; its gradient is passed straight through clip and noise.
        h.backward(gradient)
        party.optimiser.step()
        yield from party.first.backward(h0, round)
        yield Checkpoint(round, party.state, party.spent)
    if run.done < setting.rounds:
        yield from _publish(party, setting, {REST: party.rest}, setting.rounds)
        if head is not None:
            yield from head.finish(setting)
        yield Checkpoint(setting.rounds, party.state, party.spent)
    return party


def _publish(party: EmbeddingHolder, setting: Setting, published: Mapping[str, Tensor], round: int) -> Program[None]:
    # One name for all that leaves in a round: the note on disk holds one, which a repetition must have too.
    name = name_of_rows(round, published.values())
    for group, h in published.items():
        publisher = party.publishers[group]
        yield Send(setting.server, "embeddings", publisher.publish(h, name, group), publisher.latest)


def _initial(run: states.RunContext, holding: Holding) -> EmbeddingHolder:
    setting, model = run.setting, run.setting.model
    propagation = Propagation(model.aggregator, model.width, model.hops, generator=run.generator)
    publishers = publishers_of(setting, MaskKey.fresh(run.randomness))
    first = (_SharedLayer if setting.mode.opens_layer else _LocalLayer)(run, holding)
    optimiser = setting.training.optimiser([*propagation.parameters(), *first.parameters()])
    return EmbeddingHolder(propagation, optimiser, first, publishers, holding.head, torch.zeros(0, model.width))


def kept_holder(run: states.RunContext, holding: Holding, state: states.State) -> EmbeddingHolder:
    """Return a holder with the weights of the round that was kept, for people who joined later.

    Args:
        holding: its present features and edges.
        state: the last checkpoint of the finished run.
    """
    party = _initial(run, holding)
    states.load_module(f"{KEPT}propagation", party.propagation, state)
    party.first.load(states.under(KEPT, state))
    return party


class _LocalLayer:
    """h0 = X_i W_i, all of it at the holder, trained by its own optimiser."""

    def __init__(self, run: states.RunContext, holding: Holding) -> None:
        self._inputs = operator_of(holding.features)
        self.weight = glorot((holding.features.shape[1], run.setting.model.width), run.generator)

    def parameters(self) -> list[nn.Parameter]:
        return [self.weight]

    def weights(self) -> dict[str, Tensor]:
        return {"first/weight": self.weight.detach().clone()}

    def state(self) -> dict[str, Tensor]:
        return self.weights()

    def load(self, state: states.State) -> None:
        with torch.no_grad():
            self.weight.copy_(state["first/weight"])

    def prepare(self) -> Program[None]:
        yield from ()

    def forward(self, round: int) -> Program[Tensor]:
        yield from ()
        h0: Tensor = self._inputs @ self.weight
        return h0

    def backward(self, h0: Tensor, round: int) -> Program[None]:
        yield from ()


class _SharedLayer:
    """h0 = sum_j X_j W_j on shares; W is the sum of shares that the holders drew, and nobody knows it."""

    def __init__(self, run: states.RunContext, holding: Holding) -> None:
        setting = run.setting
        self._run, self._nodes = run, holding.nodes
        widest = max(member.columns for member in setting.members)
        # 2^6 bounds |W|, which stays far below it at Glorot's scale and the agreed rates. X's range was declared.
        ring.require_room(holding.bound, 2.0**6, widest * len(setting.members), setting.protocol.bits)
        self._lefts = lefts_of(setting, holding.nodes)
        self._matrix = ring_matrix(holding.features, setting.protocol.bits)
        self._transposed = transpose(self._matrix)
        # Shares add up to W: each is drawn at 1 / sqrt(I) of Glorot's range, so that W has Glorot's variance.
        scale = (6.0 / (setting.columns + setting.model.width)) ** 0.5 / len(setting.members) ** 0.5
        numbers = {
            member.name: secret_numbers((member.columns, setting.model.width), randomness=run.randomness)
            for member in setting.members
        }
        self.shares = {name: ring.encode(drawn * scale, setting.protocol.bits) for name, drawn in numbers.items()}
        self._velocity: Tensor | None = None
        self._masked: MaskedMatrices | None = None

    def parameters(self) -> list[nn.Parameter]:
        return []

    def weights(self) -> dict[str, Tensor]:
        return {f"first/shares/{name}": share for name, share in self.shares.items()}

    def state(self) -> dict[str, Tensor]:
        state = self.weights()
        return state if self._velocity is None else state | {"first/pull": self._velocity}

    def load(self, state: states.State) -> None:
        self.shares = {name: state[f"first/shares/{name}"] for name in self.shares}
        self._velocity = state.get("first/pull")

    def prepare(self) -> Program[None]:
        self._masked = yield from set_up(self._run.roster, self._lefts, {self._run.me: self._matrix})

    def forward(self, round: int) -> Program[Tensor]:
        setting, other_holders = self._run.setting, self._run.roster.other_holders
        products = products_of(setting, self._nodes)
        rights = {product: self.shares[product.left.name] for product in products}
        cross_terms = yield from multiply(self._matrices(), products, rights, f"forward {round}")
        own_share = reconstruct([ring.matmul(self._matrix, self.shares[self._run.me]), *cross_terms.values()])
        for other in other_holders:
            # Masked by the r of its cross terms, which cancel only in the sum of all shares.
            yield Send(other, "opened-share", own_share)
        shares = [own_share]
        for other in other_holders:
            shares.append((yield Receive(other, "opened-share", (self._nodes, setting.model.width))))
        # At twice the scale and not truncated: truncating what is opened anyway risks an error of 2^46 for nothing.
        return ring.decode(reconstruct(shares), 2 * setting.protocol.bits).requires_grad_()

    def backward(self, h0: Tensor, round: int) -> Program[None]:
        setting, me = self._run.setting, self._run.me
        gradient = h0.grad if h0.grad is not None else torch.zeros_like(h0)
        # Momentum is linear, so each holder adds it up in the clear, and no share is multiplied by a constant.
        self._velocity = gradient if self._velocity is None else setting.training.momentum * self._velocity + gradient
        step = ring.encode(setting.training.shared_rate * self._velocity, setting.protocol.bits)
        products = products_of(setting, self._nodes, transposed=True)
        rights = dict.fromkeys(products, step)
        cross_terms = yield from multiply(self._matrices(), products, rights, f"backward {round}")
        # A holder knows its own X_j^T G_j in the clear, so an ordinary shift is exact; only cross terms are shared.
        self.shares[me] = self.shares[me] - (ring.matmul(self._transposed, step) >> setting.protocol.bits)
        for product, share in cross_terms.items():
            # Pair by pair: local truncation works for exactly two shares, and errors are rare where steps are small.
            descent = truncate(share, setting.protocol.bits, first=product.left.owner == me)
            self.shares[product.left.name] = self.shares[product.left.name] - descent

    def _matrices(self) -> MaskedMatrices:
        if self._masked is None:
            raise RuntimeError("the set-up has not run")
        return self._masked


def ring_matrix(features: Features, bits: int) -> RingMatrix:
    """Return features as ring elements, int64 [n, d], scipy CSR where the features are; errors as of `ring.encode`.

    Args:
        features: floats [n, d].
        bits: f, the fraction bits.
    """
    if not isinstance(features, Tensor | np.ndarray):
        matrix = features.tocsr()
        # Zeros encode as zeros, so the sparse pattern is that of the features.
        values = ring.encode(torch.from_numpy(matrix.data), bits).numpy()
        return scipy.sparse.csr_array((values, matrix.indices, matrix.indptr), shape=matrix.shape)
    return ring.encode(torch.as_tensor(features), bits)
