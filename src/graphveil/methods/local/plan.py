"""What a local collection disturbs and costs, from public facts and settings.

Noise after K hops: a coordinate's estimate has noise variance s^2 at every person, so at node v the propagated noise
has variance s^2 sum_u (P^K)_vu^2, and the largest signal that can reach it is r (P^K 1)_v, r half the declared range.
The row sums of squares are estimated by E (P^K g)_v^2 over random signs g.  Labels likewise, with the share of one
class in place of a coordinate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from graphveil.graphs import Graph, GraphSchema
from graphveil.graphs.value.parts import GraphParts
from graphveil.mechanisms import NotCollected, Public, PublicLabels
from graphveil.methods.base.cost import Propagation, fixed_integers, report_bytes
from graphveil.methods.base.family import Plan, json_values, simulation_note
from graphveil.methods.base.people.local_privacy import LocalPrivacy
from graphveil.methods.base.people.released import LocalReports
from graphveil.methods.base.settings import NetworkSettings
from graphveil.methods.local.entries import advised_split
from graphveil.methods.local.question import QuestionPrivacy
from graphveil.privacy.accounting.limits import LARGEST_EPSILON
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.privacy.accounting.report_bound import best_accuracy, report_information

#: Beyond so many times what a class takes, the bound on a report says nothing.
USELESS = 10.0
QUANTILES = (("lowest quarter", 0.0, 0.25), ("middle half", 0.25, 0.75), ("highest quarter", 0.75, 1.0))


@dataclass(frozen=True)
class NoiseAtDegree:
    """Noise-to-signal of the nodes in one band of degrees: 1 means that noise is as large as the largest signal."""

    band: str
    degree: float
    features: float | None
    labels: float | None


@dataclass(frozen=True)
class LocalPlan:
    """The noise beside the signal, from the lowest band of degrees to the highest."""

    noise: tuple[NoiseAtDegree, ...]
    section = "noise_to_signal"

    def to_json(self) -> list[dict[str, Any]]:
        return [json_values(asdict(row)) for row in self.noise]


def plan_on_topology(
    name: str,
    privacy: LocalPrivacy,
    graph: Graph | GraphParts,
    settled: Mapping[str, object],
    *,
    p: Propagation,
    cost: tuple[float, float],
    network: NetworkSettings | None,
) -> Plan:
    """Return what a run on a public topology would promise and cost.

    Args:
        name, privacy, settled: of the method, what people send, and settings as the built method uses them.
        graph: its schema, release and the layout of its features are looked at.
        p, cost: the propagation [n, n]; seconds and MB of one run.
        network: whose hops count; None: labels alone are spread.
    """
    schema, origin = graph.schema, getattr(graph, "release", None)
    advice = (*split_advice(privacy, len(schema.classes)), *report_advice(privacy, schema))
    return Plan(
        method=name,
        data=schema.name,
        settings=settled,
        guarantee=privacy.guarantee(schema) if origin is None else origin.guarantee,
        epsilon={"features": privacy.epsilon_x or 0.0, "labels": privacy.epsilon_y},
        seconds=cost[0],
        memory_mb=cost[1],
        report_bytes=report_bytes(privacy, schema),
        advice=advice if origin is None else ("the graph is a release: this is free",),
        figures=local_plan(p, privacy, schema, network),
    )


def repeats_on_topology(released: LocalReports | None, repeats: int) -> str:
    """Return what several runs on a public topology are."""
    # The noise was drawn once, at publication: repeats share it, and their interval does not cover it.
    if getattr(released, "origin", None) is not None:
        return f"{repeats} repeats with fresh splits of one release"
    return simulation_note(repeats)


def local_plan(
    p: Propagation, privacy: LocalPrivacy, schema: GraphSchema, network: NetworkSettings | None
) -> LocalPlan:
    """Return the noise after all hops beside the largest signal, from the public topology alone.

    Args:
        p, privacy, schema: the propagation [n, n], what people send, the public facts.
        network: whose hops count; None: labels alone are spread, 8 hops.
    """
    degree = np.diff(p.matrix.indptr).astype(np.float64)
    mechanism = privacy.features(schema)
    feature = label = None
    if network is not None and not isinstance(mechanism, Public | NotCollected):
        # At the middle of the declared range, which is public: the variance at true values would not be.
        middle = np.full((1, schema.dimension), (schema.low + schema.high) / 2)
        deviation = float(np.sqrt(mechanism.variances(middle).mean()))
        feature = _ratios(p, network.steps_x, deviation, (schema.high - schema.low) / 2)
    labels = privacy.labels(len(schema.classes))
    if not isinstance(labels, PublicLabels):
        spread = labels.flip * (1 - labels.flip)
        hops = network.steps_y if network is not None else 8
        label = _ratios(p, hops, math.sqrt(spread) / (labels.keep - labels.flip), 1.0)
    order = np.argsort(degree, kind="stable")
    rows = []
    for band, low, high in QUANTILES:
        nodes = order[int(low * len(order)) : max(int(high * len(order)), int(low * len(order)) + 1)]
        values = [None if ratio is None else float(np.median(ratio[nodes])) for ratio in (feature, label)]
        rows.append(NoiseAtDegree(band, float(np.median(degree[nodes])), values[0], values[1]))
    return LocalPlan(tuple(rows))


def _ratios(p: Propagation, hops: int, deviation: float, signal: float) -> np.ndarray:
    n = p.nodes
    # Hutchinson's estimate: the exact rows of P^K would be an n x n matrix.
    spread, mass = fixed_integers(2, (n, 64)) * np.float32(2) - np.float32(1), np.ones(n, np.float32)
    for _ in range(hops):
        spread, mass = p.matrix @ spread, p.matrix @ mass
    squares, reach = (spread**2).mean(axis=1, dtype=np.float64), mass.astype(np.float64)
    noise = deviation * np.sqrt(squares)
    ratio: np.ndarray = np.divide(noise, signal * reach, out=np.full(n, np.inf), where=reach > 0)
    return ratio


def report_advice(privacy: LocalPrivacy, schema: GraphSchema) -> tuple[str, ...]:
    """Return what a report about features can say at most, see `privacy.accounting.report_bound`; nothing where none is
    randomized.
    """
    epsilon = privacy.epsilon_x
    if epsilon is None or math.isinf(epsilon) or epsilon > LARGEST_EPSILON:
        return ()
    most, needed = report_information(epsilon), math.log(len(schema.classes))
    if most > USELESS * needed:
        return ()
    pairs = np.array([[0.5, 0.5], [0.7, 0.3], [0.9, 0.1]])
    reached = ", ".join(f"{100 * right:.0f}%" for right in best_accuracy(pairs, epsilon))
    return (
        f"a report on features at epsilon {rounded_up(epsilon, 3)} tells at most {most:.3f} nats of anything; "
        f"one of {len(schema.classes)} even classes takes {needed:.3f}",
        "where all else leaves two classes at 50:50, 70:30 and 90:10, no such report about oneself makes a guess right "
        f"more often than {reached}; a class "
        f"{rounded_up(math.exp(epsilon), 3)} times as likely as the next stays the guess",
    )


def split_advice(privacy: LocalPrivacy, classes: int) -> tuple[str, ...]:
    """Return how the same total is better split between features and label; nothing where a part is public."""
    if isinstance(privacy, QuestionPrivacy):  # nobody spends both parts
        return ("compare with label-pool at the same epsilon before asking anybody: it needs no answers",)
    if privacy.epsilon_x is None or math.isinf(privacy.epsilon_x) or math.isinf(privacy.epsilon_y):
        return ()
    total = privacy.epsilon_x + privacy.epsilon_y
    if total > LARGEST_EPSILON:  # each part may be smaller; nothing is advised to reach such a total
        return ()
    epsilon_x, epsilon_y = advised_split(total, classes)
    if epsilon_x is None:
        what = f"spend all of it on the label (--epsilon {rounded_up(total)}): no features are collected"
    else:
        label, features = rounded_up(epsilon_y, 3), rounded_up(epsilon_x, 3)
        what = f"spend {label} on the label and {features} on the features (--epsilon {rounded_up(total)})"
    return (
        f"each person spends {rounded_up(total)} in all; on the graphs measured it buys most to {what}",
        "compare with label-propagation at the same total before collecting anything: it needs no features at all",
    )
