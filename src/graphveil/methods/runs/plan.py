"""What a run would promise, disturb and cost, computed from public facts before anything is collected or trained.

Noise after K hops: a coordinate's estimate has noise variance s^2 at every person, so at node v the propagated noise
has variance s^2 sum_u (P^K)_vu^2, and the largest signal that can reach it is r (P^K 1)_v, r half the declared range.
The row sums of squares are estimated by E (P^K g)_v^2 over random signs g.  Labels likewise, with the share of one
class in place of a coordinate.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from graphveil.aggregation import SparseMatrix, normalised, propagate
from graphveil.errors import InputError
from graphveil.graphs import Graph, GraphSchema
from graphveil.methods.base.core import core_of
from graphveil.methods.base.local_privacy import LocalPrivacy
from graphveil.methods.base.released import require_one_label
from graphveil.methods.base.settings import NetworkSettings
from graphveil.methods.curator.controls import Curator
from graphveil.methods.curator.dp_mlp import DPMLP
from graphveil.methods.curator.plan import CuratorPlan, curator_plan
from graphveil.methods.links.controls import LinkMethod
from graphveil.methods.links.link_beliefs import LinkBeliefsCore
from graphveil.methods.links.plan import LinkPlan, link_plan
from graphveil.methods.links.solitude import SolitudeCore
from graphveil.methods.local.advice import advised_split
from graphveil.methods.local.label_pool import FOLDS, pool_products
from graphveil.methods.local.lpgnn import LPGNNCore
from graphveil.methods.registry import METHODS, build_method
from graphveil.methods.release.controls import require_trainable
from graphveil.methods.release.heterorr import HeteroRR, domain_of
from graphveil.methods.release.plan import ReleasePlan, release_plan
from graphveil.methods.runs.used import used_settings
from graphveil.models import first_width
from graphveil.privacy import Guarantee
from graphveil.privacy.limits import LARGEST_EPSILON
from graphveil.privacy.printed import rounded_up
from graphveil.privacy.unit import RELATIONSHIP

#: Memory of the interpreter with torch and PyG loaded, MB (measured).
BASE_MEMORY_MB = 420.0
#: True entries of a list that cost is planned for, where the true ones are private.
ASSUMED_DEGREE = 10.0
#: More entries than this are not timed but extrapolated.
MOST_TIMED = 2_000_000
#: Seconds of one round of beliefs for one entry and one pair of classes (measured).
BELIEF_SECONDS = 1.6e-8
QUANTILES = (("lowest quarter", 0.0, 0.25), ("middle half", 0.25, 0.75), ("highest quarter", 0.75, 1.0))


@dataclass(frozen=True)
class NoiseAtDegree:
    """Noise-to-signal of the nodes in one band of degrees: 1 means that noise is as large as the largest signal."""

    band: str
    degree: float
    features: float | None
    labels: float | None


@dataclass(frozen=True)
class Plan:
    """The answer of :func:`plan`; every number comes from public facts and settings.

    `noise` is empty and `links` holds figures where neighbour lists are collected privately.
    """

    method: str
    data: str
    settings: Mapping[str, Any]
    guarantee: Guarantee
    epsilon: Mapping[str, float]
    noise: tuple[NoiseAtDegree, ...]
    seconds: float
    memory_mb: float
    report_bytes: float
    advice: tuple[str, ...]
    links: LinkPlan | None = None
    curator: CuratorPlan | None = None
    release: ReleasePlan | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON types."""
        return {
            "method": self.method,
            "data": self.data,
            "settings": _spelled(self.settings),
            "guarantee": self.guarantee.to_dict(),
            "guarantee_sentence": self.guarantee.sentence(),
            "epsilon": _spelled(self.epsilon),
            "noise_to_signal": [_spelled(asdict(row)) for row in self.noise],
            "seconds": self.seconds,
            "memory_mb": self.memory_mb,
            "report_bytes": self.report_bytes,
            "advice": list(self.advice),
            "links": None if self.links is None else asdict(self.links),
            "curator": None if self.curator is None else _curator_dict(self.curator),
            "release": None if self.release is None else _release_dict(self.release),
        }


def _spelled(values: Mapping[str, Any]) -> dict[str, Any]:
    """Infinities as the text "inf", which JSON can hold."""
    return {name: "inf" if isinstance(v, float) and math.isinf(v) else v for name, v in values.items()}


def plan(name: str, graph: Graph, settings: Mapping[str, Any]) -> Plan:
    """Return what training method `name` on `graph` would promise and cost.

    Only the topology (where it is public), the schema, the storage size of the features and the number of labels a
    person are looked at; no private value is read.

    Raises:
        InputError: for an unknown method or setting.
    """
    if name not in METHODS:
        raise InputError(f"method {name!r} is not known", allowed=", ".join(METHODS))
    method = build_method(name, settings, len(graph.schema.classes))
    settled = used_settings(METHODS[name].settle(settings), method)
    require_trainable(name, method, graph)
    if isinstance(method, HeteroRR):
        return plan_release(name, method, graph, settled)
    if isinstance(core_of(method), SolitudeCore | LinkBeliefsCore):
        return plan_links(name, method, graph, settled)
    if isinstance(method, Curator):
        return plan_curator(name, method, graph, settled)
    privacy: LocalPrivacy = method.privacy
    schema = graph.schema
    network: NetworkSettings | None = method.settings if isinstance(core_of(method), LPGNNCore) else None
    origin = getattr(graph, "release", None)
    p = normalised(graph.edge_index, int(graph.num_nodes))
    seconds, memory = _cost(p, graph, network, privacy, getattr(method, "rule", None))
    return Plan(
        method=name,
        data=schema.name,
        settings=settled,
        guarantee=privacy.guarantee(schema) if origin is None else origin.guarantee,
        epsilon={"features": privacy.epsilon_x or 0.0, "labels": privacy.epsilon_y},
        noise=_noise(p, privacy, schema, network),
        seconds=seconds,
        memory_mb=memory,
        report_bytes=_report_bytes(privacy, schema),
        advice=_advice(privacy, len(schema.classes)) if origin is None else ("the graph is a release: this is free",),
    )


def plan_release(name: str, method: HeteroRR, graph: Graph, settled: Mapping[str, Any]) -> Plan:
    """Return the plan of a release and a network on it; of the edges only public ones are looked at."""
    schema, privacy, nodes = graph.schema, method.privacy, int(graph.num_nodes)
    found = release_plan(method, graph)
    domain = domain_of(graph) if found.protected_pairs else None
    entries = min(int(nodes * ASSUMED_DEGREE + (found.false_edges or 0)), MOST_TIMED)
    generator = torch.Generator().manual_seed(0)
    p = normalised(torch.randint(0, nodes, (2, entries), generator=generator), nodes)
    local = LocalPrivacy(math.inf, math.inf)
    seconds, memory = _cost(p, graph, method.network.settings, local, None)
    return Plan(
        method=name,
        data=schema.name,
        settings=settled,
        guarantee=privacy.guarantee(schema, domain),
        epsilon={
            "features": privacy.epsilon_x,
            "labels": privacy.epsilon_y,
            "one private edge": privacy.epsilon_a,
        },
        noise=(),
        seconds=seconds + found.seconds,
        memory_mb=memory + ((found.false_edges or 0) + nodes * ASSUMED_DEGREE) * 100 / 1e6,
        report_bytes=0.0,
        advice=found.advice,
        release=found,
    )


def plan_links(name: str, method: LinkMethod, graph: Graph, settled: Mapping[str, Any]) -> Plan:
    """Return the plan of a method that collects lists: the links of `graph` are private and are not looked at."""
    schema, nodes = graph.schema, int(graph.num_nodes)
    require_one_label(graph)
    found = link_plan(method.links, schema, nodes)
    thinned = found is not None and found.mechanism == "degree-preserving"  # to about as many as there are true ones
    per_list = ASSUMED_DEGREE + (0.0 if found is None or thinned else found.per_person)
    entries = int(nodes * per_list * (2 if found is not None and found.mode == "lower" else 1))
    generator = torch.Generator().manual_seed(0)
    p = normalised(torch.randint(0, nodes, (2, min(entries, MOST_TIMED)), generator=generator), nodes)
    scale = max(1.0, entries / MOST_TIMED)
    network = method.settings if isinstance(core_of(method), SolitudeCore) else None
    seconds, memory = _cost(p, graph, network, method.privacy, "propagation")
    if isinstance(core_of(method), LinkBeliefsCore):
        seconds += 2 * method.rounds * entries * len(schema.classes) ** 2 * BELIEF_SECONDS
        memory += entries * len(schema.classes) * 24 / 1e6
    people = method.privacy.guarantee(schema)
    bit = math.inf if found is None else found.epsilon_bit
    relationship = math.inf if found is None else found.epsilon_relationship
    return Plan(
        method=name,
        data=schema.name,
        settings=settled,
        guarantee=method.links.guarantee(people, schema, nodes),
        epsilon={
            "features": method.privacy.epsilon_x or 0.0,
            "labels": method.privacy.epsilon_y,
            "one bit of a list": bit,
            RELATIONSHIP.text: relationship,
        },
        noise=(),
        seconds=seconds * scale,
        memory_mb=BASE_MEMORY_MB + (memory - BASE_MEMORY_MB) * scale,
        report_bytes=_report_bytes(method.privacy, schema) + (0.0 if found is None else found.report_bytes),
        advice=() if found is None else found.advice,
        links=found,
    )


def plan_curator(name: str, method: Curator, graph: Graph, settled: Mapping[str, Any]) -> Plan:
    """Return the plan of a method that a curator trains: of the graph, schema and number of nodes are looked at."""
    schema, privacy = graph.schema, method.privacy
    require_one_label(graph)
    found = curator_plan(method, schema, int(graph.num_nodes))
    return Plan(
        method=name,
        data=schema.name,
        settings=settled,
        guarantee=privacy.guarantee(schema, edges=not isinstance(method, DPMLP)),
        epsilon={f"one {privacy.unit_for(schema)}": privacy.epsilon},
        noise=(),
        seconds=found.seconds,
        memory_mb=BASE_MEMORY_MB + found.memory_mb,
        report_bytes=0.0,
        advice=found.advice,
        curator=found,
    )


def _release_dict(found: ReleasePlan) -> dict[str, Any]:
    return {**_spelled(asdict(found)), "noise": _spelled(found.noise), "advice": list(found.advice)}


def _curator_dict(found: CuratorPlan) -> dict[str, Any]:
    noise = {**_spelled(asdict(found.noise)), "sigmas": list(found.noise.sigmas)}
    return {"noise": noise, "per_node": list(found.per_node)}


def _noise(
    p: SparseMatrix, privacy: LocalPrivacy, schema: GraphSchema, network: NetworkSettings | None
) -> tuple[NoiseAtDegree, ...]:
    degree = torch.diff(p.forward.starts).double().numpy()
    mechanism = privacy.features(schema)
    feature = label = None
    if network is not None and mechanism is not None and mechanism != "public":
        middle = np.full((1, schema.dimension), (schema.low + schema.high) / 2)
        deviation = float(np.sqrt(np.asarray(mechanism.variance(middle)).mean()))
        feature = _ratios(p, network.steps_x, deviation, (schema.high - schema.low) / 2)
    labels = privacy.labels(len(schema.classes))
    if labels is not None:
        spread = labels.flip * (1 - labels.flip)
        hops = network.steps_y if network is not None else 8
        label = _ratios(p, hops, math.sqrt(spread) / (labels.keep - labels.flip), 1.0)
    order = np.argsort(degree, kind="stable")
    rows = []
    for band, low, high in QUANTILES:
        nodes = order[int(low * len(order)) : max(int(high * len(order)), int(low * len(order)) + 1)]
        values = [None if ratio is None else float(np.median(ratio[nodes])) for ratio in (feature, label)]
        rows.append(NoiseAtDegree(band, float(np.median(degree[nodes])), values[0], values[1]))
    return tuple(rows)


def _ratios(p: SparseMatrix, hops: int, deviation: float, signal: float, probes: int = 64) -> np.ndarray:
    n = p.shape[0]
    signs = torch.randint(0, 2, (n, probes), generator=torch.Generator().manual_seed(0)).float() * 2 - 1
    squares = propagate(p, signs, hops).square().mean(dim=1).double().numpy()
    reach = propagate(p, torch.ones(n, 1), hops).squeeze(1).double().numpy()
    noise = deviation * np.sqrt(squares)
    ratio: np.ndarray = np.divide(noise, signal * reach, out=np.full(n, np.inf), where=reach > 0)
    return ratio


def _cost(
    p: SparseMatrix, graph: Graph, network: NetworkSettings | None, privacy: LocalPrivacy, rule: str | None
) -> tuple[float, float]:
    """Return (seconds, MB) from one timed product and the count of products an epoch makes."""
    n, d, classes = p.shape[0], graph.schema.dimension, len(graph.schema.classes)
    if network is None:
        products, blocks = (pool_products(p.entries, classes), FOLDS + 1) if rule == "pool" else (400, 1)
        columns = blocks * classes
        seconds = products * (_product_seconds(p, columns) + n * columns * 8 / 4e9)
        return seconds, BASE_MEMORY_MB + (4 * p.nbytes + (8 + 20 * (blocks > 1)) * n * columns * 4) / 1e6
    width = first_width(network.model, network.hidden)
    wide = _product_seconds(p, width) * (network.steps_x + 1.5) * 2
    narrow = _product_seconds(p, classes) * (network.steps_y * 2 + 3)
    per_node = n * (24 * width + 40 * classes) * 4 / 4e9
    entries = _reported(privacy, graph)
    first = entries * width * 2 / 4e9
    seconds = network.epochs * (wide + narrow + per_node + first + 2e-4 + d * width * 6 / 4e9)
    memory = 4 * p.nbytes + 8 * n * width * 4 + 8 * d * width * 4 + 24 * entries + 2 * 8 * _stored(graph.x)
    return seconds, BASE_MEMORY_MB + memory / 1e6


def _product_seconds(p: SparseMatrix, width: int) -> float:
    x = torch.randn(p.shape[1], width)
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        p.forward.times(x)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def _reported(privacy: LocalPrivacy, graph: Graph) -> int:
    """Numbers that the server holds of all people's features: the sampled coordinates, or all of them."""
    n, mechanism = int(graph.num_nodes), privacy.features(graph.schema)
    if mechanism is None:
        return n  # one random coordinate a person stands in
    if mechanism == "public":
        return _stored(graph.x)
    return n * int(getattr(mechanism, "coordinates", graph.schema.dimension))


def _stored(x: Any) -> int:
    return int(x.values().numel()) if x.layout == torch.sparse_csr else int(x.numel())


def _report_bytes(privacy: LocalPrivacy, schema: GraphSchema) -> float:
    """Bytes a person sends: the mechanism's report, or every feature as 32 bits, and a class."""
    label = math.ceil(math.log2(len(schema.classes))) / 8
    mechanism = privacy.features(schema)
    if mechanism is None:
        return label
    return float(4 * schema.dimension if mechanism == "public" else mechanism.report_bytes) + label


def _advice(privacy: LocalPrivacy, classes: int) -> tuple[str, ...]:
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
