"""What a curator's run would promise and cost, from public facts and settings; no private value and no edge is read."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import graphveil
from graphveil.errors import InputError, WriteError
from graphveil.files.reading import read_json
from graphveil.files.writing import write_text
from graphveil.graphs import Graph, GraphSchema
from graphveil.graphs.named.root import user_cache
from graphveil.graphs.value.checks import require_one_label
from graphveil.graphs.value.parts import GraphParts
from graphveil.methods.base.cost import ASSUMED_DEGREE, BASE_MEMORY_MB
from graphveil.methods.base.family import Plan, json_values
from graphveil.methods.curator.privacy import Noise
from graphveil.methods.curator.settings import CuratorSettings
from graphveil.privacy import ChangedSamples
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.runtime.words import count_of

if TYPE_CHECKING:
    from graphveil.methods.curator.class_sums import ClassSums
    from graphveil.methods.curator.dp_mlp import DPMLP
    from graphveil.methods.curator.stages.recipe import StagedEstimator

#: They differ in `reads_edges` and `counts_classes`.
CuratorEstimator: TypeAlias = "StagedEstimator | DPMLP | ClassSums"
#: Eight operations forwards and backwards, at 4e9 a second: one core.
_SECONDS_A_WEIGHT = 8 / 4e9
#: Of the first training of a process, an epoch of a network apart from its rows, a number of a row in a layer, and a
#: private step of a network (digits, social-1000 and social-20000, one core, measured).
_SECONDS_TO_START, _SECONDS_AN_EPOCH, _SECONDS_A_NUMBER, _SECONDS_A_STEP = 0.7, 1.3e-3, 1.7e-8, 3e-3


@dataclass(frozen=True)
class CuratorPlan:
    """The noise of a run.

    Attributes:
        noise: see `privacy.Noise`.
        per_node: noise at each hop by the longest sum of ASSUMED_DEGREE neighbours: 1 is as large.
    """

    noise: Noise
    per_node: tuple[float, ...]
    section = "curator"

    def to_json(self) -> dict[str, Any]:
        noise = {**json_values(asdict(self.noise)), "sigmas": list(self.noise.sigmas)}
        return {"noise": noise, "per_node": list(self.per_node)}


def curator_plan(name: str, method: CuratorEstimator, graph: Graph | GraphParts, settled: Mapping[str, object]) -> Plan:
    """Return the plan of a run; of `graph` it reads the schema and the number of nodes."""
    schema, nodes, privacy = require_one_label(graph), int(graph.num_nodes), method.privacy
    noise, columns, seconds, memory = (_cost_of_sums if method.counts_classes else _cost)(method, schema, nodes)
    longest_sum = ASSUMED_DEGREE * (1 if method.counts_classes else method.w_max)
    per_node = tuple(sigma * columns**0.5 / longest_sum for sigma in noise.sigmas)
    further = () if method.counts_classes else _further_advice(method, schema, noise)
    return Plan(
        method=name,
        data=schema.name,
        settings=settled,
        guarantee=privacy.guarantee(schema, edges=method.reads_edges),
        epsilon={privacy.unit_name(schema): privacy.epsilon},
        seconds=seconds,
        memory_mb=BASE_MEMORY_MB + memory,
        report_bytes=0.0,
        advice=(*_advice(method, nodes, per_node), *further),
        figures=CuratorPlan(noise, per_node),
    )


def _cost(method: CuratorEstimator, schema: GraphSchema, nodes: int) -> tuple[Noise, int, float, float]:
    """Return the noise, the columns of a sum, and (seconds, MB) on a graph of so many nodes, half of which train."""
    people, settings = max(1, nodes // 2), cast(CuratorSettings, method.settings)
    noise = _noise(method, schema, people)
    # Counted and not timed: timing would take most of the time of a plan.
    if noise.multipliers:
        training = settings.descent("", people).steps * len(method.layers) * _SECONDS_A_STEP
    else:
        numbers = people * settings.hidden * sum(method.layers)
        training = settings.epochs * (len(method.layers) * _SECONDS_AN_EPOCH + numbers * _SECONDS_A_NUMBER)
    memory = nodes * settings.hidden * (method.hops + 1) * 4 * 8 / 1e6
    return noise, settings.hidden, _SECONDS_TO_START + training, memory


def _noise(method: CuratorEstimator, schema: GraphSchema, people: int) -> Noise:
    facts = (method.kind, method.parameters(), method.privacy, schema, people)
    return cached_noise(facts, method.privacy.epsilon, lambda: method.planned_noise(schema, people))


def _further_advice(method: CuratorEstimator, schema: GraphSchema, noise: Noise) -> Iterator[str]:
    """Yield advice on weights (see the page of gap and progap), and on predicting people who join later."""
    privacy, settings = method.privacy, cast(CuratorSettings, method.settings)
    if settings.weights != "uniform":
        yield (
            f"weights {settings.weights}: on none of nine public graphs were any weights measurably better than "
            "uniform; where people have many neighbours (Caltech36) they lost 4 to 11 points"
        )
    if noise.changed is not None:
        alone = privacy.noise(schema, hops=len(noise.sigmas), w_max=method.w_max, columns=settings.hidden)
        part, ratio = noise.changed, noise.sigmas[0] / alone.sigmas[0]
        yield (
            f"{part.name} is trained on edges in {count_of(part.steps, 'step')}, in each of which an edge changes "
            f"{count_of(part.samples, 'target')}: the sum's noise is {ratio:.1f} times that of weights which read no "
            "edge (share_hops)"
        )
    if privacy.unprotected:
        return
    if not method.reads_edges:
        yield "people who join later are predicted at no cost: no edge is read"
    elif "queries" not in method.entry.options:
        yield "people who join later are not predicted: gap and progap can, at a price (queries)"
    else:
        queries = max(1, privacy.queries)
        room = (
            f"queries={queries} makes room for {queries}" if privacy.queries else "--set queries=1 makes room for one"
        )
        yield (
            "people who join later: to predict another graph reads its edges, at "
            f"{privacy.price_of(0)} each time; {room}: {privacy.price_of(queries)} in total"
        )


def _cost_of_sums(method: CuratorEstimator, schema: GraphSchema, nodes: int) -> tuple[Noise, int, float, float]:
    classes, settings = len(schema.classes), method.settings
    # All four experts together take about three times the network on features and sums (Cora, Computers, Caltech36).
    seconds = 3 * settings.epochs * nodes * settings.hidden * (2 * classes + 20) * _SECONDS_A_WEIGHT
    memory = nodes * (settings.hidden * 8 + classes * 12) * 4 / 1e6
    return _noise(method, schema, nodes), classes, seconds, memory


def _advice(method: CuratorEstimator, nodes: int, per_node: tuple[float, ...]) -> tuple[str, ...]:
    privacy, advice = method.privacy, []
    if privacy.unprotected:
        return ("epsilon is inf: nothing is protected",)
    # At delta = 1 / n a mechanism may reveal one person entirely and still keep its promise.
    if privacy.delta * nodes > 1:
        advice.append(f"delta {rounded_up(privacy.delta)} is not below one over {nodes:,} nodes: choose a smaller one")
    if per_node and per_node[0] > 1:
        advice.append(
            f"at {ASSUMED_DEGREE:g} neighbours the noise is {per_node[0]:.1f} times the longest sum: look at the lift "
            "over no-edges before using edges at all, or raise epsilon"
        )
    if not privacy.protects_nodes:
        advice.append("edges alone are protected: what is released may show features and labels")
    return tuple(advice)


#: Libraries on which the bits of a noise depend.
_LIBRARIES = ("dp-accounting", "numpy", "scipy")
_LARGEST = 1 << 16


def cached_noise(facts: object, epsilon: float, search: Callable[[], Noise]) -> Noise:
    """Return the noise that `search` finds, from a cache on disk if it is there: the search takes longer than the rest
    of a plan.

    Only plans read the cache. A training searches its noise itself, so an altered file can mislead a plan and nothing
    else. A file holds noise and a digest of it and of everything that it follows from: settings, public facts, versions
    and our own source. A file that does not match is searched again and overwritten.

    Args:
        facts: everything that the noise follows from, distinguishable by `repr`.
        search: finds it; its errors are not cached.
    """
    libraries = [(name, version(name)) for name in _LIBRARIES]
    files = sorted(Path(graphveil.__file__).parent.rglob("*.py"))
    source = _digest(repr([(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files]))
    key = f"{facts!r} {graphveil.__version__} {platform.python_version()} {libraries} {source}"
    try:
        file = user_cache() / "plans" / f"{_digest(key)}.json"
    except InputError:  # a user without a home
        return search()
    with suppress(OSError, ValueError, TypeError, KeyError):
        stored = read_json(file, largest=_LARGEST)
        record = stored["noise"]
        if stored["digest"] == _digest(key, record):
            changed = record["changed"] and ChangedSamples(**record["changed"])
            noise = Noise(**{**record, "sigmas": tuple(record["sigmas"]), "changed": changed})
            if noise.epsilon <= epsilon:
                return noise
    noise = search()
    # On a full disk the next plan searches again.
    with suppress(OSError, WriteError):
        file.parent.mkdir(parents=True, exist_ok=True)
        record = json.loads(json.dumps(asdict(noise)))  # in the form that is read back
        write_text(file, json.dumps({"noise": record, "digest": _digest(key, record)}))
    return noise


def _digest(key: str, record: object = None) -> str:
    return hashlib.sha256(f"{key} {json.dumps(record, sort_keys=True)}".encode()).hexdigest()
