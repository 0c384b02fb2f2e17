"""What runs, plans, tuning and commands need from a family of methods: everything that differs between families.

    LOCAL     labels, or features and labels, on a public topology
    LINKS     private neighbour lists
    CURATOR   a trusted curator trains
    RELEASES  a trusted curator publishes a graph
    BASELINES plain networks that protect nothing

A family is one object, located by `base.method.Method.family`.  Differences between its methods are attributes of their
classes (`trains_network`, `reads_edges`, `counts_classes`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from graphveil.files.serial import number_to_json
from graphveil.graphs import Graph, Split
from graphveil.graphs.value.parts import GraphParts
from graphveil.privacy import Guarantee, Randomness
from graphveil.privacy.accounting.guessing import adversary
from graphveil.runtime.late import Tensor

#: Trains something to compare with and returns 1 (right) or 0 (wrong) for every test node.
Control = Callable[[], np.ndarray]
Controls: TypeAlias = Mapping[str, Control]

#: A family's own estimators, and what they collect.
E_contra = TypeVar("E_contra", contravariant=True)
Collected = TypeVar("Collected", contravariant=True)


class Family(Protocol[E_contra, Collected]):
    """The methods of one kind, as runs, plans, tuning and commands use them.

    Attributes:
        serves_releases: whether its methods may be trained on a graph that was published already.
    """

    serves_releases: bool

    def used_settings(self, estimator: E_contra, settled: Mapping[str, object]) -> dict[str, Any]:
        """Return the settings that a built method uses: split budgets, and hops with their defaults."""
        return dict(settled)

    def plan(self, name: str, estimator: E_contra, graph: Graph | GraphParts, settled: Mapping[str, object]) -> Plan:
        """Return what a run would promise and cost; no private value of `graph` is read."""

    def warning(self, estimator: E_contra, graph: Graph) -> str | None:
        """Return what a mechanism warns of before it runs, or None; nothing private is read."""
        return None

    def controls(self, estimator: E_contra, graph: Graph, split: Split, *, randomness: Randomness) -> Controls:
        """Return what is trained without the private values in question, at no privacy cost."""

    def ceiling(self, estimator: E_contra, graph: Graph, split: Split, *, randomness: Randomness) -> np.ndarray:
        """Return the hits of the same training on raw data, which protects nothing."""

    def rivals(self, estimator: E_contra, graph: Graph, split: Split, *, randomness: Randomness) -> Controls:
        """Return other methods at the same price."""
        return {}

    def notes(
        self, estimator: E_contra, graph: Graph, settled: Mapping[str, object], *, controlled: bool
    ) -> tuple[str, ...]:
        """Return what readers of a run must know, a sentence each; `controlled`: controls and rivals were trained."""

    def repeats_note(self, estimator: E_contra, repeats: int) -> str:
        """Return what the repeats are: a simulation, or splits of one release."""
        return simulation_note(repeats)

    def train(self, estimator: E_contra, collected: Collected, *, exclude_validation: bool = False) -> Tensor:
        """Train on a collection of the family and return its labels [n] as they were released."""


#: The family of a method whose class is not known statically.
AnyFamily: TypeAlias = Family[Any, Any]


def simulation_note(repeats: int) -> str:
    return f"{repeats} repeats with fresh noise and splits: a simulation; a real collection has one report per person"


class Figures(Protocol):
    """What a family adds to a plan; `section`: the key of its figures in the JSON of the plan."""

    @property
    def section(self) -> str: ...

    def to_json(self) -> Any: ...


@dataclass(frozen=True)
class Plan:
    """What a run would promise, disturb and cost; every number comes from public facts and settings.

    Attributes:
        settings: as the built method uses them.
        guarantee: what the run would promise; epsilon: of each unit.
        seconds, memory_mb: of one run without controls; report_bytes: what one person sends.
        advice: what to look at before running, a sentence each.
        figures: what the family adds: noise by degree, or what an epsilon buys; None: nothing is disturbed.
    """

    method: str
    data: str
    settings: Mapping[str, Any]
    guarantee: Guarantee
    epsilon: Mapping[str, float]
    seconds: float
    memory_mb: float
    report_bytes: float
    advice: tuple[str, ...]
    figures: Figures | None

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON types; the sections of other families are empty."""
        sections: dict[str, Any] = {"noise_to_signal": [], "links": None, "curator": None, "release": None}
        if self.figures is not None:
            sections[self.figures.section] = self.figures.to_json()
        return {
            "method": self.method,
            "data": self.data,
            "settings": json_values(self.settings),
            "guarantee": self.guarantee.to_dict(),
            "guarantee_sentence": self.guarantee.sentence(),
            "epsilon": json_values(self.epsilon),
            "adversary": adversary(self.guarantee),
            "noise_to_signal": sections["noise_to_signal"],
            "seconds": self.seconds,
            "memory_mb": self.memory_mb,
            "report_bytes": self.report_bytes,
            "advice": list(self.advice),
            **{key: section for key, section in sections.items() if key != "noise_to_signal"},
        }


def json_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values with infinities as the text "inf"."""
    # JSON has no infinity; Python would write one all the same, and nobody else could read it.
    return {name: number_to_json(v) if isinstance(v, float) else v for name, v in values.items()}
