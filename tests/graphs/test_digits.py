"""The embedded default graph."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.datasets import load_digits

from graphveil.graphs import digits_graph, load_graph, validate
from graphveil.graphs.edges import normalise_edges


def test_the_graph_is_as_documented():
    graph = validate(load_graph("digits"))
    assert graph.num_nodes == 1_797
    assert graph.x.shape == (1_797, 32)
    assert graph.schema.classes == tuple("0123456789")
    assert (graph.schema.low, graph.schema.high) == (0.0, 16.0)
    assert graph.edge_index.shape[1] // 2 == 12_292
    assert int(torch.bincount(graph.edge_index[0]).min()) >= 10


def test_it_is_the_same_every_time():
    one, other = digits_graph(), digits_graph()
    assert torch.equal(one.edge_index, other.edge_index)
    assert torch.equal(one.x, other.x)


def test_edges_use_only_the_public_pixels():
    pixels, labels = load_digits(return_X_y=True)
    black = (np.indices((8, 8)).sum(axis=0) % 2 == 0).ravel()
    graph = digits_graph()
    assert np.array_equal(graph.x.numpy(), pixels[:, ~black].astype(np.float32))
    assert np.array_equal(graph.y.numpy(), labels)
    public = pixels[:, black]
    distance = ((public[:40, None] - public[None]) ** 2).sum(axis=2)
    for node in range(40):
        distance[node, node] = np.inf
        nearest = np.argsort(distance[node], kind="stable")[:10]
        joined = graph.edge_index[1][graph.edge_index[0] == node].tolist()
        assert set(nearest.tolist()) <= set(joined)


def test_notes_count_what_was_merged():
    assert any("12,292 edges" in note for note in digits_graph().schema.notes)
    edge_index, notes = normalise_edges(np.array([0]), np.array([0]), 1, directed=True)
    assert edge_index.shape == (2, 0)
    assert notes == ("removed 1 self-loops", "kept 0 directed edges")
