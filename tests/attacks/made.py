"""A small graph, plain networks on it, and toy methods that leak on purpose or not at all."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor

from graphveil.aggregation import normalised
from graphveil.graphs import random_split, social_graph
from graphveil.methods.baselines.network import baseline
from graphveil.privacy import SeededRandomness


@cache
def graph(nodes: int = 300, seed: int = 3) -> Any:
    """People in three communities, sparse features."""
    return social_graph(nodes, 6, 100, 3, apps=8, seed=seed)


@cache
def plain(model: str = "gcn", epochs: int = 60, **settings: Any) -> Any:
    """A plain network trained on the small graph."""
    return baseline(model, epochs=epochs, **settings).fit(
        graph(), split=random_split(graph(), 0), randomness=SeededRandomness(0)
    )


class Constant:
    """Says the same of everybody."""

    def __init__(self, classes: int = 3) -> None:
        self.classes = classes

    def predict_proba(self, graph: Any) -> Tensor:
        return torch.full((int(graph.num_nodes), self.classes), 1 / self.classes)


class Leaky:
    """Shows everybody a mean over its neighbours' features: planted for the attacks to find."""

    def predict_proba(self, graph: Any) -> Tensor:
        x = graph.x.to_dense() if graph.x.layout == torch.sparse_csr else graph.x
        mean = normalised(graph.edge_index, int(graph.num_nodes), "mean")
        return torch.softmax((mean @ x.float())[:, :40].double() * 4, dim=1)
