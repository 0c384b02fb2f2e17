"""Parts of a graph are counted as SciPy counts them, whatever the numbers of their nodes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from graphveil.graphs.value.description import count_components
from graphveil.graphs.value.edges import merge_edges

NODES = 3_000
ROWS = np.arange(NODES)
SHAPES = {
    "none": np.empty((2, 0), np.int64),
    "path": np.stack([ROWS[1:], ROWS[:-1]]),
    "rings": np.stack([ROWS, ROWS // 7 * 7 + (ROWS + 1) % 7 % NODES]) % NODES,
    "stars": np.stack([ROWS, ROWS // 50 * 50]),
    "few": np.random.default_rng(0).integers(0, NODES, (2, NODES // 2)),
    "many": np.random.default_rng(1).integers(0, NODES, (2, 3 * NODES)),
}


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_parts_are_those_that_scipy_counts(shape: str, directed: bool) -> None:
    # Renumbered: along a path in order the lowest neighbour joins all of it at once.
    source, target = np.random.default_rng(2).permutation(NODES)[SHAPES[shape]]
    edges, _ = merge_edges(source, target, NODES, directed=directed)
    degrees = np.bincount(edges[0], minlength=NODES)
    matrix = coo_matrix((np.ones(edges.shape[1]), edges), shape=(NODES, NODES))
    wanted = connected_components(matrix, directed=False, return_labels=False)
    assert count_components(edges, NODES, degrees, directed=directed) == wanted
