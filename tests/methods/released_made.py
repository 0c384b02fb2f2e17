"""Small graphs with public and private edges that the tests of published graphs share."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from graphveil.graphs import Split, draw_private, make_graph
from graphveil.methods.release.public_part import PublicPart, public_part_of
from graphveil.methods.release.published import domain_of
from tests.methods import made

QUICK = {"epochs": 3, "hidden": 4, "steps_x": 2}


def graph(dimension: int = 20, *, share: float = 0.5, seed: int = 1) -> Any:
    """60 people, half of whose connections are private."""
    return draw_private(made.graph(dimension, seed=seed), share, seed=seed)


def private_pairs(start: Any) -> Tensor:
    """The private edges of a graph, u < v."""
    hidden: Tensor = start.edge_index[:, ~start.public_edges]
    return hidden[:, hidden[0] < hidden[1]]


def with_private(start: Any, pairs: Tensor, **parts: Any) -> Any:
    """The same graph with other private edges [2, m], u < v."""
    open_edges = start.edge_index[:, start.public_edges]
    both = torch.cat([open_edges, pairs, pairs.flip(0)], dim=1)
    public = torch.arange(both.shape[1]) < open_edges.shape[1]
    order = torch.argsort(both[0] * int(start.num_nodes) + both[1])
    rest = {"x": start.x, "y": start.y, "schema": start.schema, **parts}
    members = start.get("private_nodes")
    x, y, schema = rest["x"], rest["y"], rest["schema"]
    return make_graph(x, both[:, order], y, schema, public_edges=public[order], private_nodes=members)


def without_one(start: Any) -> Any:
    """A neighbour: one private edge less."""
    return with_private(start, private_pairs(start)[:, 1:])


def public_part(start: Any = None, split: Split | None = None) -> PublicPart:
    start = graph() if start is None else start
    return public_part_of(start, split or made.split_of(start), domain_of(start))


class Sealed(made.Sealed):
    """The public part of a graph; of `edge_index` the public columns alone may be looked at."""

    def __init__(self, start: Any) -> None:
        super().__init__(start)
        self.public_edges, self.private_nodes = start.public_edges, start.get("private_nodes")
