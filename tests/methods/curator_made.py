"""A small graph, its neighbours, sealed handles and recorded sums, for tests of the curator's methods."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from graphveil.aggregation import CountedSum, PerturbedSum, ReceiverRows
from graphveil.graphs import Split, make_graph, normalise_edges, random_split
from graphveil.graphs.value.features import compact_dense, features_tensor
from graphveil.methods import GAP, METHODS, ProGAP
from graphveil.privacy import SeededRandomness
from tests.methods import made
from tests.methods.links_made import Sealed as Unreadable

FAST: dict[str, Any] = {"epochs": 6, "hidden": 4, "passes": 4, "batch": 1000}
KINDS = {"gap": GAP, "progap": ProGAP}


def graph(dimension: int = 100, *, seed: int = 1) -> Any:
    return made.graph(dimension, seed=seed)


def split_of(start: Any) -> Split:
    return random_split(start, 0)


def quick(name: str, **settings: Any) -> dict[str, Any]:
    """Settings with which a method takes little time."""
    fast = {key: value for key, value in FAST.items() if key in METHODS[name].options}
    return {"epsilon": 2.0, **fast, **settings}


def fit(name: str, start: Any = None, *, draws: int = 1, **settings: Any) -> Any:
    """A method fitted on the small graph, in little time."""
    start = graph() if start is None else start
    method = METHODS[name].load_class()(**quick(name, **settings))
    return method.fit(start, split=split_of(start), randomness=SeededRandomness(draws))


def with_edges(start: Any, pairs: Tensor) -> Any:
    """The same people with other undirected edges [2, m]."""
    edges, _ = normalise_edges(pairs[0].numpy(), pairs[1].numpy(), int(start.num_nodes), directed=start.schema.directed)
    return make_graph(start.x, edges, start.y, start.schema)


def toggled(start: Any, pairs: set[tuple[int, int]]) -> Any:
    """The graph in which each of some undirected edges is there exactly if it was not."""
    before = {tuple(pair) for pair in start.edge_index[:, start.edge_index[0] < start.edge_index[1]].T.tolist()}
    return with_edges(start, torch.tensor(sorted(before ^ pairs)).T)


def without_edge(start: Any, edge: int = 0) -> Any:
    """The graph without one undirected edge."""
    pairs = start.edge_index[:, start.edge_index[0] < start.edge_index[1]]
    return with_edges(start, pairs[:, torch.arange(pairs.shape[1]) != edge])


def without_node(start: Any, node: int = 5) -> Any:
    """The graph after one node's features were cleared and its own list emptied; others go on listing it."""
    keep = start.edge_index[0] != node
    x = made.dense(start.x)
    x[node] = 0.0
    y = start.y.clone()
    changed = make_graph(features_tensor(compact_dense(x)), start.edge_index, y, start.schema)
    changed.edge_index = start.edge_index[:, keep]
    return changed


class Edgeless(Unreadable):
    """The public facts of a graph, with the small graph's features and labels."""

    x, y = graph().x, graph().y


class Replay:
    """Records every noisy sum of a run; in the next run gives out the recorded ones and keeps the exact inputs.

    Freezing the noisy answers makes everything after them equal on two neighbouring graphs, unless something else
    reads what is protected.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, sums: type[PerturbedSum | CountedSum] = PerturbedSum) -> None:
        self.answers: list[Tensor] = []
        self.calls: list[tuple[Any, ReceiverRows, Tensor, int]] = []
        self.replaying = False
        real: Any = sums.perturb

        def perturb(me: Any, rows: ReceiverRows, x: Tensor, *rest: Any, **named: Any) -> Tensor:
            *hop, randomness = rest
            self.calls.append((me, rows, x.clone(), hop[0] if hop else 1))
            if self.replaying:
                return self.answers[len(self.calls) - 1].clone()
            self.answers.append(real(me, rows, x, *hop, randomness, **named))
            return self.answers[-1].clone()

        monkeypatch.setattr(sums, "perturb", perturb)

    def again(self) -> list[tuple[Any, ReceiverRows, Tensor, int]]:
        """Start replaying and return the calls so far."""
        calls, self.calls, self.replaying = self.calls, [], True
        return calls
