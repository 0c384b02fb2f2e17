"""A graph value without PyG: what commands pass around, because importing PyG takes longer than many of them do.

It has the attributes of `Graph` and nothing else.  Users of the library get a PyG `Data` from `load_graph`, so that
PyG's own tools work on it; nothing inside graphveil needs more than this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphveil.graphs.value.features import features_tensor
from graphveil.graphs.value.parts import GraphParts
from graphveil.graphs.value.quiet import quiet

if TYPE_CHECKING:
    from graphveil.graphs.value.protocol import Graph


class PlainGraph:
    """A graph without PyG: its parts as attributes; `get` says None of a part that it does not have.

    Commands pass it around, because importing PyG takes longer than many of them do.
    """

    def __init__(self, parts: dict[str, object]) -> None:
        self.__dict__.update({name: value for name, value in parts.items() if value is not None})

    def get(self, key: str, default: object = None) -> object:
        return self.__dict__.get(key, default)

    def keys(self) -> list[str]:
        return list(self.__dict__)

    def __getitem__(self, key: str) -> object:
        return self.__dict__[key]

    def __setitem__(self, key: str, value: object) -> None:
        self.__dict__[key] = value

    def __contains__(self, key: str) -> bool:
        return key in self.__dict__

    def __repr__(self) -> str:
        return f"PlainGraph({', '.join(self.__dict__)})"


def plain_graph(parts: GraphParts) -> Graph:
    """Return the graph of checked parts, whose arrays it shares, without loading PyG."""
    graph: Any = PlainGraph(attributes_of(parts))
    whole: Graph = graph
    return whole


def attributes_of(parts: GraphParts) -> dict[str, object]:
    """Return what a graph has as attributes, as tensors that share the arrays; a part that is not there is None."""
    import torch

    def tensor(values: np.ndarray | None) -> torch.Tensor | None:
        with quiet():
            return None if values is None else torch.from_numpy(values)

    return {
        "x": features_tensor(parts.x),
        "edge_index": tensor(parts.edge_index),
        "y": tensor(parts.y),
        "num_nodes": parts.num_nodes,
        "schema": parts.schema,
        **{name: tensor(mask) for name, mask in parts.masks.items()},
        "ids": parts.ids,
        "public_edges": tensor(parts.public_edges),
        "private_nodes": tensor(parts.private_nodes),
        "release": parts.release,
        "image": parts.image,
    }
