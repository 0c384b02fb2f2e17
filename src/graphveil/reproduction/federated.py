"""The trainings of VFGNN's tables: a federation in plaintext or on shares, or a holder alone, and their price.

Training on shares is SecureML, mode "all-shares" as published, in plaintext or by the parties' own programs (see
`federation.modes.all_shares_parties`). Unlike there, initial weights are public, the z of all nodes is opened in each
epoch, and each epoch is validated (see `federation.modes.all_shares_arithmetic`). Only the label holder sees z: it
applies dropout, trains the last layer in floating point, and returns the gradient of z.
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
    """The initial weights of a run: drawn from its seed, and public."""

    first: Sequence[Tensor]  # of the first layer, for each holder's features
    propagations: Sequence[Propagation]
    combination: Combination
    head: OutputLayer

    @classmethod
    def of(cls, plan: Plan, columns: Sequence[int], classes: int, seed: int) -> Start:
        """Draw the weights; InputError for a plan that cannot be trained on shares.

        Args:
            plan, classes, seed: of the run.
            columns: the number of each holder's features.
        """
        if (plan.combine, plan.layers) != ("mean", 1):
            raise InputError(f"{plan.combine}, {plan.layers} hidden layers", allowed="mean, one hidden layer")
        # Initial weights do not depend on private data.
        generator = torch.Generator().manual_seed(seed)
        head = OutputLayer(plan.width, classes, generator=generator)
        combination = Combination("mean", len(columns), plan.width, 1, plan.dropout, generator=generator)
        propagations = [Propagation("sage", plan.width, plan.hops, generator=generator) for _ in columns]
        # Drawn as one matrix, whose variance does not depend on how many holders have parts of it.
        weight, ends = glorot((sum(columns), plan.width), generator).detach(), itertools.accumulate(columns)
        first = [weight[end - wide : end] for wide, end in zip(columns, ends, strict=True)]
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
    """The last layer and the loss, in floating point at the holder of the labels.

    Attributes:
        best: the best epoch so far.
        z: of the last epoch, float32 [n, d].
    """

    def __init__(self, plan: Plan, head: OutputLayer, labels: Tensor, split: Split, seed: int) -> None:
        self._head, self._labels, self._split, self._rate = head, labels, split, plan.dropout
        self._adam = torch.optim.Adam(head.parameters(), lr=plan.learning_rate, weight_decay=plan.weight_decay)
        self._rows = split.train.nonzero().squeeze(1)
        self._generator = torch.Generator().manual_seed(seed)
        self._epoch, self._least = 0, 0.0
        self.best, self.z = BestEpoch(-1.0, 0.0, 0), torch.empty(0)

    def slopes(self, z: Tensor) -> Tensor:
        """Train the last layer on z [n, d], keep the best epoch, and return the gradient of the loss [n, d]."""
        self._epoch, self.z = self._epoch + 1, z
        # Validated before the step, so that z and the last layer are of the same epoch.
        self._keep(z)
        leaf = z[self._rows].requires_grad_()
        # Dropout here, where z is plaintext: on shares it would take another product.
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
    """Train the shared layers: the program of every party.

    Args:
        party: its arithmetic.
        start, plan: the same at all parties.
        nodes: n.
        labels: only at the label holder.
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
    """The arithmetic on plaintext numbers, to which shares would add up."""

    def __init__(self, matrices: Mapping[str, RingMatrix]) -> None:
        self._matrices = dict(matrices)
        # Once and not in each step.
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
        # Rounds to nearest; on shares rounding is random, with the right mean.
        return (share + (1 << (scale.bits - 1))) >> scale.bits

    def open(self, share: Tensor) -> Program[Tensor | None]:
        yield from ()
        return share


def run_in_clear(plan: Plan, parts: Sequence[Part], labels: Tensor, split: Split, seed: int) -> LabelHolder:
    """Train in plaintext, for the accuracy that training on shares reaches; return the label holder.

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
    """A run on shares."""

    head: LabelHolder
    transcript: Transcript  # all messages
    seconds: float  # of CPU time, all parties together


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
    # One for each party: the label holder trains its last layer in place.
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
    """The training of an entry.

    Attributes:
        shares: of columns and edges, a number for each holder.
        kind: "together": all holders, in plaintext; "shares": all holders, by SecureML on shares; "alone": `holder`
            (from 0) with its own part and the labels; "mixed": one holder of everything.
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
        # A single holder needs no shared first layer.
        alone = {} if kind in ("together", "shares") else {"mode": "individual"}
        # The paper validates every iteration; its modes do not include "shared-linear".
        validation = {} if settings.get("mode") == "shared-linear" else {"validate": 1}
        return cls(Plan(**{**validation, **settings, **alone}), shares, kind, holder)

    @property
    def price(self) -> Price:
        """The price of one row of one holder over all iterations, against the server."""
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
        """Train; return the best epoch and, for training on shares, the cost of the parties.

        Args:
            graph: of all holders together.
            seed: of the partition and the weights.
        """
        parts = self.parts(graph, seed)
        if self.kind == "shares":
            # Masks affect the accuracy only by rounding, so they need no seed.
            shared = run_on_shares(self.plan, parts, graph.y, split, seed, randomness=SecureRandomness())
            return shared.head.best, Cost(self.plan.epochs, shared.seconds, shared.transcript.bytes)
        if self.plan.mode == "secureml":
            return run_in_clear(self.plan, parts, graph.y, split, seed).best, None
        return run(self.plan, parts, graph.y, split, seed), None


def train_federated(entry: Entry, graph: Graph, number: int) -> Run:
    """Return the result of an entry on the partition, split and seed with a number.

    Args:
        graph: of all holders together.
    """
    federated, start = Federated.of(entry), time.perf_counter()
    split = split_of(graph, entry.split, number)
    outcome, cost = federated.train_parts(graph, split, number)
    right = np.zeros(int(split.test.sum()))
    right[: round(outcome.test * len(right))] = 1.0
    return Run(interval([right]), federated.price, time.perf_counter() - start, cost)
