"""Graphs that a caller already has in Python: each way in gives the same graph, and refuses the same things."""

from __future__ import annotations

import datetime
import re
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import polars
import pytest
import torch
from scipy.sparse import coo_matrix, csr_matrix

import graphveil
from graphveil.errors import DataError, InputError
from graphveil.graphs import (
    GraphSchema,
    as_graph,
    describe,
    from_adjacency,
    from_networkx,
    from_pyg,
    from_tables,
    load_graph,
    load_parts,
    make_graph,
    to_pyg,
    validate,
)
from graphveil.graphs.tables.arrays import as_table, columns_table
from graphveil.runtime.late import quiet
from tests.graphs.made import folder, tiny_graph

with quiet():
    from torch_geometric.data import Data, HeteroData

RANGE = {"range": (0, 10), "classes": ["cat", "dog"]}
NODES = {"id": ["a", "b", "c"], "age": [1, 3, 5], "height": [2, 4, 6], "label": ["cat", "dog", None]}
EDGES = {"source": ["a", "b"], "target": ["b", "c"]}


def data(**parts: object) -> Data:
    """The graph of NODES and EDGES as PyG has it."""
    given = {
        "x": torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
        "y": torch.tensor([0, 1, -1]),
        "edge_index": torch.tensor([[0, 1], [1, 2]]),
    }
    return Data(**{**given, **parts})


def club() -> networkx.Graph:
    """The same as NetworkX has it."""
    graph = networkx.Graph()
    for name, age, height, label in zip(*NODES.values(), strict=True):
        graph.add_node(name, age=age, height=height, **({} if label is None else {"label": label}))
    graph.add_edges_from(zip(*EDGES.values(), strict=True))
    return graph


def adjacency() -> np.ndarray:
    """Its links as a matrix."""
    return np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])


def same(graph, other) -> None:
    assert torch.equal(graph.x, other.x)
    assert torch.equal(graph.y, other.y)
    assert torch.equal(graph.edge_index, other.edge_index)
    for field in ("dimension", "low", "high", "classes", "directed", "private"):
        assert getattr(graph.schema, field) == getattr(other.schema, field)


@pytest.mark.parametrize("directed", [False, True])
def test_every_way_in_gives_the_graph_of_the_folder(tmp_path: Path, directed: bool):
    toml = Path(folder(tmp_path / "own") / "graph.toml")
    toml.write_text(toml.read_text().replace("directed = false", f"directed = {str(directed).lower()}"))
    whole = load_graph(tmp_path / "own")
    facts = {**RANGE, "directed": directed}
    ways = [
        from_tables(NODES, EDGES, **facts),
        from_tables(polars.DataFrame(NODES), polars.DataFrame(EDGES).lazy(), **facts),
        from_tables(tmp_path / "own" / "nodes.csv", str(tmp_path / "own" / "edges.csv"), **facts),
        from_tables(NODES, EDGES, schema=whole.schema),
        from_networkx(_with_direction(directed), features=["age", "height"], **facts),
        from_pyg(data(), **facts),
        from_pyg(data(), schema=whole.schema),
        from_adjacency(adjacency(), data().x, data().y, **facts),
        from_adjacency(coo_matrix(adjacency()), data().x.numpy(), ["cat", "dog", None], **facts),
        from_adjacency(torch.tensor(adjacency()).to_sparse(), data().x.double(), data().y.int(), **facts),
    ]
    for graph in ways:
        same(validate(graph), whole)
    for graph in ways[:5]:
        assert list(graph.ids) == ["a", "b", "c"]


def _with_direction(directed: bool) -> networkx.Graph:
    graph = club()
    if not directed:
        return graph
    arrows = networkx.DiGraph()
    arrows.add_nodes_from(graph.nodes(data=True))
    arrows.add_edges_from(zip(*EDGES.values(), strict=True))
    return arrows


# ---- what is declared ----

UNDECLARED = {
    "pyg": (lambda **facts: from_pyg(data(), **facts), "from_pyg(data"),
    "adjacency": (lambda **facts: from_adjacency(adjacency(), data().x, **facts), "from_adjacency(adjacency, x, y"),
    "tables": (lambda **facts: from_tables(NODES, EDGES, **facts), "from_tables(nodes, edges"),
    "networkx": (
        lambda **facts: from_networkx(club(), features=["age"], **facts),
        "from_networkx(graph, features=['age']",
    ),
}


@pytest.mark.parametrize("way", UNDECLARED)
def test_undeclared_facts_are_refused_with_the_line_that_declares_them(way: str):
    """It asks for what the caller knows: filling in the least and greatest value would give them away."""
    call, line = UNDECLARED[way]
    with pytest.raises(InputError) as refused:
        call()
    assert "range and classes are not declared" in str(refused.value)
    assert re.search(re.escape(line) + r', range=\(LOW, HIGH\), classes=\["NAME", "NAME"\]\)', str(refused.value))
    assert "never from the data" in str(refused.value) and not re.search(r"\d", str(refused.value))
    with pytest.raises(InputError, match=r"range is not declared.*range=\(LOW, HIGH\)"):
        call(classes=["cat", "dog"])


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        (
            {"rang": (0, 1), "classes": 2},
            "from_pyg: unknown argument 'rang'; allowed: range, classes.*did you mean range",
        ),
        ({"range": 3, "classes": 2}, "from_pyg: range is 3; allowed: .low, high."),
        ({"range": (0, 10), "classes": 2, "directed": 1}, "directed is 1; allowed: true or false"),
        ({"schema": "tiny"}, "from_pyg: schema is a str"),
        ({"schema": tiny_graph().schema, "range": (0, 1)}, "range is declared twice"),
    ],
)
def test_a_wrong_declaration_is_refused(facts, message):
    with pytest.raises(InputError, match=message):
        from_pyg(data(), **facts)


def test_what_is_declared_by_default_stands_in_the_notes():
    graph = from_adjacency(adjacency(), data().x > 3, classes=2)
    assert (graph.schema.low, graph.schema.high, graph.schema.classes) == (0.0, 1.0, ("0", "1"))
    assert graph.schema.private == ("features", "labels")
    notes = "; ".join(graph.schema.notes)
    assert "range 0 to 1: the features have the type bool" in notes
    assert "private by default: features and labels, not edges" in notes
    assert "no labels: every label unknown" in notes
    assert "by default" not in " ".join(from_pyg(data(), private=["features"], **RANGE).schema.notes)
    with pytest.raises(InputError, match="range is not declared"):
        from_pyg(data(x=torch.eye(3)), classes=2)  # zeros and ones of another type are no declaration


# ---- PyG ----


def test_masks_ids_and_known_edges_come_along():
    mask = torch.tensor([True, False, False])
    both = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    public = torch.tensor([True, True, False, False])
    parts = {"train_mask": mask, "ids": ["x", "y", "z"], "private_nodes": torch.tensor([1, 2])}
    graph = validate(from_pyg(data(edge_index=both, public_edges=public, **parts), **RANGE))
    assert torch.equal(graph.train_mask, mask)
    assert graph.ids == ["x", "y", "z"]
    assert graph.public_edges.tolist() == [True, True, False, False]
    assert graph.private_nodes.tolist() == [1, 2]
    listed = torch.tensor([[0, 0, 1, 2, 2], [0, 1, 0, 1, 1]])
    notes = "; ".join(from_pyg(data(edge_index=listed, edge_attr=torch.ones(5)), **RANGE).schema.notes)
    for words in ("removed 1 self-loop", "merged 1 duplicate edge", "both directions", "left out edge_attr"):
        assert words in notes


def test_an_attribute_of_a_users_own_is_no_release_and_no_image() -> None:
    """Reports on a release are free: the date of a data set must not make them so."""
    graph = from_pyg(data(release="2026-01", image="cat.png"), **RANGE)
    assert graph.get("release") is None and graph.get("image") is None


REFUSED = {
    "x missing": ({"x": None}, "from_pyg: data has no x"),
    "edges missing": ({"edge_index": None}, "data has no edge_index"),
    "x kind": ({"x": torch.zeros(3, 2, dtype=torch.complex64)}, "x: has type complex64"),
    "x nan": ({"x": torch.tensor([[0.0], [torch.nan], [1.0]])}, "x: feature 0 of node 1 is nan; allowed: 0 to 10"),
    "x huge": ({"x": torch.tensor([[0.0], [1e300], [1.0]], dtype=torch.float64)}, "feature 0 of node 1 is inf"),
    "y kind": ({"y": torch.zeros(3)}, "y: has type float32; allowed: whole numbers"),
    "edges kind": ({"edge_index": torch.rand(2, 4)}, r"edge_index: has shape \(2, 4\) and type float32"),
    "edges sparse": ({"edge_index": torch.eye(3).to_sparse()}, "edge_index: is sparse; allowed: a dense array"),
    "x uneven": ({"x": [[1, 2], [3]]}, "x: is no array; allowed: an array, tensor or list, all rows equally long"),
    "ids one": ({"ids": 5}, "graph.ids: int in place of a list; allowed: texts and whole numbers"),
    "edges turned": ({"edge_index": torch.zeros(5, 2, dtype=torch.int64)}, "hand over its transpose"),
    "nodes more": ({"num_nodes": 5}, "from_pyg: data has num_nodes 5, and 3 rows of features"),
    "edge as both": (
        {"edge_index": torch.tensor([[0, 1], [1, 0]]), "public_edges": torch.tensor([True, False])},
        "an edge is listed as public and as private",
    ),
    "mask several": ({"train_mask": torch.ones(3, 10, dtype=torch.bool)}, "train_mask holds 10 splits; choose one"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused_with_its_place(case: str):
    parts, message = REFUSED[case]
    with pytest.raises(DataError, match=message) as refused:
        from_pyg(data(**parts), **RANGE)
    assert "\n" not in str(refused.value)
    with pytest.raises(InputError, match="several kinds of nodes; call data"):
        from_pyg(HeteroData(), **RANGE)


def test_clipping_is_counted_and_never_lets_nan_pass():
    x = torch.tensor([[-1.0], [5.0], [11.0]])
    graph = from_pyg(data(x=x), out_of_range="clip", **RANGE)
    assert graph.x.flatten().tolist() == [0, 5, 10]
    assert x.flatten().tolist() == [-1, 5, 11]
    assert "clipped 2 feature values to the declared range" in graph.schema.notes
    with pytest.raises(DataError, match="feature 0 of node 0"):
        from_pyg(data(x=torch.full((3, 1), torch.nan)), out_of_range="clip", **RANGE)


def test_a_day_is_no_number_and_a_truth_is_called_as_classes_are():
    days = polars.DataFrame({**NODES, "day": [datetime.date(1970, 1, 2)] * 3})
    with pytest.raises(DataError, match=r"day is datetime.date\(1970, 1, 2\), not a number"):
        from_tables(days, EDGES, **RANGE)
    with pytest.raises(DataError, match="label is 'true', not a declared class; allowed: False, True"):
        from_tables({**NODES, "label": [True, False, None]}, EDGES, range=(0, 10), classes=["False", "True"])


def test_a_column_of_a_frame_is_refused_by_its_name():
    ages = polars.DataFrame({"height": [1.0, 2.0], "age": [3.0, 99.0]})
    with pytest.raises(DataError, match="x: feature age of node 1 is 99; allowed: 0 to 10"):
        graphveil.from_adjacency(np.ones((2, 2)), ages, None, **RANGE)


def test_labels_in_every_form_mean_the_same():
    expected = from_pyg(data(), **RANGE).y
    for y in (data().y[:, None], np.array(["cat", "dog", ""]), ["cat", "dog", None], data().y.to(torch.int8)):
        assert torch.equal(from_adjacency(adjacency(), data().x, y, **RANGE).y, expected)
    several = from_pyg(data(y=torch.tensor([[0, 1], [1, 1], [0, 0]])), **RANGE)
    assert several.y.dtype == torch.float32
    with pytest.raises(DataError, match="label of node 0 is 'bird', not a declared class; allowed: cat, dog"):
        from_adjacency(adjacency(), data().x, ["bird", None, None], **RANGE)
    with pytest.raises(DataError, match="label of node 0"):
        from_adjacency(adjacency(), data().x, np.array([2**64 - 1, 0, 0], dtype=np.uint64), **RANGE)


def test_what_is_no_graph_of_networkx_or_of_ours_is_refused_by_name() -> None:
    unusable: Any = [1, 2]
    with pytest.raises(InputError, match="graph: is a list; allowed: a NetworkX graph"):
        from_networkx(unusable, **RANGE)
    with pytest.raises(InputError, match="features: is a NoneType; allowed: the name of an attribute"):
        from_networkx(club(), features=None, **RANGE)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="to_pyg: a list is no graph of graphveil; make one"):
        to_pyg(unusable)
    with pytest.raises(InputError, match="graph: a list is no graph of graphveil; make one"):
        describe(unusable)
    with pytest.raises(InputError, match="make_graph: schema is a NoneType"):
        make_graph(data().x, data().edge_index, data().y, None)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="root is 5; allowed: a text or a path"):
        load_graph("cora", root=5)  # type: ignore[arg-type]


# ---- adjacency ----


def test_weights_are_left_out_and_said_and_an_explicit_zero_is_no_edge():
    matrix = csr_matrix(([0.5, 2.0, 0.0], ([0, 1, 2], [1, 2, 0])), shape=(3, 3))
    graph = from_adjacency(matrix, data().x, **RANGE)
    assert graph.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert any("weights of edges" in note for note in graph.schema.notes)
    assert matrix.nnz == 3


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.zeros((2, 2)), r"adjacency: has shape \(2, 2\); allowed: \(3, 3\)"),
        (np.zeros(3), r"adjacency: has shape \(3,\)"),
        (np.full((3, 3), np.nan), "adjacency: holds NaN or infinity"),
        (np.full((3, 3), "a"), "adjacency: has shape"),
        (np.full((3, 3), np.nan, dtype=np.float16), "adjacency: holds NaN or infinity"),
    ],
)
def test_a_matrix_that_is_no_adjacency_is_refused(matrix, message):
    with pytest.raises(DataError, match=message):
        from_adjacency(matrix, data().x, **RANGE)
    with pytest.raises(DataError, match="unknown mask 'train'; allowed: train_mask"):
        from_adjacency(adjacency(), data().x, masks={"train": np.zeros(3, dtype=bool)}, **RANGE)


# ---- tables ----


def test_columns_are_named_by_keyword():
    nodes = {"who": ["a", "b"], "kind": ["cat;dog", ""], "part": ["train", "test"], "in": [True, False], "age": [1, 2]}
    edges = {"from": ["a"], "to": ["b"], "open": ["yes"]}
    columns = {"id": "who", "label": "kind", "label_separator": ";", "split": "part", "private_nodes": "in"}
    ends = {"source": "from", "target": "to", "public_edges": "open", "features": ["age"]}
    graph = validate(from_tables(nodes, edges, **columns, **ends, **RANGE))
    assert graph.y.tolist() == [[1, 1], [0, 0]]
    assert graph.train_mask.tolist() == [True, False]
    assert graph.public_edges.tolist() == [True, True]
    assert graph.private_nodes.tolist() == [0]
    # Whole numbers are ids too, and sparse entries a table.
    nodes, edges = {**NODES, "id": [10, 700, 3]}, {"source": [10, 700], "target": [700.0, 3.0]}
    graph = from_tables(nodes, edges, **RANGE)
    assert list(graph.ids) == ["10", "700", "3"]
    assert torch.equal(graph.edge_index, from_pyg(data(), **RANGE).edge_index)
    nodes = {key: NODES[key] for key in ("id", "label")}
    entries = {"id": ["a", "c"], "feature": [3, 39], "value": [2, 5]}
    graph = from_tables(nodes, EDGES, entries, dimension=40, **RANGE)
    assert graph.x.is_sparse_csr and graph.x.to_dense()[2, 39] == 5
    with pytest.raises(DataError, match="dimension is not declared, but entries exists"):
        from_tables(nodes, EDGES, entries, **RANGE)


def test_frames_of_pandas_are_taken():
    pandas = pytest.importorskip("pandas")
    nodes = pandas.DataFrame(NODES)
    same(from_tables(nodes, pandas.DataFrame(EDGES), **RANGE), from_tables(NODES, EDGES, **RANGE))
    kinds = nodes.astype({"age": "Int64", "height": "float32", "label": "category"})
    same(from_tables(kinds, pandas.DataFrame(EDGES), **RANGE), from_tables(NODES, EDGES, **RANGE))
    kinds.loc[1, "age"] = None
    with pytest.raises(DataError, match="nodes, row 2: age is missing"):
        from_tables(kinds, EDGES, **RANGE)
    with pytest.raises(DataError, match="column 'day' holds datetime64"):
        from_tables(nodes.assign(day=pandas.Timestamp("2020-01-01")), EDGES, **RANGE)
    twice = pandas.DataFrame([["a", 1, 2]], columns=["id", "age", "age"])
    with pytest.raises(DataError, match="nodes: has two columns 'age'"):
        from_tables(twice, EDGES, **RANGE)


# ---- NetworkX ----


def test_splits_and_known_edges_are_attributes():
    graph = club()
    networkx.set_node_attributes(graph, {"a": "train", "b": "val", "c": "test"}, "part")
    networkx.set_node_attributes(graph, {"a": True, "b": True, "c": False}, "member")
    networkx.set_edge_attributes(graph, {("a", "b"): True, ("b", "c"): False}, "open")
    named = {"split": "part", "public_edges": "open", "private_nodes": "member"}
    converted = validate(from_networkx(graph, features=["age"], **named, **RANGE))
    assert converted.val_mask.tolist() == [False, True, False]
    assert converted.public_edges.tolist() == [True, True, False, False]
    assert converted.private_nodes.tolist() == [0, 1]


# ---- one door ----


def test_as_graph_takes_what_users_have_and_nothing_that_declares_nothing(tmp_path: Path):
    graph = from_pyg(data(), **RANGE)
    assert as_graph(graph) is graph
    same(from_pyg(graph), graph)
    for source in (data(), load_parts(folder(tmp_path / "own")), str(tmp_path / "own")):
        same(as_graph(source, graph.schema), graph)
    same(graphveil.load_graph(data(), schema=graph.schema), graph)
    other = GraphSchema("other", 2, 0.0, 20.0, ("cat", "dog"))
    assert as_graph(graph, other).schema.high == 20
    friends = club()
    for node in friends:
        friends.nodes[node]["x"] = [friends.nodes[node]["age"], friends.nodes[node]["height"]]
    same(as_graph(friends, graph.schema), graph)
    with pytest.raises(InputError, match=r"range and classes are not declared; write from_pyg\(data, range="):
        as_graph(data())
    with pytest.raises(InputError, match=r"a dict is not a graph.*from_tables\(nodes, edges"):
        as_graph(NODES)


# ---- tables that a caller hands over ----


def column(values: Any) -> list[Any]:
    """What a column of these values holds as a table."""
    entries: list[Any] = columns_table({"a": values}, "people").column("a").to_list()
    return entries


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([1, 2, None], [1, 2, None]),
        ([1, 2.5, float("nan")], [1.0, 2.5, None]),
        ([True, None, False], [True, None, False]),
        (["x", 1, True, None], ["x", "1", "True", None]),
        ([True, 2], ["True", "2"]),
        ((np.int64(3), np.float32(0.5)), [3.0, 0.5]),
        (np.array([0.5, np.nan]), [0.5, None]),
        (np.array(["a", "b"]), ["a", "b"]),
        (np.array(["a", None, float("nan")], dtype=object), ["a", None, None]),
        (polars.Series("other name", [1, None]), [1, None]),
    ],
)
def test_a_column_keeps_its_kind_and_what_is_missing_is_null(values: Any, wanted: list[Any]) -> None:
    entries = column(values)
    assert entries == wanted
    assert [type(entry) for entry in entries] == [type(entry) for entry in wanted]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[1], [2]], "people: column 'a' holds a list; allowed: text, numbers, true or false"),
        ([datetime.date(2020, 1, 1)], "column 'a' holds a date"),
        ([b"x", "y"], "column 'a' holds a bytes"),
        ([0.5, 10**400], "column 'a' holds numbers that are too large"),
        (np.zeros((2, 2)), r"column 'a' has shape \(2, 2\); allowed: one value a row"),
        (np.array([1 + 2j]), "column 'a' holds complex128"),
        (np.array(["2020-01-01"], dtype="datetime64[D]"), "column 'a' holds datetime64"),
    ],
)
def test_a_column_of_anything_else_is_refused_by_name(values: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        column(values)


def test_numbers_of_numpy_declare_as_those_of_python_do() -> None:
    facts = {"range": np.array([0, 10]), "classes": np.array(["cat", "dog"]), "directed": False}
    same(from_pyg(data(), **facts), from_pyg(data(), **RANGE))


def test_a_list_of_numbers_is_a_row_of_features_as_long_at_every_node() -> None:
    graph = networkx.relabel_nodes(club(), {"a": 1, "b": 2, "c": 3})
    for node in graph:
        graph.nodes[node]["x"] = [graph.nodes[node]["age"], graph.nodes[node]["height"]]
    converted = from_networkx(graph, **RANGE)
    same(converted, from_tables(NODES, EDGES, **RANGE))
    assert list(converted.ids) == ["1", "2", "3"]
    graph.nodes[2]["x"] = [1]
    with pytest.raises(DataError, match="node '2': x is not such a list; allowed: a list of numbers, equally long"):
        from_networkx(graph, **RANGE)


def test_direction_is_that_of_the_graph_or_less() -> None:
    assert from_networkx(_with_direction(True), features=["age"], **RANGE).schema.directed
    undirected = from_networkx(_with_direction(True), features=["age"], directed=False, **RANGE)
    assert undirected.edge_index.shape[1] == 4
    with pytest.raises(InputError, match="directed=True, but the edges of the graph have no direction"):
        from_networkx(club(), features=["age"], directed=True, **RANGE)


@pytest.mark.parametrize("nothing", [None, [1, 2]])
def test_what_is_no_frame_is_refused_with_what_would_be_one(nothing: Any) -> None:
    with pytest.raises(DataError, match="people: has columns of different lengths"):
        columns_table({"a": [1, 2], "b": [1]}, "people")
    with pytest.raises(DataError, match=r"nodes: no file '.*absent\.csv'"):
        as_table("absent.csv", "nodes")
    with pytest.raises(InputError, match=f"nodes: is a {type(nothing).__name__}; allowed: a polars or pandas frame"):
        as_table(nothing, "nodes")
