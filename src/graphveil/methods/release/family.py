"""The families that publish a graph: HeteroRR and each of its mechanisms alone, and noisy counts in place of edges."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Any, TypeVar

import numpy as np

from graphveil.graphs import Graph, Split
from graphveil.graphs.value.checks import require_one_label
from graphveil.graphs.value.parts import GraphParts
from graphveil.mechanisms import PairDomain
from graphveil.methods.base.cost import ASSUMED_DEGREE, assumed_propagation, network_cost
from graphveil.methods.base.family import Controls, Family, Plan
from graphveil.methods.base.people.local_privacy import LocalPrivacy
from graphveil.methods.base.settings import NetworkSettings
from graphveil.methods.local.controls import ceiling_of, hits
from graphveil.methods.local.family import pool_cost
from graphveil.methods.release.controls import (
    RIVAL_EDGES,
    noisy_label_notes,
    release_controls_of,
    release_rivals_left_out,
    release_rivals_of,
    rival_name,
)
from graphveil.methods.release.counts.class_counts import ClassCounts
from graphveil.methods.release.counts.count_readings import read_public
from graphveil.methods.release.edges import warning_of
from graphveil.methods.release.heterorr import HeteroRR
from graphveil.methods.release.plan import release_plan
from graphveil.methods.release.privacy import ReleasePrivacy
from graphveil.methods.release.public_part import public_part_of
from graphveil.methods.release.published import domain_of
from graphveil.methods.release.publisher import PublishedGraph, Publisher
from graphveil.privacy import Guarantee, Randomness
from graphveil.runtime.late import Tensor, torch

#: Trainings, experts among them, where a network is pooled with the public part (measured, rough).
TRAININGS = 6

E_contra = TypeVar("E_contra", bound=Publisher, contravariant=True)


def release_guarantee(graph: Graph | GraphParts, privacy: ReleasePrivacy, domain: PairDomain | None) -> Guarantee:
    """Return what a release of a graph would protect; of a graph that is a release, what it protects."""
    origin = getattr(graph, "release", None)
    return privacy.guarantee(graph.schema, domain) if origin is None else origin.guarantee


class PublishingFamily(Family[E_contra, PublishedGraph]):
    """What methods that publish a graph share, see `base.family.Family`."""

    serves_releases = True

    def rivals(self, estimator: E_contra, graph: Graph, split: Split, *, randomness: Randomness) -> Controls:
        # A release is paid for: a rival would need the truth, and pay once more.
        if graph.get("release") is not None:
            return {}
        return self.fresh_rivals(estimator, graph, split, randomness=randomness)

    def notes(
        self, estimator: E_contra, graph: Graph, settled: Mapping[str, object], *, controlled: bool
    ) -> tuple[str, ...]:
        """Return the notes of the release, what was used of it, and which rivals are missing."""
        if estimator.published is None:
            return ()
        has_truth = graph.get("release") is None
        missing = release_rivals_left_out(estimator, graph) if controlled and has_truth else {}
        left_out = [f"rival {name} was left out: {why}" for name, why in missing.items()]
        label_notes = () if has_truth else noisy_label_notes(graph.release)
        return (*estimator.published.release.notes, *self.used(estimator), *label_notes, *left_out)

    def repeats_note(self, estimator: E_contra, repeats: int) -> str:
        return f"{repeats} repeats with fresh noise and splits: a simulation; a real release is made once"

    def train(self, estimator: E_contra, collected: PublishedGraph, *, exclude_validation: bool = False) -> Tensor:
        estimator.train(collected)
        return torch.as_tensor(collected.graph.y)

    @abstractmethod
    def fresh_rivals(self, estimator: E_contra, graph: Graph, split: Split, *, randomness: Randomness) -> Controls:
        """Return other ways to publish a graph that is no release, at the same price."""

    @abstractmethod
    def used(self, estimator: E_contra) -> tuple[str, ...]:
        """Return what was used of the release, in at most one sentence."""


class ReleaseFamily(PublishingFamily[HeteroRR]):
    """See `base.family.Family`."""

    def plan(self, name: str, estimator: HeteroRR, graph: Graph | GraphParts, settled: Mapping[str, object]) -> Plan:
        """Return the plan of a release and a network on it, which reads public edges alone."""
        schema, privacy, nodes = graph.schema, estimator.privacy, int(graph.num_nodes)
        figures = release_plan(estimator, graph)
        false_edges = figures.false_edges or 0
        p = assumed_propagation(nodes, int(nodes * ASSUMED_DEGREE + false_edges))
        noisy, public = "features" in privacy.protected, LocalPrivacy(math.inf, math.inf)
        cost = network_cost(p, graph, estimator.network.settings, public, noisy=noisy)
        seconds, memory = cost if estimator.pooling == "none" else (TRAININGS * cost[0], cost[1])
        if estimator.pooling != "none" and noisy:
            pool_seconds, pool_memory = pool_cost(p, len(schema.classes))
            seconds, memory = seconds + pool_seconds, max(memory, pool_memory)
        return Plan(
            method=name,
            data=schema.name,
            settings=settled,
            guarantee=release_guarantee(graph, privacy, domain_of(graph) if figures.protected_pairs else None),
            epsilon={"features": privacy.epsilon_x, "labels": privacy.epsilon_y, "one private edge": privacy.epsilon_a},
            seconds=seconds + figures.seconds,
            memory_mb=memory + (false_edges + nodes * ASSUMED_DEGREE) * 100 / 1e6,
            report_bytes=0.0,
            advice=figures.advice,
            figures=figures,
        )

    def warning(self, estimator: HeteroRR, graph: Graph) -> str | None:
        privacy = estimator.privacy
        return None if "edges" not in privacy.protected else warning_of(privacy, domain_of(graph))

    def controls(self, estimator: HeteroRR, graph: Graph, split: Split, *, randomness: Randomness) -> Controls:
        return release_controls_of(estimator, graph, split)

    def ceiling(self, estimator: HeteroRR, graph: Graph, split: Split, *, randomness: Randomness) -> np.ndarray:
        return ceiling_of(estimator.network.settings, graph, split)

    def fresh_rivals(self, estimator: HeteroRR, graph: Graph, split: Split, *, randomness: Randomness) -> Controls:
        return release_rivals_of(estimator, graph, split, randomness=randomness)

    def used(self, estimator: HeteroRR) -> tuple[str, ...]:
        return () if estimator.reading is None else (estimator.reading.sentence,)


RELEASES = ReleaseFamily()


#: A network, three experts and two regressions without counts, as many again with them (measured, rough).
COUNT_TRAININGS = 4
#: The epsilon of an edge at which a count is wrong once in a million times.
HARDLY_ANY_NOISE = 30.0


class CountsFamily(PublishingFamily[ClassCounts]):
    """Published counts: their controls, rivals and cost, see `base.family.Family`.

    public-edges   the same readings of public edges, features and labels, without the counts
    no-edges       the same of features and labels alone
    ceiling        the same method, with hardly any noise in its counts
    rivals         synthetic edges in place of private ones, at the same price, each with a release of its own
    """

    def plan(self, name: str, estimator: ClassCounts, graph: Graph | GraphParts, settled: Mapping[str, object]) -> Plan:
        """Return the plan, which reads public edges alone."""
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
            guarantee=release_guarantee(graph, privacy, domain_of(graph)),
            epsilon={"one private edge": privacy.epsilon_a},
            seconds=COUNT_TRAININGS * seconds + figures.seconds,
            memory_mb=memory,
            report_bytes=0.0,
            advice=figures.advice,
            figures=figures,
        )

    def controls(self, estimator: ClassCounts, graph: Graph, split: Split, *, randomness: Randomness) -> Controls:
        part = public_part_of(graph, split, domain_of(graph), seed=estimator.seed)
        return {
            "public-edges": lambda: hits(read_public(part), graph, split),
            "no-edges": lambda: hits(part.experts(part.sums[:, :0]), graph, split),
        }

    def ceiling(self, estimator: ClassCounts, graph: Graph, split: Split, *, randomness: Randomness) -> np.ndarray:
        plain = ClassCounts(epsilon_a=HARDLY_ANY_NOISE, seed=estimator.seed)
        return hits(plain.fit(graph, split=split, randomness=randomness).predict_proba(), graph, split)

    def fresh_rivals(self, estimator: ClassCounts, graph: Graph, split: Split, *, randomness: Randomness) -> Controls:
        too_large, epsilon = release_rivals_left_out(estimator, graph), estimator.privacy.epsilon_a

        def run(edges: str) -> np.ndarray:
            settings: dict[str, Any] = {"model": "gcn", "seed": estimator.seed}
            rival = HeteroRR(epsilon_x=math.inf, epsilon_a=epsilon, edges=edges, **settings)
            return hits(rival.fit(graph, split=split, randomness=randomness).predict_proba(), graph, split)

        return {rival_name(edges): partial(run, edges) for edges in RIVAL_EDGES if rival_name(edges) not in too_large}

    def used(self, estimator: ClassCounts) -> tuple[str, ...]:
        return (f"used: {estimator.variant}",)


COUNTS = CountsFamily()
