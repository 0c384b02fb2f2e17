"""Small graphs and watched sources of noise that the tests of this room share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from graphveil.graphs import Graph, Split, make_graph, random_split, social_graph
from graphveil.graphs.value.features import compact_dense, features_tensor
from graphveil.privacy import SeededRandomness

NODES = 60
CANARY = 0.73105857
UNKNOWN = 3  # the node whose label nobody knows


class Sealed:
    """The public part of a graph; whoever touches what is secret of it is caught."""

    secret: tuple[str, ...] = ("x", "y")

    def __init__(self, graph: Any, test: Tensor | None = None) -> None:
        """The truth of the nodes of a test may be shown, which accuracy is measured on."""
        fields = {
            name: getattr(graph, name) for name in ("num_nodes", "schema", "edge_index") if name not in self.secret
        }
        if test is not None:
            fields["y"] = torch.where(test, graph.y, -1)
        self.__dict__ |= {"ids": graph.get("ids"), **fields}

    def get(self, name: str) -> Any:
        return self.__dict__.get(name)

    def __getattr__(self, name: str) -> Any:
        if name in self.secret:
            raise AssertionError(f"{name} was read")
        raise AttributeError(name)


def sealed(graph: Graph) -> Graph:
    """The public part of a graph, for methods that take a whole one and read no more of it."""
    return cast(Graph, Sealed(graph))


class Counted:
    """A reproducible source of noise that writes down how much was asked for, in order."""

    def __init__(self, seed: int = 0) -> None:
        self._source = SeededRandomness(seed)
        self.counts: list[int] = []

    @property
    def void(self) -> str | None:
        return self._source.void

    def uint64(self, count: int) -> np.ndarray:
        self.counts.append(count)
        return self._source.uint64(count)

    def bytes(self, count: int) -> bytes:
        self.counts.append(count)
        return self._source.bytes(count)


def graph(dimension: int = 100, *, seed: int = 1) -> Any:
    """60 people in 3 communities with a canary among the features; sparse when `dimension` is 100, dense at 20."""
    people = social_graph(NODES, 6, dimension, 3, apps=4, seed=seed)
    values(people)[7] = CANARY
    people.y[UNKNOWN] = -1
    return people


def values(graph: Any) -> Tensor:
    """The stored features of a graph, which may be written to."""
    entries: Tensor = graph.x.values() if graph.x.layout == torch.sparse_csr else graph.x.view(-1)
    return entries


def dense(x: Tensor) -> np.ndarray:
    """Features as a numpy copy."""
    return (x.to_dense() if x.layout == torch.sparse_csr else x.clone()).numpy()


def changed(start: Any, *, x: np.ndarray | None = None, y: Tensor | None = None, **schema: Any) -> Any:
    """The same people and edges with other features, labels or schema fields."""
    return make_graph(
        start.x if x is None else features_tensor(compact_dense(x)),
        start.edge_index,
        start.y if y is None else y,
        replace(start.schema, **schema),
    )


def neighbour(start: Any, person: int = 5) -> Any:
    """The graph after one person's features and label were replaced."""
    x, y = dense(start.x), start.y.clone()
    x[person] = 1 - x[person]
    y[person] = (y[person] + 1) % len(start.schema.classes)
    return changed(start, x=x, y=y)


def split_of(start: Any) -> Split:
    return random_split(start, seed=0)


def tensors_of(released: Any) -> dict[str, Tensor]:
    """Everything the server was sent, by name."""
    parts = {"labels": released.labels}
    if released.features is not None and not isinstance(released.features, Tensor):
        parts |= released.features.to_tensors()
    return parts
