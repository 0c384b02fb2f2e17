"""describe(): exact numbers on a graph small enough to print, and JSON-safe."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from graphveil.graphs import GraphSchema, describe, make_graph, normalise_edges
from tests.graphs.made import tiny_graph


def test_a_path_of_four_nodes():
    facts = describe(tiny_graph())
    assert facts["nodes"] == 4
    assert facts["edges"] == 3
    assert facts["degrees"] == {"min": 1, "median": 1.5, "mean": 1.5, "max": 2}
    assert facts["density"] == 0.5
    assert facts["isolated_nodes"] == 0
    assert facts["components"] == 1
    assert facts["classes"] == {"cat": 1, "dog": 2}
    assert facts["unknown_labels"] == 1
    assert facts["features"] == {"dimension": 2, "layout": "dense", "density": 0.625, "range": [0.0, 1.0]}
    assert facts["private"] == ["features", "labels"]
    assert facts["memory_mb"]["x"] == pytest.approx(4 * 2 * 4 / 1e6, abs=5e-4)
    assert "data owner only" in facts["warning"]


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_like_neighbours_are_those_of_a_plain_walk(seed: int, directed: bool) -> None:
    rng = np.random.default_rng([seed, directed])
    nodes, classes = 60, 4
    edge_index, notes = normalise_edges(*rng.integers(0, nodes, (2, 45)), nodes, directed=directed)
    y = rng.integers(-1, classes, nodes)
    schema = GraphSchema("made", 2, 0.0, 1.0, tuple("abcd"), directed=directed, notes=notes)
    facts = describe(make_graph(torch.zeros(nodes, 2), edge_index, torch.from_numpy(y), schema))
    labels_of_ends = []
    for source, target in edge_index.T.tolist():
        if min(y[source], y[target]) >= 0:
            labels_of_ends.append((y[source], y[target]))
    assert facts["isolated_nodes"] == nodes - len(set(edge_index.flatten().tolist())) > 0
    assert facts["density"] == edge_index.shape[1] / (nodes * (nodes - 1))
    edge = np.mean([first == second for first, second in labels_of_ends])
    shares = np.bincount(np.ravel(labels_of_ends), minlength=classes) / (2 * len(labels_of_ends))
    chance = (shares**2).sum()
    assert facts["homophily"]["edge"] == pytest.approx(edge)
    assert facts["homophily"]["adjusted"] == pytest.approx((edge - chance) / (1 - chance))


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
    edges, notes = normalise_edges(source, target, NODES, directed=directed)
    schema = GraphSchema("made", 1, 0.0, 1.0, ("a", "b"), directed=directed, notes=notes)
    graph = make_graph(torch.zeros(NODES, 1), edges, torch.zeros(NODES, dtype=torch.int64), schema)
    matrix = coo_matrix((np.ones(edges.shape[1]), edges.numpy()), shape=(NODES, NODES))
    wanted = connected_components(matrix, directed=False, return_labels=False)
    assert describe(graph)["components"] == wanted
