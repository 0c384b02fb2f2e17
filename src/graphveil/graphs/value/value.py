"""The graph value: a PyG `Data` with a schema, or the same without PyG; built, checked and fingerprinted here."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphveil.errors import DataError, InputError
from graphveil.graphs.value.checks import (
    check_edges,
    check_features,
    check_labels,
    check_masks,
    check_private_nodes,
    check_public_edges,
    names_of,
    require_graph,
)
from graphveil.graphs.value.features import features_of, features_tensor
from graphveil.graphs.value.parts import MASKS, Graph, GraphParts, Mask, Part
from graphveil.graphs.value.schema import GraphSchema
from graphveil.runtime.late import Tensor, quiet, torch


class PlainGraph:
    """A graph without PyG: its parts as attributes; `get` returns None for an absent part.

    Commands pass it around, because importing PyG takes longer than many of them do.
    """

    def __init__(self, parts: dict[str, object]) -> None:
        self.__dict__.update(parts)

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
    return _graph(attributes_of(parts), plain=True)


def attributes_of(parts: GraphParts) -> dict[str, object]:
    """Return the attributes of a graph, as tensors that share the arrays; an absent part is None."""

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


def make_graph(
    x: Tensor,
    edge_index: Tensor,
    y: Tensor,
    schema: GraphSchema,
    *,
    masks: Mapping[str, Tensor] | None = None,
    ids: Sequence[object] | np.ndarray | None = None,
    public_edges: Tensor | None = None,
    private_nodes: Tensor | None = None,
    like: Graph | None = None,
) -> Graph:
    """Put the parts of a graph together, as a PyG `Data`.

    Args:
        x: float32 [n, d], dense or `torch.sparse_csr`.
        edge_index: int64 [2, E] as `normalise_edges` returns it.
        y, masks, ids, public_edges, private_nodes: as in `GraphParts`.
        like: the graph that this one is derived from; of a `PlainGraph` the result is plain too.

    Raises:
        DataError: labels or features outside what the schema declares, ids that do not tell the nodes apart, or parts
            of another type or shape.
    """
    if not isinstance(schema, GraphSchema):
        raise InputError(f"schema is a {type(schema).__name__}", where="make_graph", allowed="a graphveil.GraphSchema")
    _require_matrix(x)
    _require_edges(edge_index)
    parts = {"x": x, "edge_index": edge_index, "y": y, "num_nodes": x.shape[0], "schema": schema, **(masks or {})}
    extras = {"ids": ids, "public_edges": public_edges, "private_nodes": private_nodes}
    graph = _graph({**parts, **extras}, plain=isinstance(like, PlainGraph))
    _check_features(graph)
    _check_labels(graph)
    node_names(graph)
    return graph


def graph_of(parts: GraphParts) -> Graph:
    """Return the graph of checked parts, whose arrays it shares, as a PyG `Data`."""
    return _graph(attributes_of(parts), plain=False)


def parts_of(graph: Graph) -> GraphParts:
    """Return the arrays of a graph; those in main memory are shared, not copied."""
    require_graph(graph)
    masks: dict[Mask, np.ndarray] = {name: _array(mask) for name in MASKS if (mask := graph.get(name)) is not None}
    public, members = graph.get("public_edges"), graph.get("private_nodes")
    return GraphParts(
        features_of(graph.x),
        _array(graph.edge_index),
        _array(graph.y),
        graph.schema,
        masks,
        graph.get("ids"),
        None if public is None else _array(public),
        None if members is None else _array(members),
        graph.get("release"),
        graph.get("image"),
    )


def node_names(graph: Graph) -> tuple[str, ...] | None:
    """Return the ids of a graph's nodes as texts, or None; DataError as of `names_of`."""
    return names_of(getattr(graph, "ids", None), graph.num_nodes)


def validate(graph: Graph) -> Graph:
    """Check a graph value whole, and return it.

    Checked: there is a schema; shapes and types agree with it; features are finite and in the declared range; labels
    are declared classes or -1; edges join existing nodes, are sorted, unique, without self-loops and (undirected)
    symmetric; split masks are bool, disjoint and of length n; ids are distinct; public edges are public in both
    directions; private nodes exist and are distinct.

    Raises:
        DataError: names the part and the first fault in it.
    """
    if not isinstance(getattr(graph, "schema", None), GraphSchema):
        raise DataError("the graph has no GraphSchema", where="graph.schema", remedy="load it with load_graph")
    _check_features(graph)
    _check_labels(graph)
    edges = graph.get("edge_index")
    _require_edges(edges)
    edge_index, n, directed = _array(edges), int(graph.num_nodes), graph.schema.directed
    check_edges(edge_index, graph.x.shape[0], directed=directed)
    masks = (graph.get(name) for name in MASKS)
    check_masks([_array(mask) for mask in masks if mask is not None], graph.x.shape[0])
    node_names(graph)
    public, members = graph.get("public_edges"), graph.get("private_nodes")
    if public is not None:
        public_mask = _array(public) if isinstance(public, torch.Tensor) else np.empty(0)
        check_public_edges(public_mask, edge_index, n, directed=directed)
    if members is not None:
        check_private_nodes(_array(members) if isinstance(members, torch.Tensor) else np.empty(0), n)
    return graph


def _graph(attributes: Mapping[str, object], *, plain: bool) -> Graph:
    present = {name: value for name, value in attributes.items() if value is not None}
    graph: Any = PlainGraph(present)
    if not plain:
        with quiet():
            from torch_geometric.data import Data
        graph = Data(**present)
    typed: Graph = graph
    return typed


def _array(tensor: Tensor) -> np.ndarray:
    array: np.ndarray = tensor.detach().cpu().numpy()
    return array


def _require_edges(edges: object) -> None:
    if not isinstance(edges, torch.Tensor) or edges.dtype != torch.int64 or edges.dim() != 2 or edges.shape[0] != 2:
        raise DataError("edge_index is not an int64 [2, E] tensor", where="graph.edge_index")


def _require_matrix(x: object) -> None:
    if not isinstance(x, torch.Tensor) or x.dim() != 2 or x.dtype != torch.float32:
        raise DataError("x is not a float32 matrix", where="graph.x", allowed="float32 [n, d], dense or sparse CSR")
    if x.layout not in (torch.strided, torch.sparse_csr):
        raise DataError(f"x has layout {x.layout}", where="graph.x", allowed="dense or sparse CSR")


def _check_features(graph: Graph) -> None:
    x = graph.get("x")
    _require_matrix(x)
    check_features(features_of(x), graph.schema)


def _check_labels(graph: Graph) -> None:
    y, n = graph.get("y"), graph.x.shape[0]
    if not isinstance(y, torch.Tensor) or y.shape[:1] != (n,):
        raise DataError("y does not have one row for each node", where="graph.y", allowed=f"{n} rows")
    if y.dim() != 2 and y.dtype != torch.int64:
        raise DataError(f"y is {y.dtype}", where="graph.y", allowed="int64 [n] or float [n, classes]")
    check_labels(_array(y), n, graph.schema.classes)


_PARTS: tuple[Part, ...] = ("x", "y", "edge_index")


def fingerprint(graph: Graph, key: bytes, parts: Sequence[Part] = _PARTS) -> str:
    """Return 32 hexadecimal digits that change when features, labels, edges or their order do.

    Args:
        key: 1 to 64 secret bytes; without the key nobody can check a guess of the graph against its fingerprint.
    """
    # Keyed: graphs are guessable (one edge more or less), and a plain hash would confirm a guess.
    digest = hashlib.blake2b(key=key, digest_size=16)
    for name in parts:
        tensor = graph[name]
        sparse = tensor.is_sparse_csr
        for part in (tensor.crow_indices(), tensor.col_indices(), tensor.values()) if sparse else (tensor,):
            content = np.ascontiguousarray(part.detach().cpu().numpy())
            # Type and shape too, so that no two different graphs give the same bytes.
            digest.update(f"{name} {content.dtype} {content.shape} ".encode())
            digest.update(content.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
