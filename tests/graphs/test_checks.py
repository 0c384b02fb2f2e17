"""What every graph must fulfil: each fault on its own is refused by the name of its part, with what is allowed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphveil.device.canonical_id import known_as
from graphveil.errors import DataError, InputError
from graphveil.graphs import GraphSchema
from graphveil.graphs.checks import (
    check_edges,
    check_features,
    check_labels,
    check_masks,
    check_private_nodes,
    check_public_edges,
    names_of,
)

SCHEMA = GraphSchema("made", 2, 0.0, 1.0, ("cat", "dog"))
PATH = np.array([[0, 1, 1, 2], [1, 0, 2, 1]])


def table(*rows: tuple[float, ...]) -> np.ndarray:
    return np.array(rows, dtype=np.float32)


@pytest.mark.parametrize(
    ("x", "said"),
    [
        (np.zeros((2, 2)), "graph.x: x is not a float32 matrix; allowed: float32 [n, d], dense or sparse CSR"),
        (np.zeros(2, dtype=np.float32), "graph.x: x is not a float32 matrix"),
        (table((0, 0, 0)), "graph.x: x has 3 features; allowed: the declared 2"),
        (np.zeros((0, 2), dtype=np.float32), "graph.x: the graph has no nodes"),
        (table((0, 0), (0, 2)), "graph.x: feature 1 of node 1 is 2; allowed: 0 to 1, no NaN"),
    ],
)
def test_features(x: np.ndarray, said: str) -> None:
    with pytest.raises(DataError) as found:
        check_features(x, SCHEMA)
    assert str(found.value).startswith(said)


@pytest.mark.parametrize(
    ("y", "said"),
    [
        (np.zeros(2, dtype=np.int64), "graph.y: y does not have one row for each node; allowed: 3 rows"),
        (np.zeros(3, dtype=np.int32), r"graph.y: y is int32; allowed: int64 \[n\] or float \[n, classes\]"),
        (np.zeros(3), "y is float64"),
        (np.array([0, 2, -2]), r"label of node 1 is 2; allowed: 0 to 1 \(cat, dog, \.\.\.\), or -1 for unknown"),
        (np.array([0, -1, -2]), "label of node 2 is -2"),
        (np.zeros((3, 3)), r"y is not a 0/1 matrix of the declared classes; allowed: float \[n, 2\]"),
        (np.zeros((3, 2), dtype=np.int64), "y is not a 0/1 matrix"),
        (np.full((3, 2), 0.5), "y is not a 0/1 matrix"),
        (np.full((3, 2), np.nan), "y is not a 0/1 matrix"),
    ],
)
def test_labels(y: np.ndarray, said: str) -> None:
    with pytest.raises(DataError, match=said):
        check_labels(y, 3, SCHEMA.classes)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-1, 1), max_size=6))
def test_known_and_unknown_classes_pass(labels: list[int]) -> None:
    check_labels(np.array(labels, dtype=np.int64), len(labels), SCHEMA.classes)
    check_labels(np.eye(3)[np.array(labels, dtype=np.int64)][:, :2], len(labels), SCHEMA.classes)


@pytest.mark.parametrize(
    ("edges", "said"),
    [
        (PATH + 1, r"graph.edge_index: edge 2 joins nodes \[2, 3\]; allowed: 0 to 2"),
        (PATH - 1, r"edge 0 joins nodes \[-1, 0\]"),
        (PATH[:, ::-1], "edges are unsorted, repeated, self-loops, or listed in one direction only"),
        (PATH[:, :3], "listed in one direction only"),
        (np.array([[0, 0], [1, 1]]), "repeated"),
        (np.array([[1], [1]]), "self-loops, .*; pass them through graphveil.graphs.normalise_edges"),
    ],
)
def test_edges(edges: np.ndarray, said: str) -> None:
    check_edges(PATH, 3, directed=False)
    with pytest.raises(DataError, match=said):
        check_edges(edges, 3, directed=False)


@pytest.mark.parametrize(
    ("masks", "said"),
    [
        ([np.zeros(3)], r"graph masks: a split mask is not a bool vector over the nodes; allowed: \[3\]"),
        ([np.zeros(2, dtype=bool)], "not a bool vector"),
        ([np.zeros((3, 1), dtype=bool)], "not a bool vector"),
        ([np.array([True, False, False])] * 2, "graph masks: a node is in two parts of the split"),
    ],
)
def test_masks(masks: list[np.ndarray], said: str) -> None:
    check_masks([], 3)
    check_masks(np.eye(3, dtype=bool), 3)
    with pytest.raises(DataError, match=said):
        check_masks(masks, 3)


@pytest.mark.parametrize(
    ("public", "said"),
    [
        (np.ones(4), r"graph.public_edges: is not true or false for each edge; allowed: bool \[E\]"),
        (np.ones(3, dtype=bool), "is not true or false for each edge"),
        (np.array([True, False, False, False]), "an edge is public in one direction only; allowed: both alike"),
    ],
)
def test_public_edges(public: np.ndarray, said: str) -> None:
    check_public_edges(np.array([True, True, False, False]), PATH, 3, directed=False)
    check_public_edges(np.array([True, False, False, False]), PATH, 3, directed=True)
    with pytest.raises(DataError, match=said):
        check_public_edges(public, PATH, 3, directed=False)


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
    texts = [str(one) for one in ids]
    if len(set(texts)) < len(texts):
        with pytest.raises(DataError, match=r"graph\.ids: .* appears twice; allowed: each id once"):
            names_of(ids, len(ids))
        return
    if len({known_as(one) for one in texts}) < len(texts):
        with pytest.raises(DataError, match=r"graph\.ids: .* are one id to people; allowed: ids that differ in more"):
            names_of(ids, len(ids))
        return
    assert names_of(ids, len(ids)) == tuple(texts)
    with pytest.raises(DataError, match=f"{len(ids)} ids for {len(ids) + 1} nodes; allowed: one for each"):
        names_of(ids, len(ids) + 1)


def test_one_person_has_one_name_whatever_the_column_became() -> None:
    """A column of whole numbers that once had a gap holds floats: 7 and 7.0 are the same person."""
    assert names_of(np.array([7.0, 8.0]), 2) == names_of([7, "8"], 2) == ("7", "8")
    assert names_of(None, 2) is None


@pytest.mark.parametrize("one", [True, 7.5, None, b"x", (1, 2), float("nan"), float("inf")])
def test_what_names_nobody_is_refused_with_its_type(one: Any) -> None:
    with pytest.raises(DataError, match=rf"is a {type(one).__name__}; allowed: texts and whole numbers"):
        names_of([one], 1)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": 7}, "name"),
        ({"classes": (1, 2)}, "classes"),
        ({"notes": (None,)}, "notes"),
        ({"private": (True,)}, "private"),
        ({"directed": 1}, "directed"),
        ({"dimension": 0}, "dimension"),
        ({"dimension": 2.0}, "dimension"),
        ({"low": 1.0}, "low, high"),
        ({"high": float("nan")}, "low, high"),
        ({"low": float("-inf")}, "low, high"),
        ({"classes": ("cat",)}, "classes"),
        ({"classes": ("cat", "cat")}, "classes"),
    ],
)
def test_a_schema_declares_what_can_be(change: dict[str, Any], field: str) -> None:
    fields: dict[str, Any] = {"name": "made", "dimension": 2, "low": 0.0, "high": 1.0, "classes": ("cat", "dog")}
    assert GraphSchema(**fields) == SCHEMA
    with pytest.raises(InputError, match=rf"^GraphSchema: {field} is .*; allowed: "):
        GraphSchema(**{**fields, **change})
