"""The family on a public topology: LPGNN and the label methods."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from graphveil.graphs import Graph, Split
from graphveil.graphs.value.checks import require_one_label
from graphveil.graphs.value.parts import GraphParts
from graphveil.methods.base.cost import (
    BASE_MEMORY_MB,
    Propagation,
    network_cost,
    propagation_of,
    spreading_cost,
    spreading_seconds,
)
from graphveil.methods.base.family import Controls, Family, Plan
from graphveil.methods.base.network.hops import public_hops
from graphveil.methods.base.network.start import start_notes
from graphveil.methods.base.people.released import LocalCollection, require_public_edges
from graphveil.methods.local.label_pool import (
    AT_ONCE,
    FOLDS,
    MOST_WORK,
    NETWORK_WORK,
    affordable,
    members,
    pool_products,
)
from graphveil.methods.local.plan import plan_on_topology, repeats_on_topology
from graphveil.methods.local.question import QuestionPrivacy
from graphveil.privacy import Randomness
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.runtime.late import Tensor

if TYPE_CHECKING:
    from graphveil.methods.local.controls import LocalMethod


#: Settings of methods of labels alone, beside budgets.
_OF_POOLS = ("question", "statistics", "start")


class LocalFamily(Family["LocalMethod", LocalCollection]):
    """See `base.family.Family`. Controls are imported late: a plan trains none."""

    serves_releases = True

    def used_settings(self, estimator: LocalMethod, settled: Mapping[str, object]) -> dict[str, Any]:
        used = {"epsilon_x": estimator.privacy.epsilon_x, "epsilon_y": estimator.privacy.epsilon_y}
        # Methods of labels alone use only these: a record must not list settings without effect.
        if not estimator.trains_network:
            names = ("epsilon", *used, *(name for name in _OF_POOLS if settled.get(name) is not None))
            return {name: used.get(name, value) for name, value in settled.items() if name in names}
        used |= {"steps_x": estimator.settings.steps_x, "steps_y": estimator.settings.steps_y}
        return {**settled, **{name: value for name, value in used.items() if name in settled}}

    def plan(self, name: str, estimator: LocalMethod, graph: Graph | GraphParts, settled: Mapping[str, object]) -> Plan:
        require_public_edges(graph.schema)
        if not math.isinf(estimator.privacy.epsilon_y):
            require_one_label(graph)
        classes = len(graph.schema.classes)
        p, network = propagation_of(graph.edge_index, int(graph.num_nodes)), None
        if estimator.trains_network:
            network = estimator.settings
            if estimator.open_hops:  # reports will choose them: planned by public edges
                likely: dict[str, Any] = public_hops(p.matrix, classes)
                network = replace(network, **{name: likely[name] for name in estimator.open_hops})
            cost = network_cost(p, graph, network, estimator.privacy)
            if estimator.pooling == "labels" and network.loss == "drop":
                seconds, memory = pool_cost(p, classes, NETWORK_WORK)
                cost = cost[0] + seconds, max(cost[1], memory)
        elif estimator.rule == "pool":
            cost = pool_cost(p, classes)
        else:
            cost = spreading_cost(p, classes)
        return plan_on_topology(name, estimator.privacy, graph, settled, p=p, cost=cost, network=network)

    def controls(self, estimator: LocalMethod, graph: Graph, split: Split, *, randomness: Randomness) -> Controls:
        from graphveil.methods.local.controls import controls_of

        controls = controls_of(estimator, graph, split)
        if getattr(graph, "release", None) is None:
            return controls
        from graphveil.methods.release.controls import made_edge_controls  # slow to import

        return {**controls, **made_edge_controls(estimator, graph, split)}

    def ceiling(self, estimator: LocalMethod, graph: Graph, split: Split, *, randomness: Randomness) -> np.ndarray:
        from graphveil.methods.local.controls import ceiling_of, network_settings
        from graphveil.methods.local.lpgnn import LPGNN

        pooled = isinstance(estimator, LPGNN) and estimator.pooling == "labels"
        return ceiling_of(network_settings(estimator), graph, split, pooled=pooled)

    def notes(
        self, estimator: LocalMethod, graph: Graph, settled: Mapping[str, object], *, controlled: bool
    ) -> tuple[str, ...]:
        from graphveil.methods.release.controls import release_notes

        notes = release_notes(estimator, graph) + start_notes(settled.get("start"), "label-pool", graph.schema.name)
        if estimator.trains_network:
            notes += tuple(chosen.sentence for chosen in (estimator.hops, estimator.pooled) if chosen is not None)
        total = settled.get("epsilon")
        return (*notes, _split_note(total, estimator)) if isinstance(total, int | float) else notes

    def repeats_note(self, estimator: LocalMethod, repeats: int) -> str:
        return repeats_on_topology(estimator.released, repeats)

    def train(self, estimator: LocalMethod, collected: LocalCollection, *, exclude_validation: bool = False) -> Tensor:
        keywords: dict[str, Any] = {"exclude_validation": exclude_validation} if estimator.trains_network else {}
        estimator.fit_reports(collected.reports, collected.topology, **keywords)
        return collected.reports.labels


def pool_cost(p: Propagation, classes: int, work: float = MOST_WORK) -> tuple[float, float]:
    """Return the (seconds, MB) of pooling labels over P, with at most `work` multiply-adds of costly members."""
    seconds = spreading_seconds(p, (FOLDS + 1) * (classes - 1), pool_products(p.entries, classes, work))
    numbers, costly = p.nodes * classes, affordable(p.entries, classes, work)
    # The scores of each member, out of fold and whole; the working memory of members for all blocks, or one; and the
    # messages of beliefs along edges.
    stored = 2 * members(p.entries, classes, work) * numbers
    at_once = (20 if costly else 10) * numbers * min(FOLDS + 1, max(1, AT_ONCE // max(1, numbers)))
    messages = costly * p.entries * (6 + 4 * classes)
    return seconds, BASE_MEMORY_MB + 4 * (p.nbytes + stored + at_once + messages) / 1e6


def _split_note(total: float, estimator: LocalMethod) -> str:
    privacy = estimator.privacy
    if isinstance(privacy, QuestionPrivacy):
        return f"everybody spends at most {rounded_up(total)}, on a label or on an answer, never on both"
    epsilon_x = privacy.epsilon_x
    features = "nothing (no features are collected)" if epsilon_x is None else f"{rounded_up(epsilon_x, 3)}"
    return (
        f"the total of {rounded_up(total)} per person was split as advised: "
        f"the label gets {rounded_up(privacy.epsilon_y, 3)}, the features {features}"
        + ("; with labels alone the method run is label-pool" if epsilon_x is None else "")
    )


LOCAL = LocalFamily()
