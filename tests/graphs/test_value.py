"""The graph value and its schema: what passes, and every refusal."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

from graphveil.errors import DataError, InputError
from graphveil.graphs import GraphSchema, make_graph, node_names, validate
from graphveil.graphs.features import check_range, clip_features, features_from_dense, features_from_rows
from tests.graphs.made import tiny_graph


def test_a_valid_graph_passes_and_is_returned():
    graph = tiny_graph()
    assert validate(graph) is graph


def with_(**fields):
    def change(graph):
        for name, value in fields.items():
            graph[name] = value
        return graph

    return change


def sparse(values):
    return features_from_rows(csr_matrix(np.array(values, dtype=np.float32)))


NAN = torch.tensor([[0.0, 1.0], [0.5, torch.nan], [1.0, 1.0], [0.0, 0.25]])
MASK = torch.tensor([True, False, False, False])
REFUSALS = {
    "schema": (with_(schema=None), "graph.schema: the graph has no GraphSchema; load it with load_graph"),
    "x missing": (with_(x=None), "graph.x: x is not a float32 matrix"),
    "x kind": (with_(x=torch.zeros(4, 2, dtype=torch.float64)), "graph.x: x is not a float32 matrix"),
    "x shape": (with_(x=torch.zeros(4)), "graph.x: x is not a float32 matrix"),
    "x layout": (with_(x=torch.zeros(4, 2).to_sparse_coo()), "graph.x: x has layout torch.sparse_coo"),
    "x columns": (with_(x=torch.zeros(4, 3)), "graph.x: x has 3 features; allowed: the declared 2"),
    "x empty": (with_(x=torch.zeros(0, 2)), "graph.x: the graph has no nodes"),
    "x nan": (with_(x=NAN), "graph.x: feature 1 of node 1 is nan; allowed: 0 to 1, no NaN"),
    "x high": (with_(x=NAN.nan_to_num(1.5)), "graph.x: feature 1 of node 1 is 1.5; allowed: 0 to 1"),
    "x inf": (with_(x=NAN.nan_to_num(torch.inf)), "feature 1 of node 1 is inf"),
    "x low": (with_(x=NAN.nan_to_num(-0.01)), "feature 1 of node 1 is -0.01"),
    "y missing": (with_(y=None), "graph.y: y does not have one row for each node; allowed: 4 rows"),
    "y length": (with_(y=torch.zeros(3, dtype=torch.int64)), "graph.y: y does not have one row"),
    "y kind": (with_(y=torch.zeros(4)), "graph.y: y is torch.float32; allowed: int64"),
    "y high": (
        with_(y=torch.tensor([0, 1, 2, 0])),
        "graph.y: label of node 2 is 2; allowed: 0 to 1 (cat, dog",
    ),
    "y low": (with_(y=torch.tensor([0, -2, 1, 0])), "graph.y: label of node 1 is -2"),
    "y several": (with_(y=torch.full((4, 2), 0.5)), "graph.y: y is not a 0/1 matrix of the declared classes"),
    "edges kind": (
        with_(edge_index=torch.zeros(2, 1)),
        "graph.edge_index: edge_index is not an int64 [2, E]",
    ),
    "edges range": (
        with_(edge_index=torch.tensor([[0, 4], [4, 0]])),
        "graph.edge_index: edge 0 joins nodes [0, 4]; allowed: 0 to 3",
    ),
    "edges loop": (
        with_(edge_index=torch.tensor([[1], [1]])),
        "graph.edge_index: edges are unsorted, repeated",
    ),
    "edges one way": (with_(edge_index=torch.tensor([[0], [1]])), "graph.edge_index: edges are unsorted"),
    "edges twice": (with_(edge_index=torch.tensor([[0, 0, 1], [1, 1, 0]])), "edges are unsorted, repeated"),
    "edges order": (with_(edge_index=torch.tensor([[1, 0], [0, 1]])), "edges are unsorted, repeated"),
    "mask kind": (with_(train_mask=torch.zeros(4)), "graph masks: a split mask is not a bool vector"),
    "mask length": (with_(val_mask=torch.zeros(3, dtype=torch.bool)), "graph masks: a split mask is not"),
    "masks overlap": (
        with_(train_mask=MASK, test_mask=MASK),
        "graph masks: a node is in two parts of the split",
    ),
}


@pytest.mark.parametrize("change, message", REFUSALS.values(), ids=REFUSALS.keys())
def test_refusals(change, message):
    with pytest.raises(DataError, match=re.escape(message)):
        validate(change(tiny_graph()))


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"name": ""}, "name is ''"),
        ({"dimension": 0}, "dimension is 0; allowed: a whole number from 1 to 16,777,216"),
        ({"dimension": 2.0}, "dimension is 2.0"),
        ({"low": 1.0}, "low, high is (1.0, 1.0); allowed: two finite numbers from -1e+15"),
        ({"high": float("inf")}, "low, high is (0.0, inf)"),
        ({"low": float("nan")}, "low, high is (nan, 1.0)"),
        ({"classes": ("cat",)}, "classes is ('cat',); allowed: at least two different class names"),
        ({"classes": ("cat", "cat")}, "classes is ('cat', 'cat')"),
        ({"private": ("names",)}, "private is 'names'; allowed: features, labels, edges"),
        ({"source": ""}, "source is ''; allowed: a sentence"),
    ],
)
def test_a_schema_refuses(fields, message):
    good = {"name": "tiny", "dimension": 2, "low": 0.0, "high": 1.0, "classes": ("cat", "dog")}
    with pytest.raises(InputError, match=re.escape(message)):
        GraphSchema(**{**good, **fields})


def test_a_schema_cannot_be_changed():
    with pytest.raises(AttributeError):
        tiny_graph().schema.low = -1.0


def test_sparse_below_a_tenth_and_dense_from_there_on():
    values = np.zeros((10, 10), dtype=np.float32)
    values[0, :9] = 0.5
    assert features_from_dense(values).layout == torch.sparse_csr
    values[1, 0] = 0.5
    assert features_from_dense(values).layout == torch.strided
    assert torch.equal(features_from_dense(values), torch.from_numpy(values))


def test_sparse_range_errors_name_row_and_column():
    x = sparse([[0.0] * 20, [0.0] * 12 + [7.0] + [0.0] * 7])
    with pytest.raises(DataError, match="feature 12 of node 1 is 7; allowed: 0 to 1"):
        check_range(x, 0.0, 1.0, "graph.x")


def test_sparse_features_need_zero_in_the_range():
    with pytest.raises(DataError, match="entries absent from the sparse features are 0"):
        check_range(sparse([[0.0] * 20 + [0.5]]), 0.1, 1.0, "graph.x")


def test_clipping_counts_and_never_lets_nan_pass():
    x, changed = clip_features(np.array([[-2.0, 0.5, 3.0]], dtype=np.float32), 0.0, 1.0, "x")
    assert (x.tolist(), changed) == ([[0.0, 0.5, 1.0]], 2)
    with pytest.raises(DataError, match="feature 1 of node 0 is nan"):
        clip_features(np.array([[0.0, np.nan]], dtype=np.float32), 0.0, 1.0, "x")


def test_the_value_moves_and_copies_with_its_schema():
    graph = tiny_graph()
    assert graph.clone().schema == graph.schema
    assert graph.to("cpu").schema == graph.schema


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        (["a", "b", "a", "c"], "'a' appears twice"),
        (["anna b", "b", "Anna\u200b  B", "c"], r"'anna b' and 'Anna\u200b \x20B' are one id to people"),
        ([1, 2, "1", 3], "'1' appears twice"),
        ([1, 2, 1.0, 3], "'1' appears twice"),
        (["a", "b", "c"], "3 ids for 4 nodes"),
        ([b"a", b"b", b"c", b"d"], "is a bytes"),
        ([0.5, 1, 2, 3], "0.5 is a float"),
    ],
)
def test_ids_tell_the_nodes_apart(ids, said):
    graph = tiny_graph()
    graph.ids = ids
    with pytest.raises(DataError, match=re.escape(said)):
        validate(graph)
    with pytest.raises(DataError, match=re.escape(said)):
        make_graph(graph.x, graph.edge_index, graph.y, graph.schema, ids=ids)


def test_an_id_has_one_name_however_it_is_typed():
    graph = tiny_graph()
    for ids in ([0, 1, 2, 3], ["0", "1", "2", "3"], np.arange(4.0), torch.arange(4), np.array(["0", "1", "2", "3"])):
        graph.ids = ids
        assert node_names(graph) == ("0", "1", "2", "3")
