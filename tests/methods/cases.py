"""What the conformance suite is told about a method, and the method fitted once for all of its tests."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from torch import Tensor

from graphveil.methods.base.estimator import Estimator
from graphveil.methods.base.people.released import topology_of
from graphveil.privacy import SeededRandomness
from tests.methods import links_made, made

Inductive = Literal["reports", "public", "never"]


@dataclass(frozen=True)
class Case:
    """One method under test.

    Args:
        build: an unfitted method, for a seed.
        features, labels: epsilon of each report; inf for public, 0 where none is sent.
        inductive: what a new graph's people must send for a prediction: reports, public features, or it cannot be.
        dimension: features of the test graph (100: sparse, 20: dense).
        trains: whether there is anything that a seed decides.
        one_report: whether everybody sends one of the two reports and not both.
        links: epsilon of a bit of a neighbour list; None where the edges are public and no list is collected.
        mode: who reports a relationship.
    """

    build: Callable[..., Any]
    features: float
    labels: float
    inductive: Inductive
    dimension: int = 100
    trains: bool = True
    one_report: bool = False
    links: float | None = None
    mode: str = "lower"

    @property
    def relationship(self) -> float:
        return (self.links or 0.0) * (2 if self.mode == "both" else 1)

    @property
    def prices(self) -> dict[str, float]:
        """Epsilon of everything that people send, by unit."""
        lists = {"links": self.relationship} if self.lists else {}
        return {"features": self.features, "labels": self.labels, **lists}

    @property
    def private(self) -> bool:
        return any(0 < epsilon < math.inf for epsilon in self.prices.values())

    @property
    def lists(self) -> bool:
        """Whether neighbour lists are collected."""
        return self.links is not None

    def graph(self, seed: int = 1) -> Any:
        if self.lists:
            return links_made.graph(directed=self.mode == "directed", seed=seed)
        return made.graph(self.dimension, seed=seed)

    def changed(self, graph: Any, **parts: Any) -> Any:
        """The same people with other features or labels."""
        other = made.changed(graph, **parts)
        if self.lists:
            other.ids = graph.get("ids")
        return other

    def neighbour(self, graph: Any) -> Any:
        return links_made.neighbour(graph) if self.lists else made.neighbour(graph)

    def seal(self, graph: Any) -> Any:
        """The public part of a graph."""
        return links_made.Sealed(graph) if self.lists else made.Sealed(graph)

    def server(self, method: Any, released: Any, graph: Any = None) -> Any:
        """The server's half: a method on reports, and on the edges where these are public."""
        public = () if self.lists else (topology_of(self.graph() if graph is None else graph),)
        return method.fit_reports(released, *public)

    def people(self, released: Any) -> Any:
        """Reports on features and labels."""
        return released.people if self.lists else released

    def tensors(self, released: Any) -> dict[str, Tensor]:
        return links_made.tensors_of(released) if self.lists else made.tensors_of(released)

    def ask(self, method: Any, graph: Any, randomness: Any = None) -> Any:
        """What a method says of people who were not in the run; without ids that they are others has to be declared."""
        declared = {"people": "other"} if self.inductive == "reports" and not self.lists else {}
        return method.predict_proba(graph, randomness=randomness, **declared)

    def fit(self, graph: Any = None, *, seed: int = 0, noise: int = 1) -> Any:
        graph = self.graph() if graph is None else graph
        return self.build(seed=seed).fit(graph, split=made.split_of(graph), randomness=SeededRandomness(noise))


@cache
def fit_once(case: Case) -> Any:
    """Fit a case on its own graph, once for all tests."""
    return case.fit()


def copied(method: Any) -> Any:
    """The same fitted method with a memory and an account of its own: what it holds is replaced, never changed."""
    if not isinstance(method, Estimator):
        return copy(method)
    copied = copy(method)
    copied.account = replace(copied.account)
    return copied


def load_like(method: Any, path: Path) -> Any:
    """A method of the same kind as another, from a file."""
    return type(method).load(path)
