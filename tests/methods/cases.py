"""What the conformance suite is told about a method, and the method fitted once for all of its tests."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from graphveil.methods.base.estimator import Estimator, load_estimator
from graphveil.privacy import SeededRandomness
from tests.methods import made

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
    """

    build: Callable[..., Any]
    features: float
    labels: float
    inductive: Inductive
    dimension: int = 100
    trains: bool = True
    one_report: bool = False

    @property
    def private(self) -> bool:
        return any(0 < epsilon < math.inf for epsilon in (self.features, self.labels))

    def graph(self, seed: int = 1) -> Any:
        return made.graph(self.dimension, seed=seed)

    def ask(self, method: Any, graph: Any, randomness: Any = None) -> Any:
        """What a method says of other people than those of the run; where they report, that has to be declared."""
        said = {"people": "other"} if self.inductive == "reports" else {}
        return method.predict_proba(graph, randomness=randomness, **said)

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
    core = copy(method.core)
    core.account = replace(core.account)
    return Estimator(core)


def load_like(method: Any, path: Path) -> Any:
    """A method of the same kind as another, from a file."""
    return load_estimator(type(method.core), path) if isinstance(method, Estimator) else type(method).load(path)
