"""How many parts a graph falls into, where whatever an edge joins is one part: counted with as many numbers as nodes.

A few edges of each node join almost all of a part: only what they leave apart is looked up edge by edge. After Sutton,
Ben-Nun, Barak, "Optimizing Parallel Graph Connectivity Computation via Subgraph Sampling", IPDPS 2018.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from graphveil.engine import Blocks

# Edges of a block, at least: each may cost a pass over all nodes.
_BLOCK: Final = 1 << 20


def count_components(edge_index: np.ndarray, nodes: int, degrees: np.ndarray, *, directed: bool) -> int:
    """Return the number of weak components; a node without edges is one.

    Args:
        edge_index: int64 [2, E], sorted by source; both directions unless directed.
        nodes: n.
        degrees: [n], how many edges have each node as source.
        directed: whether an edge stands in one direction only.
    """
    source, target = edge_index
    # The lowest node that each is known to hang together with.
    root = np.arange(nodes, dtype=np.int32 if nodes < 2**31 else np.int64)
    joining, ends = np.flatnonzero(degrees), np.cumsum(degrees)
    for place in (ends[joining] - degrees[joining], ends[joining] - 1):
        root = _joined(root, joining, target[place])
    # An undirected edge out of the largest part stands among those of its other end too.
    largest = -1 if directed else np.bincount(root).argmax()
    for block in Blocks(len(source), max(_BLOCK, nodes)):
        outside = np.flatnonzero(root[source[block.rows]] != largest) + block.start
        root = _joined(root, source[outside], target[outside])
    return int(np.count_nonzero(root == np.arange(nodes)))


def _joined(root: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the roots when each left node hangs together with its right one."""
    left, right = root[left], root[right]
    while (apart := left != right).any():
        left, right = left[apart], right[apart]
        # Each root takes one of the lower ones that it meets, whichever is written last: the others meet it again.
        root[np.maximum(left, right)] = np.minimum(left, right)
        while ((higher := root[root]) != root).any():
            root = higher
        left, right = root[left], root[right]
    return root
