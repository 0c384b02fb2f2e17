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
from typing import Any

import numpy as np

from graphveil.graphs import Graph, Split
from graphveil.graphs.value.checks import require_one_label
from graphveil.graphs.value.parts import GraphParts
from graphveil.methods.base.cost import assumed_propagation, network_cost
from graphveil.methods.base.family import Control, Plan
from graphveil.methods.base.people.local_privacy import LocalPrivacy
from graphveil.methods.base.settings import NetworkSettings
from graphveil.methods.local.controls import hits
from graphveil.methods.release.controls import RIVAL_EDGES, release_rivals_left_out, rival_name
from graphveil.methods.release.counts.class_counts import ClassCounts
from graphveil.methods.release.counts.count_readings import read_public
from graphveil.methods.release.family import PublishingFamily
from graphveil.methods.release.heterorr import HeteroRR
from graphveil.methods.release.plan import release_plan
from graphveil.methods.release.public_part import public_part_of
from graphveil.methods.release.published import domain_of
from graphveil.privacy import Randomness

#: A network, three experts and two regressions without counts, as many again with them (measured, rough).
TRAININGS = 4
#: At this epsilon of an edge a count is the true one but once in a million.
HARDLY_ANY_NOISE = 30.0


class CountsFamily(PublishingFamily[ClassCounts]):
    """See `base.family.Family`."""

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

    def fresh_rivals(
        self, estimator: ClassCounts, graph: Graph, split: Split, *, randomness: Randomness
    ) -> Mapping[str, Control]:
        too_large, epsilon = release_rivals_left_out(estimator, graph), estimator.privacy.epsilon_a

        def run(edges: str) -> np.ndarray:
            settings: dict[str, Any] = {"model": "gcn", "seed": estimator.seed}
            rival = HeteroRR(epsilon_x=math.inf, epsilon_a=epsilon, edges=edges, **settings)
            return hits(rival.fit(graph, split=split, randomness=randomness).predict_proba(), graph, split)

        return {rival_name(edges): partial(run, edges) for edges in RIVAL_EDGES if rival_name(edges) not in too_large}

    def used(self, estimator: ClassCounts) -> tuple[str, ...]:
        return (f"used: {estimator.variant}",)


COUNTS = CountsFamily()
