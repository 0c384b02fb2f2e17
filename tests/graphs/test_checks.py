"""Graphs and their schemas: what passes, and each fault on its own refused by the name of its part."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_matrix

from graphveil.device.people.canonical_id import known_as
from graphveil.errors import DataError, InputError
from graphveil.graphs import GraphSchema, make_graph, node_names, validate
from graphveil.graphs.value.checks import (
    check_edges,
    check_features,
    check_labels,
    check_masks,
    check_private_nodes,
    check_public_edges,
    names_of,
)
from graphveil.graphs.value.features import (
    check_range,
    clip_features,
    compact_dense,
    compact_rows,
    features_from_rows,
    features_of,
    features_tensor,
    to_rows,
)
from graphveil.graphs.value.parts import SparseRows
from tests.graphs.made import tiny_graph

SCHEMA = GraphSchema("made", 2, 0.0, 1.0, ("cat", "dog"))
PATH = np.array([[0, 1, 1, 2], [1, 0, 2, 1]])


def table(*rows: tuple[float, ...]) -> np.ndarray:
    return np.array(rows, dtype=np.float32)


CHECKS: dict[str, Callable[[Any], object]] = {
    "x": lambda x: check_features(x, SCHEMA),
    "y": lambda y: check_labels(y, 3, SCHEMA.classes),
    "edges": lambda edges: check_edges(edges, 3, directed=False),
    "masks": lambda masks: check_masks(masks, 3),
    "public": lambda public: check_public_edges(public, PATH, 3, directed=False),
}


@pytest.mark.parametrize(
    ("part", "given", "message"),
    [
        ("x", np.zeros((2, 2)), r"^graph.x: x is not a float32 matrix; allowed: float32 \[n, d\], dense or sparse CSR"),
        ("x", np.zeros(2, dtype=np.float32), "x is not a float32 matrix"),
        ("x", table((0, 0, 0)), "x has 3 features; allowed: the declared 2"),
        ("x", np.zeros((0, 2), dtype=np.float32), "the graph has no nodes"),
        ("x", table((0, 0), (0, 2)), "feature 1 of node 1 is 2; allowed: 0 to 1, no NaN"),
        ("y", np.zeros(2, dtype=np.int64), "^graph.y: y does not have one row for each node; allowed: 3 rows"),
        ("y", np.zeros(3, dtype=np.int32), r"y is int32; allowed: int64 \[n\] or float \[n, classes\]"),
        ("y", np.array([0, 2, -2]), r"label of node 1 is 2; allowed: 0 to 1 \(cat, dog\), or -1 for unknown"),
        ("y", np.zeros((3, 3)), r"y is not a 0/1 matrix of the declared classes; allowed: float \[n, 2\]"),
        ("y", np.full((3, 2), 0.5), "y is not a 0/1 matrix"),
        ("edges", PATH + 1, r"^graph.edge_index: edge 2 joins nodes \[2, 3\]; allowed: 0 to 2"),
        ("edges", PATH - 1, r"edge 0 joins nodes \[-1, 0\]"),
        ("edges", PATH[:, ::-1], "edges are unsorted, repeated, self-loops, or listed in one direction only"),
        ("edges", PATH[:, :3], "listed in one direction only"),
        ("edges", np.array([[0, 0], [1, 1]]), "repeated"),
        ("edges", np.array([[1], [1]]), "self-loops, .*; pass them through graphveil.graphs.normalise_edges"),
        ("masks", [np.zeros(3)], r"^graph masks: a split mask is not a bool vector over the nodes; allowed: \[3\]"),
        ("masks", [np.zeros((3, 1), dtype=bool)], "not a bool vector"),
        ("masks", [np.array([True, False, False])] * 2, "a node is in two parts of the split"),
        ("public", np.ones(4), r"^graph.public_edges: is not true or false for each edge; allowed: bool \[E\]"),
        ("public", np.array([True, False, False, False]), "an edge is public in one direction only; allowed: both"),
    ],
)
def test_each_part_is_refused_by_its_name(part: str, given: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        CHECKS[part](given)


def test_parts_that_are_right_pass() -> None:
    check_edges(PATH, 3, directed=False)
    check_masks([], 3)
    check_masks(np.eye(3, dtype=bool), 3)
    check_public_edges(np.array([True, True, False, False]), PATH, 3, directed=False)
    check_public_edges(np.array([True, False, False, False]), PATH, 3, directed=True)


@pytest.mark.parametrize("members", [[2, 1], [1, 1], [-1, 0], [0, 3]])
def test_private_nodes_are_ascending_numbers(members: list[int]) -> None:
    check_private_nodes(np.array([], dtype=np.int64), 3)
    check_private_nodes(np.array([0, 2]), 3)
    with pytest.raises(DataError, match=r"graph\.private_nodes: are not ascending node numbers; allowed: 0 to 2"):
        check_private_nodes(np.array(members), 3)
    for kind in (np.array([[0, 1]]), np.array([0.0, 1.0]), np.array([True, False, True])):
        with pytest.raises(DataError, match="is not a list of node numbers"):
            check_private_nodes(kind, 3)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.one_of(st.integers(-5, 5), st.text(max_size=3)), max_size=6))
def test_ids_are_texts_and_stand_once(ids: list[int | str]) -> None:
    texts = [str(name) for name in ids]
    if len(set(texts)) < len(texts):
        with pytest.raises(DataError, match=r"graph\.ids: .* appears twice; allowed: each id once"):
            names_of(ids, len(ids))
        return
    if len({known_as(text) for text in texts}) < len(texts):
        with pytest.raises(DataError, match=r"graph\.ids: .* are one id to people; allowed: ids that differ in more"):
            names_of(ids, len(ids))
        return
    assert names_of(ids, len(ids)) == tuple(texts) and names_of(None, 2) is None
    with pytest.raises(DataError, match=rf"{len(ids)} ids? for {len(ids) + 1} nodes?; allowed: one for each"):
        names_of(ids, len(ids) + 1)


@pytest.mark.parametrize("value", [True, 7.5, None, b"x", (1, 2), float("nan"), float("inf")])
def test_what_names_nobody_is_refused_with_its_type(value: Any) -> None:
    with pytest.raises(DataError, match=rf"is a {type(value).__name__}; allowed: texts and whole numbers"):
        names_of([value], 1)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": ""}, "name"),
        ({"classes": (1, 2)}, "classes"),
        ({"notes": (None,)}, "notes"),
        ({"private": (True,)}, "private"),
        ({"private": ("names",)}, "private"),
        ({"source": ""}, "source"),
        ({"directed": 1}, "directed"),
        ({"dimension": 0}, "dimension"),
        ({"high": float("nan")}, "low, high"),
        ({"low": float("-inf")}, "low, high"),
        ({"classes": ("cat", "cat")}, "classes"),
        ({"classes": "ab"}, "classes"),
        ({"classes": None}, "classes"),
    ],
)
def test_a_schema_declares_what_can_be(change: dict[str, Any], field: str) -> None:
    fields: dict[str, Any] = {"name": "made", "dimension": 2, "low": 0.0, "high": 1.0, "classes": ("cat", "dog")}
    assert GraphSchema(**fields) == SCHEMA == GraphSchema(**{**fields, "classes": ["cat", "dog"]})
    with pytest.raises(InputError, match=rf"^GraphSchema: {field} is .*; allowed: "):
        GraphSchema(**{**fields, **change})


# ---- the graph value ----


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"schema": None}, "graph.schema: the graph has no GraphSchema; load it with load_graph"),
        ({"x": None}, "graph.x: x is not a float32 matrix"),
        ({"x": torch.zeros(4, 2).to_sparse_coo()}, "graph.x: x has layout torch.sparse_coo"),
        ({"y": torch.zeros(4)}, "graph.y: y is torch.float32; allowed: int64"),
        ({"edge_index": torch.zeros(2, 1)}, "graph.edge_index: edge_index is not an int64 [2, E]"),
        ({"train_mask": torch.zeros(4)}, "graph masks: a split mask is not a bool vector"),
        ({"public_edges": torch.ones(3, dtype=torch.bool)}, "graph.public_edges: is not true or false for each edge"),
        ({"private_nodes": torch.tensor([2, 0])}, "graph.private_nodes: are not ascending node numbers"),
        ({"ids": [1, 2, 1.0, 3]}, "'1' appears twice"),
        ({"ids": ["anna b", "b", "Anna\u200b  B", "c"]}, r"'anna b' and 'Anna\u200b \x20B' are one id to people"),
    ],
)
def test_a_graph_is_held_against_every_check(fields: dict[str, Any], message: str) -> None:
    graph = tiny_graph()
    assert validate(graph) is graph
    for name, value in fields.items():
        graph[name] = value
    with pytest.raises(DataError, match=re.escape(message)):
        validate(graph)
    if fields.keys() & {"x", "edge_index", "y", "ids"}:
        with pytest.raises(DataError, match=re.escape(message)):
            make_graph(graph.x, graph.edge_index, graph.y, graph.schema, ids=graph.get("ids"))


def test_an_id_has_one_name_however_it_is_typed_and_copies_keep_the_schema() -> None:
    graph = tiny_graph()
    for ids in ([0, 1, 2, 3], ["0", "1", "2", "3"], np.arange(4.0), torch.arange(4), np.array(["0", "1", "2", "3"])):
        graph.ids = ids
        assert node_names(graph) == ("0", "1", "2", "3")
    assert graph.clone().schema == graph.to("cpu").schema == graph.schema


# ---- feature matrices ----


tables = arrays(np.float32, st.tuples(st.integers(1, 8), st.integers(1, 20)), elements=st.sampled_from([0, 0, 0, 1, 2]))


def dense(features: object) -> np.ndarray:
    """Features of either form as one table."""
    if isinstance(features, np.ndarray):
        return features
    assert isinstance(features, SparseRows)
    return csr_matrix((features.values, features.columns, features.starts), shape=features.shape).toarray()


@settings(max_examples=100, deadline=None)
@given(tables)
def test_both_roads_give_the_same_form_and_the_same_numbers(table: np.ndarray) -> None:
    from_dense, other = compact_dense(table), compact_rows(csr_matrix(table))
    assert type(from_dense) is type(other)
    assert isinstance(from_dense, SparseRows) == (np.count_nonzero(table) < 0.1 * table.size)
    for rows in (from_dense, other):
        assert np.array_equal(dense(rows), table) and dense(rows).dtype == np.float32


@settings(max_examples=60, deadline=None)
@given(tables)
def test_tensors_and_arrays_are_one_thing(table: np.ndarray) -> None:
    tensor = features_tensor(compact_dense(table))
    assert torch.equal(tensor.to_dense(), torch.from_numpy(table))
    assert np.array_equal(dense(features_of(tensor)), table)
    assert np.array_equal(to_rows(tensor).toarray(), table)
    assert torch.equal(tensor.to_dense(), features_from_rows(csr_matrix(table)).to_dense())


@pytest.mark.parametrize("bad", [np.nan, np.inf, -0.5])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_first_bad_entry_is_named_by_node_and_column(bad: float, sparse: bool) -> None:
    table = np.zeros((5, 40), dtype=np.float32)
    table[1, 7], table[3, 2], table[3, 9], table[4, 0] = 1.0, bad, bad, bad
    features = compact_dense(table)
    assert isinstance(features, SparseRows)
    message = f"x: feature 2 of node 3 is {bad:g}; allowed: 0 to 1, no NaN"
    for given_as in (features, features_tensor(features)) if sparse else (table, torch.from_numpy(table)):
        with pytest.raises(DataError) as refusal:
            check_range(given_as, 0.0, 1.0, "x")
        assert str(refusal.value) == message


def test_absent_entries_are_zeros_and_repeated_ones_add_up() -> None:
    # Entries that stand twice add up before anything is decided.
    rows = csr_matrix((np.array([1.0, 1.0]), np.array([3, 3]), np.array([0, 2])), shape=(1, 20))
    assert dense(compact_rows(rows))[0, 3] == 2
    features = compact_rows(csr_matrix(([1.5], ([0], [1])), shape=(3, 20)))
    with pytest.raises(DataError, match="entries absent from the sparse features are 0"):
        check_range(features, 1.0, 2.0, "x")
    check_range(features, 0.0, 2.0, "x")
    check_range(np.full((2, 3), 1.5, dtype=np.float32), 1.0, 2.0, "x")


def test_clipping_counts_what_it_changed_and_refuses_what_is_no_number() -> None:
    table = np.array([[-1.0, 0.5], [2.0, 1.0]], dtype=np.float32)
    clipped, changed = clip_features(table, 0.0, 1.0, "x")
    assert clipped is table and changed == 2
    assert table.tolist() == [[0.0, 0.5], [1.0, 1.0]]
    assert clip_features(table, 0.0, 1.0, "x")[1] == 0
    infinite = np.array([[np.inf, -np.inf]], dtype=np.float32)
    assert clip_features(infinite, -2.0, 3.0, "x")[0].tolist() == [[3.0, -2.0]]
    table[1, 0] = np.nan
    with pytest.raises(DataError, match="feature 0 of node 1 is nan"):
        clip_features(table, 0.0, 1.0, "x")
