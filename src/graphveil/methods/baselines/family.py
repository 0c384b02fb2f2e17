"""The family that protects nothing: plain networks on raw features, labels and edges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from graphveil.graphs import Graph, Split
from graphveil.graphs.value.parts import GraphParts
from graphveil.methods.base.cost import network_cost, propagation_of
from graphveil.methods.base.family import Controls, Family, Plan
from graphveil.methods.base.people.released import LocalCollection
from graphveil.methods.baselines.network import PlainNetwork, open_reading, unprotected
from graphveil.methods.local.plan import plan_on_topology, repeats_on_topology
from graphveil.privacy import Randomness
from graphveil.runtime.late import Tensor


class BaselineFamily(Family[PlainNetwork, LocalCollection]):
    """See `base.family.Family`. Controls are imported late: a plan trains none."""

    serves_releases = True

    def plan(
        self, name: str, estimator: PlainNetwork, graph: Graph | GraphParts, settled: Mapping[str, object]
    ) -> Plan:
        settings = estimator.settings
        p = propagation_of(graph.edge_index, int(graph.num_nodes))
        cost = network_cost(p, graph, settings, estimator.privacy)
        planned = plan_on_topology(name, estimator.privacy, graph, settled, p=p, cost=cost, network=settings)
        published = getattr(graph, "release", None) is not None
        return planned if published else replace(planned, guarantee=unprotected(settings.model))

    def controls(self, estimator: PlainNetwork, graph: Graph, split: Split, *, randomness: Randomness) -> Controls:
        from graphveil.methods.local.controls import controls_of
        from graphveil.methods.release.controls import made_edge_controls

        controls = {**controls_of(estimator, graph, split), **made_edge_controls(estimator, graph, split)}
        private = {"labels", "edges"} & set(graph.schema.private)
        # A plain network has no epsilon that determines what is public: the declaration does.
        if private and "public-only" in controls:
            classes = len(graph.schema.classes)
            uniform = np.full(int(split.test.sum()), 1.0 / classes)
            controls["public-only"] = (lambda: uniform) if "labels" in private else controls["majority"]
        return controls

    def ceiling(self, estimator: PlainNetwork, graph: Graph, split: Split, *, randomness: Randomness) -> np.ndarray:
        from graphveil.methods.local.controls import ceiling_of

        return ceiling_of(estimator.settings, graph, split)

    def notes(
        self, estimator: PlainNetwork, graph: Graph, settled: Mapping[str, object], *, controlled: bool
    ) -> tuple[str, ...]:
        from graphveil.methods.release.controls import release_notes

        published = getattr(graph, "release", None) is not None
        if published:
            return release_notes(estimator, graph)
        model, private = estimator.settings.model, graph.schema.private
        edges_noted = controlled and model == "mlp" and "edges" in private
        return (
            open_reading(graph.schema, model),
            *(("its controls read the true edges as well",) if edges_noted else ()),
        )

    def repeats_note(self, estimator: PlainNetwork, repeats: int) -> str:
        return repeats_on_topology(estimator.released, repeats)

    def train(self, estimator: PlainNetwork, collected: LocalCollection, *, exclude_validation: bool = False) -> Tensor:
        estimator.train(collected)
        return collected.reports.labels


BASELINES = BaselineFamily()
