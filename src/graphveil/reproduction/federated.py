"""VFGNN's tables: a federation trained in the clear or by parties that have shares alone, or a holder alone; its price.

On shares, SecureML's arithmetic by the parties of mode "all-shares" (see `federation.modes.all_shares_parties`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from graphveil.federation.core.messages import Transcript, simulate
from graphveil.federation.crypto.ring import RingMatrix
from graphveil.federation.effects import Program, Roster
from graphveil.federation.modes.all_shares_parties import Lefts, deal, join, matrices_of
from graphveil.federation.simulation import vertical_partition
from graphveil.graphs import Graph, Split
from graphveil.graphs.value.features import to_rows
from graphveil.methods.runs.experiment import split_of
from graphveil.methods.runs.intervals import interval
from graphveil.privacy import Randomness, SecureRandomness, gaussian_epsilon
from graphveil.privacy.statement.unit import EMBEDDING_ROW
from graphveil.reproduction.clear import Outcome, Part, Plan, run
from graphveil.reproduction.exhibit import Cost, Entry, Price, Run
from graphveil.reproduction.secureml import LabelHolder, Start, run_in_clear, train

SERVER = "server"


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
        own, label_head = matrices_of(place, *parts[place]), head if place == 0 else None
        programs[name] = _holder_program(Roster(name, names), lefts, own, label_head, starts[name], plan, randomness)
    _, transcript = simulate(programs)
    return Shared(head, transcript, time.process_time() - began)


def _dealt(lefts: Lefts, names: Sequence[str], start: Start, plan: Plan, randomness: Randomness) -> Program[None]:
    party = yield from deal(names, lefts, randomness=randomness)
    yield from train(party, start, plan, lefts.all[0].rows)


def _holder_program(
    roster: Roster,
    lefts: Lefts,
    own: Mapping[str, RingMatrix],
    head: LabelHolder | None,
    start: Start,
    plan: Plan,
    randomness: Randomness,
) -> Program[None]:
    party = yield from join(roster, lefts, own, roster.holders[0], randomness=randomness)
    yield from train(party, start, plan, lefts.all[0].rows, head)


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
    federated, began = Federated.of(entry), time.perf_counter()
    split = split_of(graph, entry.split, number)
    outcome, cost = federated.trained(graph, split, number)
    right = np.zeros(int(split.test.sum()))
    right[: round(outcome.test * len(right))] = 1.0
    return Run(interval([right]), federated.price, time.perf_counter() - began, cost)
