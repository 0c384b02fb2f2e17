"""Whole pipelines, each with two small graphs that differ in one protected unit, ready to be replayed."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

import torch
from torch import Tensor

from graphveil.audit.hooks import all_taps
from graphveil.audit.replay import Pipeline
from graphveil.errors import InputError
from graphveil.graphs import Graph, draw_private, make_graph, normalise_edges, random_split, social_graph
from graphveil.methods import METHODS
from graphveil.methods.base.estimator import Estimator
from graphveil.methods.base.method import Replay
from graphveil.methods.base.storage import read_method
from graphveil.methods.registry import build_method
from graphveil.privacy import Guarantee, Randomness

Fitted: TypeAlias = Estimator
_INFINITE: Final = float("inf")
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d")
#: What can be replayed, by the method's name and, after a comma, the variant; see `methods.base.method.Replay`.
PIPELINES: Final[Mapping[str, Replay]] = {
    ", ".join(filter(None, (method.name, replay.variant))): replay
    for method in METHODS.values()
    for replay in method.replays
}
_QUICK: Final = {"epochs": 3, "hidden": 8, "steps_x": 2, "steps_y": 2}


def pipeline(name: str, *, seed: int = 0, **settings: object) -> Pipeline[Graph, Fitted]:
    """Return a method, or a release with training on it, to be replayed; InputError for an unknown name.

    Args:
        name: one of `PIPELINES`.
        settings: in place of those of `PIPELINES`.
    """
    if name not in PIPELINES:
        raise InputError(f"pipeline {name!r} is not known", allowed=", ".join(PIPELINES))
    unit, own = PIPELINES[name].changes, PIPELINES[name].settings
    method_name = name.split(",")[0]
    info = METHODS[method_name]
    chosen = {key: value for key, value in _QUICK.items() if key in info.options} | dict(own) | settings
    first = social_graph(120, 6, 40, 3, apps=4, seed=seed)
    if unit == "private edge":
        first = draw_private(first, 0.5, seed=seed)
    # One split for both runs: who trains is public, and drawn anew it would differ whatever the method does.
    split = random_split(first, seed)

    def run(graph: Graph, randomness: Randomness) -> Fitted:
        method: Fitted = build_method(method_name, chosen, len(graph.schema.classes), seed=seed)
        return method.fit(graph, split=split, randomness=randomness)

    estimator = build_method(method_name, chosen, len(first.schema.classes), seed=seed)
    epsilon, delta = _claimed_budget(estimator, unit)
    # A curator's prediction of a person is made from that person's own features, and is for that person alone.
    hidden = info.trust == "central" and unit in ("person", "node")
    return Pipeline(
        target=f"{name}, one {unit}",
        run=run,
        first=first,
        second=neighbour(first, unit, split.train, int(str(chosen.get("relationships", 1)))),
        epsilon=epsilon,
        delta=delta,
        outcome=lambda method: outcome_of(method, _person(split.train) if hidden else None),
        taps=all_taps(),
    )


def outcome_of(method: Estimator, without: int | None = None) -> dict[str, object]:
    """Return what a fitted method shows: predictions, history, ledger, guarantee and the file it is saved to.

    Args:
        without: a node whose prediction is for that node alone; the file that may be handed on must not hold it.
    """
    guarantee: Guarantee = method.guarantee
    answers = method.predict_proba()
    outcome: dict[str, object] = {
        "predictions": answers if without is None else torch.cat([answers[:without], answers[without + 1 :]]),
        "history": tuple(method.history),
        "ledger": method.ledger.to_dict(),
        "guarantee": guarantee.to_dict(),
    }
    with tempfile.TemporaryDirectory() as folder:
        # The file as well: a scaler or a cached tensor in it can hold what no prediction shows.
        outcome["the model file"] = _without_times(read_method(method.save(Path(folder) / "model")))
    return outcome


def _without_times(value: object) -> object:
    """Return the content of a file without its timestamps, which no data moves."""
    if isinstance(value, str):
        return _MOMENT.sub("then", value)
    if isinstance(value, Mapping):
        return {name: _without_times(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_without_times(part) for part in value]
    return tuple(_without_times(part) for part in value) if isinstance(value, tuple) else value


def neighbour(graph: Graph, unit: str, train: Tensor, count: int = 1) -> Graph:
    """Return the graph after one unit has changed; InputError for another unit.

    Args:
        unit: "edge", "set of contacts" (a training person gets `count` more, of its class), "private edge", "label",
            "feature vector", "person" (both) or "node" (a person, whose own list is emptied too).
        train: mask [n] of the training nodes.
    """
    if unit == "edge":
        return _without(graph, lambda pairs: torch.arange(pairs.shape[1]) == _inside(pairs, train))
    if unit == "set of contacts":
        return _with_contacts(graph, train, count)
    if unit == "private edge":
        public = graph.public_edges[graph.edge_index[0] < graph.edge_index[1]]
        removed = int((~public).nonzero()[0])
        return _without(graph, lambda pairs: torch.arange(pairs.shape[1]) == removed)
    if unit not in ("label", "feature vector", "person", "node"):
        allowed = "edge, set of contacts, private edge, label, feature vector, person, node"
        raise InputError(f"unit {unit!r} is not known", allowed=allowed)
    person = _person(train)
    values, labels = graph["x"], graph["y"].clone()
    if unit != "label":
        dense = values.to_dense() if values.layout == torch.sparse_csr else values.clone()
        # Mirrored in its range: inside what was declared, and every entry moves that is not in the middle.
        dense[person] = graph.schema.high + graph.schema.low - dense[person]
        values = dense if values.layout == torch.strided else dense.to_sparse_csr()
    if unit != "feature vector":
        labels[person] = (labels[person] + 1) % len(graph.schema.classes)
    changed = make_graph(values, graph.edge_index, labels, graph.schema)
    if unit == "node":
        # The person's own list alone: that others list them stays in their lists, which the unit does not cover.
        changed.edge_index = graph.edge_index[:, graph.edge_index[0] != person]
    return changed


def _inside(pairs: Tensor, train: Tensor) -> int:
    return int((train[pairs[0]] & train[pairs[1]]).nonzero()[0])


def _with_contacts(graph: Graph, train: Tensor, count: int) -> Graph:
    """Add contacts of its own class to a training person: all say the same, and move its sum as far as it may."""
    person, edges = _person(train), graph.edge_index
    strange = train & (graph["y"] == graph["y"][person])
    strange[edges[1, edges[0] == person]] = False
    strange[person] = False
    new = strange.nonzero()[:count, 0]
    more = torch.stack([torch.full_like(new, person), new])
    all_edges = torch.cat([edges, more], dim=1)
    edge_index, _ = normalise_edges(all_edges[0].numpy(), all_edges[1].numpy(), int(graph.num_nodes), directed=False)
    return make_graph(graph["x"], edge_index, graph["y"], graph.schema)


def _without(graph: Graph, removed: Callable[[Tensor], Tensor]) -> Graph:
    """The graph without some of its undirected edges; what is public of the others stays so."""
    up = graph.edge_index[0] < graph.edge_index[1]
    pairs = graph.edge_index[:, up]
    keep = ~removed(pairs)
    left = pairs[:, keep]
    edges, _ = normalise_edges(left[0].numpy(), left[1].numpy(), int(graph.num_nodes), directed=False)
    public = graph.get("public_edges")
    if public is not None:
        public_pairs = {tuple(pair) for pair in pairs[:, public[up]].T.tolist()}
        public = torch.tensor([(min(u, v), max(u, v)) in public_pairs for u, v in edges.T.tolist()])
    members = graph.get("private_nodes")
    return make_graph(graph["x"], edges, graph["y"], graph.schema, public_edges=public, private_nodes=members)


def _person(train: Tensor) -> int:
    return int(train.nonzero()[0])


def _claimed_budget(method: Estimator, unit: str) -> tuple[float, float]:
    """The budget that a method declares for everything that one unit is part of."""
    parts = {
        "label": ("labels",),
        "feature vector": ("features",),
        "person": ("features", "labels", "nodes"),
        "node": ("nodes",),
    }.get(unit)
    people = ("features", "labels")
    budgets = [
        budget
        for budget in method.ledger.budget
        if budget.epsilon < _INFINITE and (budget.unit in parts if parts else budget.unit not in people)
    ]
    return sum(budget.epsilon for budget in budgets), sum(budget.delta for budget in budgets)
