"""What a graph looks like, for its owner."""

from __future__ import annotations

from typing import Final

import numpy as np

from graphveil.engine import Blocks
from graphveil.graphs.value.parts import MASKS, Graph, GraphParts, SparseRows
from graphveil.graphs.value.value import parts_of

WARNING = "computed from raw data without noise: for the data owner only, not for release"
RELEASED = "computed from a release: anybody may know it"
_BLOCK: Final = 1 << 20


def describe(graph: Graph | GraphParts) -> dict[str, object]:
    """Return counts, degrees, density, homophily, declared facts and memory of a graph, as JSON-safe values.

    Linear in nodes, edges and stored feature entries. The statistics are exact and read private data, as "warning"
    says.

    Returns:
        name, nodes, edges (undirected ones once), directed, degrees {min, median, mean, max} (out-degrees if directed),
        isolated_nodes, components (weak), density (share of all possible edges), homophily {edge, adjusted} (None
        without labels or with several a node), features {dimension, layout, density, range}, classes {name: nodes},
        unknown_labels, private, range_source, split, memory_mb {part: MB}, known {public_edges, private_edges,
        private_nodes} and release {method, guarantee} (None where the graph has no such part), notes, warning.
    """
    parts = graph if isinstance(graph, GraphParts) else parts_of(graph)
    schema, n, directed = parts.schema, parts.num_nodes, parts.schema.directed
    columns = parts.edge_index.shape[1]
    edges = columns if directed else columns // 2
    degrees = np.bincount(parts.edge_index[0], minlength=n)
    end_counts = degrees + (degrees if not directed else np.bincount(parts.edge_index[1], minlength=n))
    pairs = n * (n - 1) if directed else n * (n - 1) // 2
    sizes, release = _sizes(parts), parts.release
    return {
        # First, so that whoever pastes the figures somewhere pastes this with them.
        "warning": WARNING if release is None else RELEASED,
        "name": schema.name,
        "nodes": n,
        "edges": edges,
        "directed": directed,
        "degrees": {
            "min": int(degrees.min()),
            "median": float(np.median(degrees)),
            "mean": float(degrees.mean()),
            "max": int(degrees.max()),
        },
        "isolated_nodes": int((end_counts == 0).sum()),
        "components": count_components(parts.edge_index, n, degrees, directed=directed),
        "density": edges / pairs if pairs else 0.0,
        "homophily": _homophily(parts, end_counts),
        "features": _features(parts),
        "classes": _classes(parts),
        "unknown_labels": int((parts.y < 0).sum()) if parts.y.ndim == 1 else 0,
        "private": list(schema.private),
        "range_source": schema.source,
        "split": _split(parts),
        "memory_mb": {name: round(size / 1e6, 3) for name, size in (*sizes.items(), ("total", sum(sizes.values())))},
        "known": _edge_counts(parts),
        "release": None if release is None else {"method": release.method, "guarantee": release.guarantee.sentence()},
        "notes": list(schema.notes),
    }


def memory_of(graph: Graph) -> int:
    """Return how many bytes features, edges and labels take in memory."""
    return sum(_sizes(parts_of(graph)).values())


def _edge_counts(parts: GraphParts) -> dict[str, int] | None:
    """Public edges, private edges and the nodes that may have private ones; an undirected edge counts once."""
    public, members = parts.public_edges, parts.private_nodes
    if public is None and members is None:
        return None
    columns = parts.edge_index.shape[1]
    public_columns = 0 if public is None else int(public.sum())
    directions = 1 if parts.schema.directed else 2
    nodes = parts.num_nodes if members is None else len(members)
    return {
        "public_edges": public_columns // directions,
        "private_edges": (columns - public_columns) // directions,
        "private_nodes": nodes,
    }


def _homophily(parts: GraphParts, end_counts: np.ndarray) -> dict[str, float] | None:
    """Share of edges inside a class, and adjusted for class sizes: (h - sum p_c^2) / (1 - sum p_c^2).

    p_c is the share of edge ends in class c. Source: Platonov et al., "Characterizing Graph Datasets for Node
    Classification", NeurIPS 2023, section 2. Edges with an unknown end are left out. `end_counts` [n] counts the edge
    ends at each node.
    """
    columns, classes = parts.edge_index.shape[1], len(parts.schema.classes)
    if parts.y.ndim != 1 or columns == 0:
        return None
    # The smallest type: looking up the labels of ends in no order waits for memory.
    y = parts.y.astype(np.min_scalar_type(-classes))
    some_unknown = bool((y < 0).any())
    ends = np.bincount(parts.y + 1, weights=end_counts, minlength=classes + 1)[1:].astype(np.int64)
    matching = 0
    for block in Blocks(columns, _BLOCK):
        left, right = y[parts.edge_index[:, block.rows]]
        matches = left == right
        if some_unknown:
            matches &= left >= 0
            one_unknown = (left < 0) != (right < 0)
            ends -= np.bincount(np.maximum(left, right)[one_unknown], minlength=classes)
        matching += int(np.count_nonzero(matches))
    if not ends.any():
        return None
    edge = 2 * matching / int(ends.sum())
    shares = ends / ends.sum()
    chance = float((shares**2).sum())
    return {"edge": edge, "adjusted": (edge - chance) / (1 - chance) if chance < 1 else 0.0}


def _features(parts: GraphParts) -> dict[str, object]:
    x, schema = parts.x, parts.schema
    sparse = isinstance(x, SparseRows)
    filled = x.values.size if isinstance(x, SparseRows) else int(np.count_nonzero(x))
    return {
        "dimension": schema.dimension,
        "layout": "sparse" if sparse else "dense",
        "density": filled / (x.shape[0] * x.shape[1]),
        "range": [schema.low, schema.high],
    }


def _classes(parts: GraphParts) -> dict[str, int]:
    names, y = parts.schema.classes, parts.y
    counts = y.sum(axis=0, dtype=np.float64) if y.ndim == 2 else np.bincount(y[y >= 0], minlength=len(names))
    return {name: int(count) for name, count in zip(names, counts, strict=True)}


def _split(parts: GraphParts) -> dict[str, int] | None:
    masks = [parts.masks.get(name) for name in MASKS]
    counts = [int(mask.sum()) for mask in masks if mask is not None]
    return dict(zip(("train", "val", "test"), counts, strict=True)) if len(counts) == len(MASKS) else None


def _sizes(parts: GraphParts) -> dict[str, int]:
    x = parts.x
    features = x.values.nbytes + x.columns.nbytes + x.starts.nbytes if isinstance(x, SparseRows) else x.nbytes
    return {"x": features, "edge_index": parts.edge_index.nbytes, "y": parts.y.nbytes}


def count_components(edge_index: np.ndarray, nodes: int, degrees: np.ndarray, *, directed: bool) -> int:
    """Return the number of weak components; a node without edges is one. Memory: one number for each node.

    The first and the last edge of each node join almost all of a component; only edges between the parts that remain
    are looked up one by one. After Sutton, Ben-Nun, Barak, "Optimizing Parallel Graph Connectivity Computation via
    Subgraph Sampling", IPDPS 2018.

    Args:
        edge_index: int64 [2, E], sorted by source; both directions unless directed.
        degrees: [n], how many edges have each node as source.
        directed: whether an edge is listed in one direction only.
    """
    source, target = edge_index
    # The lowest node that each node is connected with so far.
    root = np.arange(nodes, dtype=np.int32 if nodes < 2**31 else np.int64)
    connected, ends = np.flatnonzero(degrees), np.cumsum(degrees)
    for last_or_first in (ends[connected] - degrees[connected], ends[connected] - 1):
        root = _join_roots(root, connected, target[last_or_first])
    # An undirected edge out of the largest part is also listed at its other end, outside it.
    largest = -1 if directed else np.bincount(root).argmax()
    # At least as many edges as nodes: each block may cost a pass over all nodes.
    for block in Blocks(len(source), max(_BLOCK, nodes)):
        outside = np.flatnonzero(root[source[block.rows]] != largest) + block.start
        root = _join_roots(root, source[outside], target[outside])
    return int(np.count_nonzero(root == np.arange(nodes)))


def _join_roots(root: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the roots after each left node is joined with its right one."""
    left, right = root[left], root[right]
    while (apart := left != right).any():
        left, right = left[apart], right[apart]
        # Of several lower roots the one written last wins; the loop runs again for the rest.
        root[np.maximum(left, right)] = np.minimum(left, right)
        while ((higher := root[root]) != root).any():
            root = higher
        left, right = root[left], root[right]
    return root
