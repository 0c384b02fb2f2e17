"""Graphs and checks that the tests of methods with neighbour lists share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from graphveil.graphs import make_graph, social_graph
from tests.methods import made
from tests.models.test_block_model import planted


class Sealed(made.Sealed):
    """The public facts of a graph; whoever touches its features, labels or links is caught."""

    secret = ("x", "y", "edge_index")


def graph(*, directed: bool = False, seed: int = 1) -> Any:
    """60 people of `made.graph` whose links are private; directed: most links go one way; new people by `seed`."""
    plain = made.graph(20, seed=seed)
    edges = plain.edge_index
    if directed:
        edges = edges[:, ((edges.sum(dim=0) % 3 > 0) == (edges[0] < edges[1]))]
    private = ("features", "labels", "edges")
    schema = replace(plain.schema, name=f"people-{seed}", directed=directed, private=private)
    return make_graph(plain.x, edges, plain.y, schema, ids=[f"person {seed}/{v}" for v in range(made.NODES)])


def communities(nodes: int = 600, *, directed: bool = False) -> Any:
    """People in 3 communities whose links tell more than their features."""
    edges, classes = planted(nodes, 16, 0.9, seed=1)
    if directed:
        edges = edges[:, (edges.sum(dim=0) % 2 == 0) == (edges[0] < edges[1])]
    order = torch.argsort(edges[0] * nodes + edges[1])
    x = social_graph(nodes, 6, 20, 3, apps=4, seed=1).x
    return make_graph(x, edges[:, order], classes, graph(directed=directed).schema)


def toggled(start: Any, source: int, target: int) -> Any:
    """The same people with one relationship (or directed link) more, or one less."""
    codes = set((start.edge_index[0] * start.num_nodes + start.edge_index[1]).tolist())
    both = [(source, target)] if start.schema.directed else [(source, target), (target, source)]
    codes ^= {i * start.num_nodes + j for i, j in both}
    code = torch.tensor(sorted(codes))
    edges = torch.stack([code // start.num_nodes, code % start.num_nodes])
    return make_graph(start.x, edges, start.y, start.schema, ids=start.get("ids"))


def neighbour(start: Any, person: int = 5, other: int = 17) -> Any:
    """The graph after one person's features and label were replaced and one relationship of its was toggled."""
    people = made.neighbour(start, person)
    return toggled(make_graph(people.x, start.edge_index, people.y, start.schema, ids=start.get("ids")), person, other)


def tensors_of(released: Any) -> dict[str, Tensor]:
    """Everything the server was sent, by name."""
    tensors = made.tensors_of(released.people)
    for part, reports in released.lists.items():
        tensors |= {f"{part} {name}": tensor for name, tensor in reports.to_tensors().items()}
    return tensors


def likelihood(method: Any, released: Any, graph: Any) -> Tensor:
    """log Pr[all that each person sent | the graph] [n]."""
    from graphveil.mechanisms import LabelReports, NotCollected, Public, PublicLabels

    schema, people = graph.schema, getattr(released, "people", released)
    total = torch.zeros(graph.num_nodes, dtype=torch.float64)
    features, labels = method.privacy.features(schema), method.privacy.labels(len(schema.classes))
    if not isinstance(features, Public | NotCollected):
        total += features.log_likelihood(people.features, graph.x)
    if not isinstance(labels, PublicLabels):
        sent = people.labels >= 0
        total[sent] += labels.log_likelihood(LabelReports(people.labels[sent]), graph.y[sent])
    lists = method.links.parts(schema, graph.num_nodes) if people is not released else {}
    for name, part in lists.items():
        truth = part.count(graph.edge_index) if name == "degrees" else graph.edge_index
        total += part.log_likelihood(released.lists[name], truth)
    return total
