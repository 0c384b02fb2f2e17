"""One figure of VFGNN's tables: a federation trained in the clear or on shares, or a holder alone, and its price."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphveil.federation.simulation import vertical_partition
from graphveil.graphs import Graph, Split
from graphveil.graphs.value.features import to_rows
from graphveil.methods.runs.experiment import split_of
from graphveil.methods.runs.intervals import interval
from graphveil.privacy import SecureRandomness, gaussian_epsilon
from graphveil.privacy.statement.unit import EMBEDDING_ROW
from graphveil.reproduction.clear import Outcome, Part, Plan, run
from graphveil.reproduction.exhibit import Entry
from graphveil.reproduction.measured import Cost, Price, Run
from graphveil.reproduction.on_shares import run_on_shares
from graphveil.reproduction.secureml import run_in_clear

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
        return cls(Plan(**{**settings, **alone}), shares, kind, holder)

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
        """Train in the clear, or by the parties' own programs and return their cost too."""
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
        entry: the figure; graph: of all holders together; number: of the split.
    """
    federated, began = Federated.of(entry), time.perf_counter()
    split = split_of(graph, entry.split, number)
    outcome, cost = federated.trained(graph, split, number)
    right = np.zeros(int(split.test.sum()))
    right[: round(outcome.test * len(right))] = 1.0
    return Run(interval([right]), federated.price, time.perf_counter() - began, cost)
