"""The family that a trusted curator trains: GAP, ProGAP, class sums and the private perceptron."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from graphveil.graphs import Graph, Split
from graphveil.graphs.value.checks import require_one_label
from graphveil.graphs.value.parts import GraphParts
from graphveil.methods.base.cost import BASE_MEMORY_MB
from graphveil.methods.base.family import Control, Plan, collection_repeats
from graphveil.methods.base.network.start import start_notes
from graphveil.methods.curator.controls import CuratorEstimator, curator_ceiling, curator_controls_of, curator_rivals_of
from graphveil.methods.curator.plan import curator_plan
from graphveil.privacy import Randomness
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor


class CuratorFamily:
    """See `base.family.Family`."""

    serves_releases = False

    def used_settings(self, estimator: CuratorEstimator, settled: Mapping[str, object]) -> dict[str, Any]:
        return dict(settled)

    def plan(
        self, name: str, estimator: CuratorEstimator, graph: Graph | GraphParts, settled: Mapping[str, object]
    ) -> Plan:
        """Return the plan; of `graph`, schema and number of nodes are looked at."""
        schema, privacy = graph.schema, estimator.privacy
        require_one_label(graph)
        figures = curator_plan(estimator, schema, int(graph.num_nodes))
        return Plan(
            method=name,
            data=schema.name,
            settings=settled,
            guarantee=privacy.guarantee(schema, edges=estimator.reads_edges),
            epsilon={privacy.unit_name(schema): privacy.epsilon},
            seconds=figures.seconds,
            memory_mb=BASE_MEMORY_MB + figures.memory_mb,
            report_bytes=0.0,
            advice=figures.advice,
            figures=figures,
        )

    def warning(self, estimator: CuratorEstimator, graph: Graph) -> str | None:
        return None

    def controls(
        self, estimator: CuratorEstimator, graph: Graph, split: Split, *, randomness: Randomness
    ) -> Mapping[str, Control]:
        return curator_controls_of(estimator, graph, split, randomness=randomness)

    def ceiling(self, estimator: CuratorEstimator, graph: Graph, split: Split, *, randomness: Randomness) -> np.ndarray:
        return curator_ceiling(estimator, graph, split, randomness=randomness)

    def rivals(
        self, estimator: CuratorEstimator, graph: Graph, split: Split, *, randomness: Randomness
    ) -> Mapping[str, Control]:
        return curator_rivals_of(estimator, graph, split, randomness=randomness)

    def notes(
        self, estimator: CuratorEstimator, graph: Graph, settled: Mapping[str, object], *, controlled: bool
    ) -> tuple[str, ...]:
        return start_notes(settled.get("start"), estimator.kind, graph.schema.name)

    def repeats_note(self, estimator: CuratorEstimator, repeats: int) -> str:
        return collection_repeats(repeats)

    def collect(self, estimator: CuratorEstimator, graph: Graph, split: Split, *, randomness: Randomness) -> Any:
        return estimator.publish(graph, split=split, randomness=randomness)

    def train(self, estimator: CuratorEstimator, collected: Any, graph: Graph, *, unheard: bool = False) -> Tensor:
        estimator.fit_published(collected)
        return torch.as_tensor(collected.people.labels)


CURATOR = CuratorFamily()
