"""The family of published counts: what they are held against, and what they cost.

public-edges   the same readings of public edges, features and labels, without the counts
no-edges       the same of features and labels alone
ceiling        the same method, with counts behind no noise to speak of
rivals         made edges in place of private ones, at the same price, each with a release and a network of its own
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from graphveil.graphs import Graph, Split
from graphveil.graphs.value.checks import require_one_label
from graphveil.graphs.value.parts import GraphParts
from graphveil.methods.base.cost import assumed_propagation, network_cost
from graphveil.methods.base.family import Control, Family, Plan
from graphveil.methods.base.people.local_privacy import LocalPrivacy
from graphveil.methods.base.settings import NetworkSettings
from graphveil.methods.local.controls import hits
from graphveil.methods.release.controls import RIVAL_EDGES, release_rivals_left_out, rival_name
from graphveil.methods.release.counts.class_counts import ClassCounts
from graphveil.methods.release.counts.count_readings import read_public
from graphveil.methods.release.heterorr import HeteroRR, PublishedGraph
from graphveil.methods.release.plan import release_plan
from graphveil.methods.release.public_part import public_part_of
from graphveil.methods.release.published import domain_of
from graphveil.privacy import Randomness
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor

#: A network, three experts and two regressions without counts, as many again with them (measured, rough).
TRAININGS = 4
#: At this epsilon of an edge a count is the true one but once in a million.
HARDLY_ANY_NOISE = 30.0


class CountsFamily(Family[ClassCounts, Any]):
    """See `base.family.Family`."""

    serves_releases = True

    def used_settings(self, estimator: ClassCounts, settled: Mapping[str, object]) -> dict[str, Any]:
        return dict(settled)

    def plan(self, name: str, estimator: ClassCounts, graph: Graph | GraphParts, settled: Mapping[str, object]) -> Plan:
        """Return the plan; of the edges only public ones are looked at."""
        schema, privacy, nodes = require_one_label(graph), estimator.privacy, int(graph.num_nodes)
        figures = release_plan(estimator, graph)
        p = assumed_propagation(nodes, 2 * figures.public_edges)
        seconds, memory = network_cost(
            p, graph, NetworkSettings(model="gcn", steps_x=0), LocalPrivacy(math.inf, math.inf)
        )
        return Plan(
            method=name,
            data=schema.name,
            settings=settled,
            guarantee=privacy.guarantee(schema, domain_of(graph)),
            epsilon={"one private edge": privacy.epsilon_a},
            seconds=TRAININGS * seconds + figures.seconds,
            memory_mb=memory,
            report_bytes=0.0,
            advice=figures.advice,
            figures=figures,
        )

    def controls(
        self, estimator: ClassCounts, graph: Graph, split: Split, *, randomness: Randomness
    ) -> Mapping[str, Control]:
        part = public_part_of(graph, split, domain_of(graph), seed=estimator.seed)
        return {
            "public-edges": lambda: hits(read_public(part), graph, split),
            "no-edges": lambda: hits(part.experts(part.sums[:, :0]), graph, split),
        }

    def ceiling(self, estimator: ClassCounts, graph: Graph, split: Split, *, randomness: Randomness) -> np.ndarray:
        plain = ClassCounts(epsilon_a=HARDLY_ANY_NOISE, seed=estimator.seed)
        return hits(plain.fit(graph, split=split, randomness=randomness).predict_proba(), graph, split)

    def rivals(
        self, estimator: ClassCounts, graph: Graph, split: Split, *, randomness: Randomness
    ) -> Mapping[str, Control]:
        # What was published has its price already: a rival would need the truth, and pay once more.
        if graph.get("release") is not None:
            return {}
        too_large, epsilon = release_rivals_left_out(estimator, graph), estimator.privacy.epsilon_a

        def run(edges: str) -> np.ndarray:
            settings: dict[str, Any] = {"model": "gcn", "seed": estimator.seed}
            rival = HeteroRR(epsilon_x=math.inf, epsilon_a=epsilon, edges=edges, **settings)
            return hits(rival.fit(graph, split=split, randomness=randomness).predict_proba(), graph, split)

        return {rival_name(edges): partial(run, edges) for edges in RIVAL_EDGES if rival_name(edges) not in too_large}

    def notes(
        self,
        estimator: ClassCounts,
        graph: Graph,
        settled: Mapping[str, object],
        *,
        controlled: bool,
    ) -> tuple[str, ...]:
        """Return what the release says of itself, what was used, and which rivals are missing."""
        if estimator.published is None:
            return ()
        released = graph.get("release") is not None
        missing = release_rivals_left_out(estimator, graph) if controlled and not released else {}
        left_out = [f"rival {name} was left out: {why}" for name, why in missing.items()]
        return (*estimator.published.release.notes, f"used: {estimator.variant}", *left_out)

    def repeats_note(self, estimator: ClassCounts, repeats: int) -> str:
        return f"{repeats} repeats with fresh noise and splits: a simulation; a real release is made once"

    def collect(self, estimator: ClassCounts, graph: Graph, split: Split, *, randomness: Randomness) -> PublishedGraph:
        collected: PublishedGraph = estimator.collect(graph, split=split, randomness=randomness)
        return collected

    def train(
        self, estimator: ClassCounts, collected: PublishedGraph, graph: Graph, *, unheard: bool = False
    ) -> Tensor:
        estimator.fit_released(collected.graph, split=collected.split)
        return torch.as_tensor(collected.graph.y)


COUNTS = CountsFamily()
