"""A data holder's part in modes "individual" and "paper", as a program.

    set-up   keys from the server, masked features to the other holders (paper alone)
    round    h0 (own, or on shares and opened) -> K hops over own edges -> publish -> the server's steps
             -> gradient back -> own weights by Adam, the shared first layer by descent on shares

    backward of the shared layer, by pairs of holders:  dW_j = X_j^T sum_i G_i,  G_i = dL/dh0 along i's branch

Momentum is kept on G_i in the clear at its holder: it is linear, and so no share is ever multiplied by a constant.
Protocol: Chen et al., IJCAI 2022, arXiv 2005.11903, Algorithm 3, with owner-private products (see `sharing`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import scipy.sparse
import torch
from torch import Tensor, nn

from graphveil.federation.core.messages import Receive, Send
from graphveil.federation.core.networks import Propagation, own_structure
from graphveil.federation.core.programs import Checkpoint
from graphveil.federation.core.publication import Publisher
from graphveil.federation.core.setting import Setting
from graphveil.federation.core.states import (
    State,
    adam_state,
    load_adam,
    load_module,
    load_publisher,
    module_state,
    publisher_state,
)
from graphveil.federation.crypto import ring
from graphveil.federation.crypto.masks import MaskKey
from graphveil.federation.crypto.products import Left, Masked, Product, Talk, multiply, products_with, set_up
from graphveil.federation.crypto.sharing import reconstruct, secret_numbers, truncate
from graphveil.federation.modes.labels import LabelDesk
from graphveil.federation.modes.own import operator_of
from graphveil.models.initial import glorot
from graphveil.privacy import Randomness


@dataclass(frozen=True)
class Holding:
    """What one holder has: features [n, d_i] float (dense or scipy CSR), edges [2, E], labels at the label holder.

    Attributes:
        bound: the declared largest absolute value of a feature.
    """

    features: Any
    edge_index: Tensor
    bound: float = 1.0
    desk: LabelDesk | None = None

    @property
    def nodes(self) -> int:
        """n."""
        return int(self.features.shape[0])


def lefts_of(setting: Setting, nodes: int) -> tuple[Left, ...]:
    """Return the private matrices of paper mode: every holder's features."""
    if setting.mode != "paper":
        return ()
    return tuple(
        Left(
            member.name,
            member.name,
            tuple(name for name in setting.names if name != member.name),
            nodes,
            member.columns,
        )
        for member in setting.members
    )


def products_of(setting: Setting, nodes: int, *, transposed: bool = False) -> tuple[Product, ...]:
    """Return all products of one round, forward or (transposed) backward."""
    return products_with(lefts_of(setting, nodes), setting.width, transposed=transposed)


def holder(
    me: str,
    setting: Setting,
    holding: Holding,
    *,
    randomness: Randomness,
    generator: torch.Generator,
    done: int = 0,
    state: State | None = None,
) -> Talk:
    """The program of one holder; returns its trained networks, its publisher, and at the label holder the predictions.

    Args:
        randomness: of shares and of the noise's key. generator: of initial weights.
        done: rounds that are finished; state: as of then, of a checkpoint.
    """
    propagation = Propagation(setting.aggregator, setting.width, setting.hops, generator=generator)
    structure = own_structure(setting.aggregator, holding.edge_index, holding.nodes)
    publisher = Publisher(setting.publication, MaskKey.fresh(randomness))
    first = (_Shared if setting.mode == "paper" else _Own)(me, setting, holding, randomness, generator)
    optimiser = torch.optim.Adam(
        [*propagation.parameters(), *first.parameters()],
        lr=setting.learning_rate,
        weight_decay=setting.weight_decay,
    )
    parts = {
        "propagation": propagation,
        "adam": optimiser,
        "first": first,
        "publisher": publisher,
        "desk": holding.desk,
    }
    if state is not None:
        restore(parts, state)
    yield from first.prepare()
    if holding.desk is not None:
        yield from holding.desk.announce(setting)
    if state is None:  # so that a first round that runs again has the same key, weights and randomized labels
        yield Checkpoint(0, partial(snapshot, parts))
    for round in range(done + 1, setting.publications + 1):
        h0 = yield from first.forward(round)
        h = propagation(h0, structure)
        rows = publisher.publish(h, round)
        yield Send(setting.server, "embeddings", rows, publisher.latest)
        if holding.desk is not None:
            yield from holding.desk.steps(setting, holding.nodes, round)
        slope = yield Receive(setting.server, "embedding-gradient", (holding.nodes, setting.width))
        optimiser.zero_grad()
        h.backward(slope)
        optimiser.step()
        yield from first.backward(h0, round)
        yield Checkpoint(round, partial(snapshot, parts), publisher.spent)
    return parts


class _Own:
    """h0 = X_i W_i, all of it at the holder."""

    def __init__(
        self, me: str, setting: Setting, holding: Holding, randomness: Randomness, generator: torch.Generator
    ) -> None:
        self._inputs = operator_of(holding.features)
        self.weight = glorot((holding.features.shape[1], setting.width), generator)

    def parameters(self) -> list[nn.Parameter]:
        return [self.weight]

    def state(self) -> dict[str, Tensor]:
        return {"first/weight": self.weight.detach().clone()}

    def load(self, state: State) -> None:
        with torch.no_grad():
            self.weight.copy_(state["first/weight"])

    def prepare(self) -> Talk:
        yield from ()

    def forward(self, round: int) -> Talk:
        yield from ()
        return self._inputs @ self.weight

    def backward(self, h0: Tensor, round: int) -> Talk:
        yield from ()


class _Shared:
    """h0 = sum_j X_j W_j on shares; W is the sum of shares that the holders drew, and nobody knows it."""

    def __init__(
        self, me: str, setting: Setting, holding: Holding, randomness: Randomness, generator: torch.Generator
    ) -> None:
        self._me, self._setting, self._nodes = me, setting, holding.nodes
        widest = max(member.columns for member in setting.members)
        ring.require_room(holding.bound, 2.0**6, widest * len(setting.members), setting.bits)
        self._lefts = lefts_of(setting, holding.nodes)
        self._matrix = ring_matrix(holding.features, setting.bits)
        self._turned = self._matrix.T.tocsr() if scipy.sparse.issparse(self._matrix) else self._matrix.T.contiguous()
        total = sum(member.columns for member in setting.members)
        scale = (6.0 / (total + setting.width)) ** 0.5 / len(setting.members) ** 0.5
        drawn = {
            member.name: secret_numbers((member.columns, setting.width), randomness=randomness)
            for member in setting.members
        }
        self.shares = {name: ring.encode(numbers * scale, setting.bits) for name, numbers in drawn.items()}
        self._pull: Tensor | None = None
        self._masked: Masked | None = None

    def parameters(self) -> list[nn.Parameter]:
        return []

    def state(self) -> dict[str, Tensor]:
        found = {f"first/shares/{name}": share for name, share in self.shares.items()}
        return found if self._pull is None else found | {"first/pull": self._pull}

    def load(self, state: State) -> None:
        self.shares = {name: state[f"first/shares/{name}"] for name in self.shares}
        self._pull = state.get("first/pull")

    def prepare(self) -> Talk:
        me = self._me
        self._masked = yield from set_up(me, self._setting.server, self._lefts, {me: self._matrix}, transposes=True)

    def forward(self, round: int) -> Talk:
        setting, others = self._setting, [name for name in self._setting.names if name != self._me]
        products = products_of(setting, self._nodes)
        rights = {product: self.shares[product.left.name] for product in products}
        found = yield from multiply(self._me, setting.server, self._kept(), products, rights, f"forward {round}")
        mine = reconstruct([ring.matmul(self._matrix, self.shares[self._me]), *found.values()])
        for other in others:
            yield Send(other, "opened-share", mine)
        opened = [mine]
        for other in others:
            opened.append((yield Receive(other, "opened-share", (self._nodes, setting.width))))
        return ring.decode(reconstruct(opened), 2 * setting.bits).requires_grad_()

    def backward(self, h0: Tensor, round: int) -> Talk:
        setting, me = self._setting, self._me
        slope = h0.grad if h0.grad is not None else torch.zeros_like(h0)
        self._pull = slope if self._pull is None else setting.momentum * self._pull + slope
        step = ring.encode(setting.shared_rate * self._pull, setting.bits)
        products = products_of(setting, self._nodes, transposed=True)
        rights = dict.fromkeys(products, step)
        found = yield from multiply(me, setting.server, self._kept(), products, rights, f"backward {round}")
        self.shares[me] = self.shares[me] - (ring.matmul(self._turned, step) >> setting.bits)
        for product, share in found.items():
            cut = truncate(share, setting.bits, first=product.left.owner == me)
            self.shares[product.left.name] = self.shares[product.left.name] - cut

    def _kept(self) -> Masked:
        if self._masked is None:
            raise RuntimeError("the set-up has not run")
        return self._masked


def snapshot(parts: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return the state of a holder's networks, optimiser, first layer, publisher and desk."""
    found = module_state("propagation", parts["propagation"]) | adam_state("adam", parts["adam"])
    found |= parts["first"].state() | publisher_state(parts["publisher"])
    return found | (parts["desk"].state() if parts["desk"] is not None else {})


def restore(parts: Mapping[str, Any], state: State) -> None:
    """Set all of them from a checkpoint."""
    load_module("propagation", parts["propagation"], state)
    load_adam("adam", parts["adam"], state)
    parts["first"].load(state)
    load_publisher(parts["publisher"], state)
    if parts["desk"] is not None:
        parts["desk"].load(state)


def ring_matrix(features: Any, bits: int) -> Any:
    """Return features as ring elements: scipy CSR where they are sparse, else int64 [n, d]."""
    if scipy.sparse.issparse(features):
        matrix = features.tocsr()
        values = ring.encode(torch.from_numpy(matrix.data), bits).numpy()
        return scipy.sparse.csr_array((values, matrix.indices, matrix.indptr), shape=matrix.shape)
    return ring.encode(torch.as_tensor(features), bits)


def weights_of(shares: Mapping[str, Tensor], bits: int) -> dict[str, Tensor]:
    """Return a holder's shares of each block as numbers; for tests, which add them up."""
    return {name: ring.decode(share, bits) for name, share in shares.items()}
