"""VFGNN's tables: a federation trained in the clear or by parties that have shares alone, or a holder alone; its price.

On shares it is SecureML's arithmetic, mode "all-shares" as published, in the clear or by the parties' own programs (see
`federation.modes.all_shares_parties`).  Here every weight's start is public, everybody's z is opened in each epoch, and
each epoch is judged (see `federation.modes.all_shares_arithmetic`).  The label holder alone sees z: it drops entries
out, trains the last layer and its loss in floating point, and gives the slopes of z back.
Sources: Mohassel, Zhang, "SecureML", IEEE S&P 2017, section 4; Chen et al., IJCAI 2022, arXiv 2005.11903.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from graphveil.errors import InputError
from graphveil.federation.core.messages import Transcript, simulate
from graphveil.federation.core.networks import Combination, OutputLayer, Propagation
from graphveil.federation.core.rate import SLOPE_BITS, Rate
from graphveil.federation.crypto.products import transpose
from graphveil.federation.crypto.ring import RingMatrix, decode, encode, matmul
from graphveil.federation.crypto.truncation import Scale
from graphveil.federation.effects import Program, Roster
from graphveil.federation.modes.all_shares_arithmetic import (
    HIDDEN,
    Arithmetic,
    Masked,
    Multiply,
    Network,
    features_of,
    layer_of,
)
from graphveil.federation.modes.all_shares_parties import LeftMatrices, deal, join, matrices_of
from graphveil.federation.simulation import vertical_partition
from graphveil.graphs import Graph, Split
from graphveil.graphs.value.features import to_rows
from graphveil.methods.runs.experiment import split_of
from graphveil.methods.runs.intervals import interval
from graphveil.models.networks.layers import glorot
from graphveil.privacy import Randomness, SecureRandomness, gaussian_epsilon
from graphveil.privacy.statement.unit import EMBEDDING_ROW
from graphveil.reproduction.clear import BestEpoch, Part, Plan, run
from graphveil.reproduction.exhibit import Cost, Entry, Price, Run


@dataclass(frozen=True)
class Start:
    """What a run begins from: drawn from its seed, and known to everybody."""

    first: Sequence[Tensor]
    propagations: Sequence[Propagation]
    combination: Combination
    head: OutputLayer

    @classmethod
    def of(cls, plan: Plan, columns: Sequence[int], classes: int, seed: int) -> Start:
        """Draw the weights; InputError for a plan that shares have no arithmetic for.

        Args:
            plan, classes, seed: of the run.
            columns: of each holder's features.
        """
        if (plan.combine, plan.layers) != ("mean", 1):
            raise InputError(f"{plan.combine}, {plan.layers} hidden layers", allowed="mean, one hidden layer")
        # Everybody may know where training starts: of what is computed from private data, z alone is opened.
        generator = torch.Generator().manual_seed(seed)
        head = OutputLayer(plan.width, classes, generator=generator)
        combination = Combination("mean", len(columns), plan.width, 1, plan.dropout, generator=generator)
        propagations = [Propagation("sage", plan.width, plan.hops, generator=generator) for _ in columns]
        # Drawn for all columns at once: the variance is that of one matrix, however many holders have parts of it.
        whole, ends = glorot((sum(columns), plan.width), generator).detach(), itertools.accumulate(columns)
        first = [whole[end - wide : end] for wide, end in zip(columns, ends, strict=True)]
        return cls(first, propagations, combination, head)

    def shares(self, party: Arithmetic) -> dict[str, Tensor]:
        """Return a party's shares of all layers but the last, by name."""
        layers = {
            layer_of(i, k): pair for i, inner in enumerate(self.propagations) for k, pair in enumerate(_pairs(inner))
        }
        numbers = {features_of(holder): weight for holder, weight in enumerate(self.first)}
        for name, (weight, bias) in {**layers, HIDDEN: next(_pairs(self.combination))}.items():
            numbers |= {f"{name} weight": weight, f"{name} bias": bias[None]}
        return {name: party.public(encode(number.detach())) for name, number in numbers.items()}


def _pairs(layers: Propagation | Combination) -> Iterator[tuple[Tensor, Tensor]]:
    return zip(layers.weights, layers.biases, strict=True)


class LabelHolder:
    """The last layer and the loss, in floating point at the one who has the labels.

    `best` is what the epoch that validates best reached, `z` that of the last epoch, float32 [n, d].
    """

    def __init__(self, plan: Plan, head: OutputLayer, labels: Tensor, split: Split, seed: int) -> None:
        self._head, self._labels, self._split, self._rate = head, labels, split, plan.dropout
        self._adam = torch.optim.Adam(head.parameters(), lr=plan.learning_rate, weight_decay=plan.weight_decay)
        self._rows = split.train.nonzero().squeeze(1)
        self._generator = torch.Generator().manual_seed(seed)
        self._epoch, self._least = 0, 0.0
        self.best, self.z = BestEpoch(-1.0, 0.0, 0), torch.empty(0)

    def slopes(self, z: Tensor) -> Tensor:
        """Learn from z [n, d], keep the epoch that validates best, and return the slopes of the loss [n, d]."""
        self._epoch, self.z = self._epoch + 1, z
        # Judged before the step, so that z and the last layer are of one and the same epoch.
        self._keep(z)
        leaf = z[self._rows].requires_grad_()
        # Dropped out here, where z is known: on shares it would be a product more.
        survives = torch.rand(leaf.shape, generator=self._generator) >= self._rate
        logits = self._head(leaf * survives / (1 - self._rate))
        self._adam.zero_grad()
        loss = functional.cross_entropy(logits, self._labels[self._rows])
        loss.backward()  # type: ignore[no-untyped-call]
        self._adam.step()
        if leaf.grad is None:
            raise RuntimeError("the loss does not depend on z")
        return torch.zeros_like(z).index_copy(0, self._rows, leaf.grad)

    @torch.no_grad()
    def _keep(self, z: Tensor) -> None:
        logits, split = self._head(z), self._split
        hit = logits.argmax(dim=1) == self._labels
        val, test = (float(hit[mask].float().mean()) for mask in (split.val, split.test))
        error = float(functional.cross_entropy(logits[split.val], self._labels[split.val]))
        if (val, -error) > (self.best.val, -self._least):
            self.best, self._least = BestEpoch(val, test, self._epoch), error


def train(party: Arithmetic, start: Start, plan: Plan, nodes: int, labels: LabelHolder | None = None) -> Program[None]:
    """Train the shared layers: what every party runs.

    Args:
        party: its arithmetic.
        start, plan: the same at all parties.
        nodes: n.
        labels: at their holder alone.
    """
    rate = Rate.of(plan.shared_rate)
    network = Network(start.shares(party), len(start.first), plan.hops, first=rate, rate=rate)
    everybody = torch.arange(nodes)
    for _ in range(plan.epochs):
        z = yield from party.open((yield from network.forward(party, everybody)))
        if z is None or labels is None:
            slopes = party.public(torch.zeros(nodes, plan.width, dtype=torch.int64))
        else:
            slopes = encode(labels.slopes(decode(z)), SLOPE_BITS)
        yield from network.backward(party, slopes)


class Clear:
    """The arithmetic of one party that has every number: what shares add up to."""

    def __init__(self, matrices: Mapping[str, RingMatrix]) -> None:
        self._matrices = dict(matrices)
        # Turned round once and not in each step.
        self._transposed = {name: transpose(matrix) for name, matrix in matrices.items()}

    def public(self, values: Tensor) -> Tensor:
        return values

    def mask(self, share: Tensor) -> Program[Masked]:
        yield from ()
        return Masked(share, share, share)

    def product(self, a: Masked, b: Masked, multiply: Multiply) -> Program[Tensor]:
        yield from ()
        return multiply(a.share, b.share)

    def by_constant(self, name: str, right: Tensor, *, transposed: bool = False) -> Program[Tensor]:
        yield from ()
        return matmul((self._transposed if transposed else self._matrices)[name], right)

    def cut(self, share: Tensor, scale: Scale) -> Program[Tensor]:
        yield from ()
        if int(share.abs().max()) >= scale.reach:
            raise InputError("training leaves the room of the fixed point", remedy="lower shared_rate")
        # To the nearest unit: on shares a cut goes up or down by chance, and is right in the mean.
        return (share + (1 << (scale.bits - 1))) >> scale.bits

    def open(self, share: Tensor) -> Program[Tensor | None]:
        yield from ()
        return share


def run_in_clear(plan: Plan, parts: Sequence[Part], labels: Tensor, split: Split, seed: int) -> LabelHolder:
    """Train with every number in one place, for the accuracy that shares reach; return the label holder.

    Args:
        plan: `shared_rate` is the rate of all shared layers, see `core.rate`.
        parts: features and edges of each holder.
        labels: int64 [n].
        split: who trains, validates and tests.
        seed: of weights and dropout.
    """
    start = Start.of(plan, [features.shape[1] for features, _ in parts], int(labels.max()) + 1, seed)
    head = LabelHolder(plan, start.head, labels, split, seed)
    matrices = [matrices_of(holder, *part) for holder, part in enumerate(parts)]
    party = Clear({name: matrix for of_holder in matrices for name, matrix in of_holder.items()})
    simulate({"everything": train(party, start, plan, len(labels), head)})
    return head


SERVER = "server"


@dataclass(frozen=True)
class SharesRun:
    """A run on shares: the label holder's head, all messages, and the CPU seconds of all parties together."""

    head: LabelHolder
    transcript: Transcript
    seconds: float


def run_on_shares(
    plan: Plan, parts: Sequence[Part], labels: Tensor, split: Split, seed: int, *, randomness: Randomness
) -> SharesRun:
    """Train by the parties' own programs, in one process.

    Args:
        plan, parts, labels, split, seed: as of `run_in_clear`.
        randomness: of keys and masks.
    """
    names = tuple(f"holder{number}" for number in range(1, len(parts) + 1))
    columns = [features.shape[1] for features, _ in parts]
    lefts = LeftMatrices.of(names, len(labels), columns)
    # A start for each party: the label holder trains the last layer of its own in place.
    starts = {name: Start.of(plan, columns, int(labels.max()) + 1, seed) for name in (SERVER, *names)}
    head = LabelHolder(plan, starts[names[0]].head, labels, split, seed)
    start = time.process_time()

    def dealer() -> Program[None]:
        party = yield from deal(names, lefts, randomness=randomness)
        yield from train(party, starts[SERVER], plan, len(labels))

    def holder(index: int, name: str) -> Program[None]:
        matrices = matrices_of(index, *parts[index])
        party = yield from join(Roster(name, names), lefts, matrices, names[0], randomness=randomness)
        yield from train(party, starts[name], plan, len(labels), head if index == 0 else None)

    programs = {SERVER: dealer(), **{name: holder(index, name) for index, name in enumerate(names)}}
    _, transcript = simulate(programs)
    return SharesRun(head, transcript, time.process_time() - start)


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
        validation = {} if settings.get("mode") == "shared-linear" else {"validate": 1}
        return cls(Plan(**{**validation, **settings, **alone}), shares, kind, holder)

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

    def train_parts(self, graph: Graph, split: Split, seed: int) -> tuple[BestEpoch, Cost | None]:
        """Train in the clear, or by the parties' own programs and return their cost too.

        Args:
            graph: of all holders together.
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
        graph: of all holders together.
    """
    federated, start = Federated.of(entry), time.perf_counter()
    split = split_of(graph, entry.split, number)
    outcome, cost = federated.train_parts(graph, split, number)
    right = np.zeros(int(split.test.sum()))
    right[: round(outcome.test * len(right))] = 1.0
    return Run(interval([right]), federated.price, time.perf_counter() - start, cost)
