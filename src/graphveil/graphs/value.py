"""The graph value: a PyG `Data` with a schema, made in one place and checked in one place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from graphveil.errors import DataError
from graphveil.graphs.edges import is_normalised
from graphveil.graphs.features import check_range
from graphveil.graphs.known import check_known
from graphveil.graphs.quiet import quiet
from graphveil.graphs.schema import GraphSchema

if TYPE_CHECKING:
    from torch_geometric.data import Data

MASKS = ("train_mask", "val_mask", "test_mask")


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
) -> Data:
    """Put the parts of a graph together.

    Args:
        x: float32 [n, d], dense or `torch.sparse_csr`.
        edge_index: int64 [2, E] as `normalise_edges` returns it.
        y: int64 [n], -1 where unknown; or float32 [n, c] for several labels a node.
        schema: the declared facts.
        masks: the published split, any of `MASKS`, each bool [n].
        ids: the user's own node ids, in row order: texts or whole numbers, each once.
        public_edges: bool [E], the columns of `edge_index` that everybody knows; None: nobody knows any.
        private_nodes: int64 [k], who may have private edges, declared, ascending; None: everybody.

    Raises:
        DataError: labels or features outside what the schema declares, or ids that do not tell the nodes apart.
    """
    with quiet():
        from torch_geometric.data import Data

    graph = Data(x=x, edge_index=edge_index, y=y, num_nodes=x.shape[0])
    graph.schema = schema
    for name, mask in (masks or {}).items():
        graph[name] = mask
    for name, value in (("ids", ids), ("public_edges", public_edges), ("private_nodes", private_nodes)):
        if value is not None:
            graph[name] = value
    _check_features(graph)
    _check_labels(graph)
    node_names(graph)
    return graph


def node_names(graph: Data) -> tuple[str, ...] | None:
    """Return the ids of a graph's nodes as texts, the same for 1, "1" and 1.0, or None where it has no ids.

    Raises:
        DataError: not one for each node, one twice, or one that is neither a text nor a whole number.
    """
    given = getattr(graph, "ids", None)
    if given is None:
        return None
    names = tuple(_name(one) for one in (given.tolist() if hasattr(given, "tolist") else given))
    if len(names) != graph.num_nodes:
        raise DataError(f"{len(names)} ids for {graph.num_nodes} nodes", where="graph.ids", allowed="one for each")
    if len(set(names)) < len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise DataError(f"{twice!r} is there a second time", where="graph.ids", allowed="each id once")
    return names


def validate(graph: Data) -> Data:
    """Check a graph value whole, and return it.

    Checked: the schema is there; shapes and types agree with it; features are finite and in the declared
    range; labels are declared classes or -1; edges join existing nodes, are sorted, unique, without
    self-loops and (undirected) symmetric; split masks are bool, disjoint and of length n; ids are there once
    each; public edges are public in both directions, private nodes exist and are each there once.

    Raises:
        DataError: names the part and the first fault in it.
    """
    if not isinstance(graph.get("schema"), GraphSchema):
        raise DataError("the graph has no GraphSchema", where="graph.schema", remedy="load it with load_graph")
    _check_features(graph)
    _check_labels(graph)
    _check_edges(graph)
    _check_masks(graph)
    node_names(graph)
    check_known(graph)
    return graph


def _name(one: object) -> str:
    if isinstance(one, float) and one.is_integer():  # a column of whole numbers that once had a gap
        one = int(one)
    if isinstance(one, bool) or not isinstance(one, str | int | np.integer):
        raise DataError(f"{one!r} is a {type(one).__name__}", where="graph.ids", allowed="texts and whole numbers")
    return str(one)


def _check_features(graph: Data) -> None:
    schema: GraphSchema = graph.schema
    x = graph.get("x")
    if not isinstance(x, Tensor) or x.dim() != 2 or x.dtype != torch.float32:
        raise DataError("x is not a float32 matrix", where="graph.x", allowed="float32 [n, d], dense or sparse CSR")
    if x.layout not in (torch.strided, torch.sparse_csr):
        raise DataError(f"x has layout {x.layout}", where="graph.x", allowed="dense or sparse CSR")
    if x.shape[1] != schema.dimension:
        raise DataError(f"x has {x.shape[1]} features", where="graph.x", allowed=f"the declared {schema.dimension}")
    if x.shape[0] == 0:
        raise DataError("the graph has no nodes", where="graph.x")
    check_range(x, schema.low, schema.high, "graph.x")


def _check_labels(graph: Data) -> None:
    classes, n = len(graph.schema.classes), graph.x.shape[0]
    y = graph.get("y")
    if not isinstance(y, Tensor) or y.shape[:1] != (n,):
        raise DataError("y does not have one row for each node", where="graph.y", allowed=f"{n} rows")
    if y.dim() == 2:
        if not y.is_floating_point() or y.shape[1] != classes or bool(((y != 0) & (y != 1)).any()):
            raise DataError(
                "y is not a 0/1 matrix of the declared classes",
                where="graph.y",
                allowed=f"float [n, {classes}]",
            )
        return
    if y.dtype != torch.int64:
        raise DataError(f"y is {y.dtype}", where="graph.y", allowed="int64 [n] or float [n, classes]")
    bad = ((y < -1) | (y >= classes)).nonzero()
    if len(bad):
        row = int(bad[0])
        raise DataError(
            f"label of node {row} is {int(y[row])}",
            where="graph.y",
            allowed=f"0 to {classes - 1} ({', '.join(graph.schema.classes[:5])}, ...), or -1 for unknown",
        )


def _check_edges(graph: Data) -> None:
    edges, n = graph.get("edge_index"), graph.x.shape[0]
    if not isinstance(edges, Tensor) or edges.dtype != torch.int64 or edges.dim() != 2 or edges.shape[0] != 2:
        raise DataError("edge_index is not an int64 [2, E] tensor", where="graph.edge_index")
    if edges.numel() and (int(edges.min()) < 0 or int(edges.max()) >= n):
        bad = ((edges < 0) | (edges >= n)).any(dim=0).nonzero()[0]
        raise DataError(
            f"edge {int(bad)} joins nodes {edges[:, int(bad)].tolist()}",
            where="graph.edge_index",
            allowed=f"0 to {n - 1}",
        )
    if not is_normalised(edges, n, directed=graph.schema.directed):
        raise DataError(
            "edges are unsorted, repeated, self-loops, or listed in one direction only",
            where="graph.edge_index",
            remedy="pass them through graphveil.graphs.normalise_edges",
        )


def _check_masks(graph: Data) -> None:
    n = graph.x.shape[0]
    masks = [graph[name] for name in MASKS if graph.get(name) is not None]
    for mask in masks:
        if mask.dtype != torch.bool or mask.shape != (n,):
            raise DataError("a split mask is not a bool vector over the nodes", where="graph masks", allowed=f"[{n}]")
    if masks and int(torch.stack(masks).sum(dim=0).max()) > 1:
        raise DataError("a node is in two parts of the split", where="graph masks")
