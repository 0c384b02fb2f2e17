"""VFGNN's tables: a federation trained in the clear or by parties that have shares alone, or a holder alone; its price.

On shares, SecureML's arithmetic by two or more holders, and the dealer of their masks:

    masked     holder k -> others   x_k - u_k                    once a step, for all products of x
    product    a b = E F + E v + u F + w     E = a - u, F = b - v opened;  w = u v: the dealer tells the first its share
    constant   a holder's own matrix times shares, by masks that last a run (see `products`)
    cut        with the dealer's mask (see `truncation`): each holder's own cut would destroy entries, of millions

The dealer runs the same program on empty tensors: it knows every shape and each mask, and no share.
Sources: Beaver, CRYPTO 1991; Mohassel, Zhang, "SecureML", IEEE S&P 2017, section 4.  Semi-honest, nobody colludes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphveil.federation.core.messages import Transcript, simulate
from graphveil.federation.crypto.masks import KEY_BYTES, MaskKey, ZeroSum, agree_on_masks, packed, unpacked
from graphveil.federation.crypto.products import Dealer, LeftMatrix, Product, set_up, transpose
from graphveil.federation.crypto.products import Masked as MaskedMatrices
from graphveil.federation.crypto.products import multiply as multiply_constant
from graphveil.federation.crypto.ring import RingMatrix, decode, encode, matmul
from graphveil.federation.crypto.truncation import DealtKeys, Scale, deal_truncation, truncate_shared
from graphveil.federation.effects import Program, Receive, Roster, Send
from graphveil.federation.simulation import vertical_partition
from graphveil.graphs import Graph, Split
from graphveil.graphs.value.features import to_rows
from graphveil.methods.runs.experiment import split_of
from graphveil.methods.runs.intervals import interval
from graphveil.privacy import Randomness, SecureRandomness, gaussian_epsilon
from graphveil.privacy.statement.unit import EMBEDDING_ROW
from graphveil.reproduction.clear import Outcome, Part, Plan, run
from graphveil.reproduction.exhibit import Cost, Entry, Price, Run
from graphveil.reproduction.secureml import (
    SLOPE_BITS,
    LabelHolder,
    Masked,
    Multiply,
    Start,
    features_of,
    matrices_of,
    means_of,
    run_in_clear,
    train,
)

SERVER = "server"


@dataclass(frozen=True)
class _Keys:
    """Keys of one holder's parts: of the masks u, of the products w, and of cuts."""

    factor: MaskKey
    product: MaskKey
    cut: MaskKey

    @classmethod
    def of(cls, keys: Sequence[MaskKey]) -> _Keys:
        return cls(*keys)


class _Names:
    """Labels of masks, in the order in which all parties ask for them: none is used twice."""

    def __init__(self) -> None:
        self._number = 0

    def next(self) -> str:
        self._number += 1
        return str(self._number)


class _Holder:
    """A holder's arithmetic."""

    def __init__(
        self,
        zero: ZeroSum,
        keys: _Keys,
        constants: MaskedMatrices,
        own: Mapping[str, RingMatrix],
        lefts: Lefts,
        labels: LabelHolder | None,
    ) -> None:
        self._zero, self._keys, self._constants, self._lefts = zero, keys, constants, lefts
        self._own = {(name, False): matrix for name, matrix in own.items()}
        self._own |= {(name, True): transpose(matrix) for name, matrix in own.items()}
        self._names, self._roster, self._labels = _Names(), zero.roster, labels
        self._first = zero.roster.me == zero.roster.holders[0]

    def public(self, values: Tensor) -> Tensor:
        return values if self._first else torch.zeros_like(values)

    def masked(self, share: Tensor) -> Program[Masked]:
        mask = self._keys.factor.expand(self._names.next(), tuple(share.shape))
        opened = share - mask
        for name in self._roster.other_holders:
            yield Send(name, "masked-left", share - mask)
        for name in self._roster.other_holders:
            opened = opened + (yield Receive(name, "masked-left", tuple(share.shape)))
        return Masked(share, opened, mask)

    def product(self, a: Masked, b: Masked, multiply: Multiply) -> Program[Tensor]:
        label = self._names.next()
        # E F belongs to one holder alone: it enters the sum once.
        right = b.mask + b.opened if self._first else b.mask
        crossed = multiply(a.opened, right) + multiply(a.mask, b.opened)
        if self._first:
            return crossed + (yield Receive(SERVER, "correction", tuple(crossed.shape)))
        return crossed + self._keys.product.expand(label, tuple(crossed.shape))

    def by_constant(self, name: str, right: Tensor, *, transposed: bool = False) -> Program[Tensor]:
        products = self._lefts.products(name, right.shape[1], transposed=transposed)
        rights = dict.fromkeys(products, right)
        shares = list((yield from multiply_constant(self._constants, products, rights, self._names.next())).values())
        # Its owner multiplies its own share at home: whoever has both factors needs no mask.
        if (name, transposed) in self._own:
            shares.append(matmul(self._own[name, transposed], right))
        return torch.stack(shares).sum(dim=0)

    def cut(self, share: Tensor, scale: Scale) -> Program[Tensor]:
        return (yield from truncate_shared(self._zero, share, self._keys.cut, scale, self._names.next()))

    def answered(self, share: Tensor) -> Program[Tensor]:
        first, *other_holders = self._roster.holders
        # Shares of z come from a cut, which masked them anew: the label holder learns their sum and no more.
        if self._labels is None:
            yield Send(first, "opened-share", share)
            return torch.zeros_like(share)
        for name in other_holders:
            share = share + (yield Receive(name, "opened-share", tuple(share.shape)))
        # Slopes are nobody else's: all of them are the label holder's share, and masks hide it in every product.
        return encode(self._labels.slopes(decode(share)), SLOPE_BITS)


class _Dealer:
    """The dealer's arithmetic: shapes, and the masks of all holders."""

    def __init__(self, constants: Dealer, keys: Mapping[str, _Keys], lefts: Lefts, *, randomness: Randomness) -> None:
        self._constants, self._keys, self._lefts = constants, keys, lefts
        self._cuts = DealtKeys({name: own.cut for name, own in keys.items()}, MaskKey.fresh(randomness))
        self._names = _Names()

    def public(self, values: Tensor) -> Tensor:
        return values.to("meta")

    def masked(self, share: Tensor) -> Program[Masked]:
        yield from ()
        label = self._names.next()
        # What is opened stays empty here: with x - u the dealer, who has u, would know x.
        parts = [keys.factor.expand(label, tuple(share.shape)) for keys in self._keys.values()]
        return Masked(share, share, torch.stack(parts).sum(dim=0))

    def product(self, a: Masked, b: Masked, multiply: Multiply) -> Program[Tensor]:
        label, whole = self._names.next(), multiply(a.mask, b.mask)
        first, *other_holders = self._keys
        for name in other_holders:
            whole = whole - self._keys[name].product.expand(label, tuple(whole.shape))
        yield Send(first, "correction", whole)
        return whole.to("meta")

    def by_constant(self, name: str, right: Tensor, *, transposed: bool = False) -> Program[Tensor]:
        products = self._lefts.products(name, right.shape[1], transposed=transposed)
        yield from self._constants.correct(products, self._names.next())
        return torch.empty((products[0].outer, right.shape[1]), dtype=torch.int64, device="meta")

    def cut(self, share: Tensor, scale: Scale) -> Program[Tensor]:
        # The dealer has no part of what is cut.
        nothing = torch.zeros(tuple(share.shape), dtype=torch.int64)
        yield from deal_truncation(self._cuts, nothing, scale.bits, self._names.next())
        return share

    def answered(self, share: Tensor) -> Program[Tensor]:
        yield from ()
        return share


@dataclass(frozen=True)
class Lefts:
    """All holders' own matrices, by name; public sizes alone."""

    named: Mapping[str, LeftMatrix]

    @classmethod
    def of(cls, names: Sequence[str], nodes: int, columns: Sequence[int]) -> Lefts:
        """Return the features and the means of every holder.

        Args:
            names: of the holders.
            nodes: n.
            columns: of each holder's features.
        """
        matrices = {}
        for place, (owner, wide) in enumerate(zip(names, columns, strict=True)):
            partners = tuple(name for name in names if name != owner)
            for called, size in ((features_of(place), wide), (means_of(place), nodes)):
                matrices[called] = LeftMatrix(called, owner, partners, nodes, size)
        return cls(matrices)

    def products(self, name: str, width: int, *, transposed: bool) -> tuple[Product, ...]:
        left = self.named[name]
        return tuple(Product(left, other, width, transposed) for other in left.partners)


@dataclass(frozen=True)
class Shared:
    """A run on shares: the label holder's head, all messages, and the CPU seconds of all parties together."""

    head: LabelHolder
    transcript: Transcript
    seconds: float


def run_on_shares(
    plan: Plan, parts: Sequence[Part], labels: Tensor, split: Split, seed: int, *, randomness: Randomness
) -> Shared:
    """Train by the parties' own programs, in one process.

    Args:
        plan, parts, labels, split, seed: as of `run_in_clear`.
        randomness: of keys and masks.
    """
    names = tuple(f"holder{number}" for number in range(1, len(parts) + 1))
    columns = [features.shape[1] for features, _ in parts]
    lefts = Lefts.of(names, len(labels), columns)
    # A start for each party: the label holder trains the last layer of its own in place.
    starts = {name: Start.of(plan, columns, int(labels.max()) + 1, seed) for name in (SERVER, *names)}
    head = LabelHolder(plan, starts[names[0]].head, labels, split, seed)
    began = time.process_time()
    programs = {SERVER: _dealt(lefts, names, starts[SERVER], plan, randomness)}
    for place, name in enumerate(names):
        own, label_head = matrices_of(place, parts[place]), head if place == 0 else None
        programs[name] = _holder_program(Roster(name, names), lefts, own, label_head, starts[name], plan, randomness)
    _, transcript = simulate(programs)
    return Shared(head, transcript, time.process_time() - began)


def _dealt(lefts: Lefts, names: Sequence[str], start: Start, plan: Plan, randomness: Randomness) -> Program[None]:
    constants = Dealer(list(lefts.named.values()), randomness=randomness)
    yield from constants.deal(names)
    keys = {}
    for name in names:
        drawn = [MaskKey.fresh(randomness) for _ in range(3)]
        keys[name] = _Keys.of(drawn)
        # Sent to its holder alone: with another's keys a holder could take the masks off what it is sent.
        yield Send(name, "mask-keys", packed(drawn))
    yield from train(_Dealer(constants, keys, lefts, randomness=randomness), start, plan)


def _holder_program(
    roster: Roster,
    lefts: Lefts,
    own: Mapping[str, RingMatrix],
    head: LabelHolder | None,
    start: Start,
    plan: Plan,
    randomness: Randomness,
) -> Program[None]:
    zero = yield from agree_on_masks(roster, randomness=randomness)
    constants = yield from set_up(roster, list(lefts.named.values()), own, transposes=True)
    keys = _Keys.of(unpacked((yield Receive(SERVER, "mask-keys", (3, KEY_BYTES)))))
    yield from train(_Holder(zero, keys, constants, own, lefts, head), start, plan)


METHOD = "vfgnn"
DELTA = 1e-4


@dataclass(frozen=True)
class Federated:
    """The training that an entry's settings describe.

    Attributes:
        shares: of columns and edges, a number a holder.
        kind: "together"; "shares": so, by SecureML on shares and not in the clear; "alone": `holder` (from 0) has its
            own part and the labels; "mixed": one holder of everything.
    """

    plan: Plan
    shares: tuple[float, ...] = (1.0, 1.0)
    kind: str = "together"
    holder: int = 0

    @classmethod
    def of(cls, entry: Entry) -> Federated:
        settings: dict[str, Any] = dict(entry.settings)
        shares = tuple(float(part) for part in str(settings.pop("shares", "1:1")).split(":"))
        kind, holder = str(settings.pop("kind", "together")), int(settings.pop("holder", 0))
        # Alone there is nobody to multiply with: the same network on one's own columns.
        alone = {} if kind in ("together", "shares") else {"mode": "individual"}
        # As published: every iteration is validated, but in the mode that the paper does not have.
        looks = {} if settings.get("mode") == "shared-linear" else {"validate": 1}
        return cls(Plan(**{**looks, **settings, **alone}), shares, kind, holder)

    @property
    def price(self) -> Price:
        """The price of one row of one holder over all iterations; the noise hides it from the server."""
        sigma, epochs = self.plan.sigma, self.plan.epochs
        # Replacing a row moves a clipped one by 2 C, in every iteration anew.
        epsilon = gaussian_epsilon(sigma, DELTA, 2.0 * math.sqrt(epochs)) if sigma else math.inf
        return Price(EMBEDDING_ROW.text, epsilon, DELTA if sigma else 0.0)

    def parts(self, graph: Graph, seed: int) -> list[Part]:
        if self.kind == "mixed":
            return [(to_rows(graph.x), graph.edge_index)]
        dealt = vertical_partition(graph, self.shares, seed=seed)
        return [dealt[self.holder]] if self.kind == "alone" else dealt

    def trained(self, graph: Graph, split: Split, seed: int) -> tuple[Outcome, Cost | None]:
        """Train in the clear, or by the parties' own programs and return their cost too.

        Args:
            graph: of all holders together.
            split: of its nodes.
            seed: of the partition and the weights.
        """
        parts = self.parts(graph, seed)
        if self.kind == "shares":
            # Fresh masks: the accuracy does not depend on them, beyond rounding.
            shared = run_on_shares(self.plan, parts, graph.y, split, seed, randomness=SecureRandomness())
            return shared.head.best, Cost(self.plan.epochs, shared.seconds, shared.transcript.bytes)
        if self.plan.mode == "secureml":
            return run_in_clear(self.plan, parts, graph.y, split, seed).best, None
        return run(self.plan, parts, graph.y, split, seed), None


def train_federated(entry: Entry, graph: Graph, number: int) -> Run:
    """Return what an entry finds on the partition, split and seed of a number.

    Args:
        entry: the figure.
        graph: of all holders together.
        number: of the split.
    """
    federated, began = Federated.of(entry), time.perf_counter()
    split = split_of(graph, entry.split, number)
    outcome, cost = federated.trained(graph, split, number)
    right = np.zeros(int(split.test.sum()))
    right[: round(outcome.test * len(right))] = 1.0
    return Run(interval([right]), federated.price, time.perf_counter() - began, cost)
