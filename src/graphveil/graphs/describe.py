"""What a graph looks like, for its owner."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from graphveil.graphs.schema import GraphSchema

if TYPE_CHECKING:
    from torch_geometric.data import Data

WARNING = "computed from raw data without noise: for the data owner only, not for release"
RELEASED = "computed from a release: anybody may know it"


def describe(graph: Data) -> dict[str, object]:
    """Counts, degrees, density, homophily, declared facts and memory of a graph, as JSON-safe values.

    Time and memory are linear in nodes, edges and stored feature entries. The statistics are exact and read
    private data: the key "warning" says so.

    Returns:
        name, nodes, edges (undirected ones once), directed, degrees {min, median, mean, max} (out-degrees
        if directed), isolated_nodes, components (weak), density (share of all possible edges), homophily
        {edge, adjusted} (None without labels or with several a node), features {dimension, layout, density,
        range}, classes {name: nodes}, unknown_labels, private, range_source, split, memory_mb {part: MB},
        known {public_edges, private_edges, private_nodes} (None where nothing is said of them), release {method,
        guarantee} (None for a graph that nobody published), notes, warning.
    """
    schema: GraphSchema = graph.schema
    n, directed = graph.num_nodes, schema.directed
    listed = graph.edge_index.shape[1]
    edges = listed if directed else listed // 2
    degrees = torch.bincount(graph.edge_index[0], minlength=n)
    touched = degrees if not directed else degrees + torch.bincount(graph.edge_index[1], minlength=n)
    pairs = n * (n - 1) if directed else n * (n - 1) // 2
    return {
        "warning": WARNING if graph.get("release") is None else RELEASED,
        "name": schema.name,
        "nodes": n,
        "edges": edges,
        "directed": directed,
        "degrees": _degrees(degrees),
        "isolated_nodes": int((touched == 0).sum()),
        "components": _components(graph.edge_index, n, directed),
        "density": edges / pairs if pairs else 0.0,
        "homophily": _homophily(graph, degrees),
        "features": _features(graph),
        "classes": _classes(graph),
        "unknown_labels": int((graph.y < 0).sum()) if graph.y.dim() == 1 else 0,
        "private": list(schema.private),
        "range_source": schema.source,
        "split": _split(graph),
        "memory_mb": _memory(graph),
        "known": _known(graph),
        "release": _release(graph),
        "notes": list(schema.notes),
    }


def _known(graph: Data) -> dict[str, int] | None:
    """Edges that everybody knows, others, and the nodes that may have some; undirected edges once."""
    public, members = graph.get("public_edges"), graph.get("private_nodes")
    if public is None and members is None:
        return None
    listed = graph.edge_index.shape[1]
    known = 0 if public is None else int(public.sum())
    each = 1 if graph.schema.directed else 2
    nodes = int(graph.num_nodes) if members is None else len(members)
    return {"public_edges": known // each, "private_edges": (listed - known) // each, "private_nodes": nodes}


def _release(graph: Data) -> dict[str, str] | None:
    release = graph.get("release")
    return None if release is None else {"method": release.method, "guarantee": release.guarantee.sentence()}


def _degrees(degrees: Tensor) -> dict[str, float]:
    values = degrees.numpy()
    return {
        "min": int(values.min()),
        "median": float(np.median(values)),
        "mean": float(values.mean()),
        "max": int(values.max()),
    }


def _components(edge_index: Tensor, n: int, directed: bool) -> int:
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    source, target = edge_index.numpy()
    ends = (source.astype(np.int32), target.astype(np.int32)) if n < 2**31 else (source, target)
    matrix = coo_matrix((np.ones(len(source), dtype=np.int8), ends), shape=(n, n)).tocsr()
    return int(connected_components(matrix, directed=directed, return_labels=False))


def _homophily(graph: Data, degrees: Tensor) -> dict[str, float] | None:
    """Share of edges inside a class, and adjusted for class sizes: (h - sum p_c^2) / (1 - sum p_c^2).

    p_c is the share of edge ends in class c. Source: Platonov et al., "Characterizing Graph Datasets for Node
    Classification", NeurIPS 2023, section 2. Edges with an unknown end are left out.
    """
    if graph.y.dim() != 1 or graph.edge_index.shape[1] == 0:
        return None
    ends = graph.y.to(torch.int16)[graph.edge_index]
    known = (ends >= 0).all(dim=0)
    if not bool(known.any()):
        return None
    ends = ends[:, known]
    edge = float((ends[0] == ends[1]).double().mean())
    shares = torch.bincount(ends.flatten().long(), minlength=len(graph.schema.classes)).double() / ends.numel()
    chance = float((shares**2).sum())
    return {"edge": edge, "adjusted": (edge - chance) / (1 - chance) if chance < 1 else 0.0}


def _features(graph: Data) -> dict[str, object]:
    x, schema = graph.x, graph.schema
    sparse = x.layout == torch.sparse_csr
    filled = x.values().numel() if sparse else int(torch.count_nonzero(x))
    return {
        "dimension": schema.dimension,
        "layout": "sparse" if sparse else "dense",
        "density": filled / (x.shape[0] * x.shape[1]),
        "range": [schema.low, schema.high],
    }


def _classes(graph: Data) -> dict[str, int]:
    names = graph.schema.classes
    counts = graph.y.sum(dim=0) if graph.y.dim() == 2 else torch.bincount(graph.y[graph.y >= 0], minlength=len(names))
    return {name: int(count) for name, count in zip(names, counts, strict=True)}


def _split(graph: Data) -> dict[str, int] | None:
    from graphveil.graphs.splits import published_split

    split = published_split(graph)
    if split is None:
        return None
    return {"train": int(split.train.sum()), "val": int(split.val.sum()), "test": int(split.test.sum())}


def memory_of(graph: Data) -> int:
    """Return how many bytes features, edges and labels take in memory."""
    return sum(_bytes(part) for part in (graph.x, graph.edge_index, graph.y))


def _memory(graph: Data) -> dict[str, float]:
    parts = {"x": _bytes(graph.x), "edge_index": _bytes(graph.edge_index), "y": _bytes(graph.y)}
    return {name: round(size / 1e6, 3) for name, size in (*parts.items(), ("total", sum(parts.values())))}


def _bytes(tensor: Tensor) -> int:
    if tensor.layout == torch.sparse_csr:
        return sum(_bytes(part) for part in (tensor.values(), tensor.col_indices(), tensor.crow_indices()))
    return tensor.numel() * tensor.element_size()
