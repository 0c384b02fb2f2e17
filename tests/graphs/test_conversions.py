"""Graphs that a caller already has in Python: each way in gives the same graph, and refuses the same things."""

from __future__ import annotations

import re
from pathlib import Path

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
    digits_graph,
    from_adjacency,
    from_networkx,
    from_pyg,
    from_tables,
    load_graph,
    load_parts,
    to_pyg,
    validate,
)
from graphveil.graphs.quiet import quiet
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


def same(one, other) -> None:
    assert torch.equal(one.x, other.x)
    assert torch.equal(one.y, other.y)
    assert torch.equal(one.edge_index, other.edge_index)
    for field in ("dimension", "low", "high", "classes", "directed", "private"):
        assert getattr(one.schema, field) == getattr(other.schema, field)


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
    call, line = UNDECLARED[way]
    with pytest.raises(InputError) as refused:
        call()
    assert "range and classes are not declared" in str(refused.value)
    assert re.search(re.escape(line) + r'.*, range=\(LOW, HIGH\), classes=\["NAME", "NAME"\]\)', str(refused.value))
    assert "never from the data" in str(refused.value)
    with pytest.raises(InputError, match=r"range is not declared.*range=\(LOW, HIGH\)"):
        call(classes=["cat", "dog"])


@pytest.mark.parametrize("way", UNDECLARED)
def test_a_refusal_holds_no_value_of_the_data(way: str):
    """The remedy asks for what the caller knows: filling in the least and greatest value would give them away."""
    with pytest.raises(InputError) as refused:
        UNDECLARED[way][0]()
    assert not re.search(r"\d", str(refused.value))


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        (
            {"rang": (0, 1), "classes": 2},
            "from_pyg: unknown argument 'rang'; allowed: range, classes.*did you mean range",
        ),
        ({"range": (1, 0), "classes": 2}, r"from_pyg: range is \[1, 0\]"),
        ({"range": 3, "classes": 2}, "from_pyg: range is 3; allowed: .low, high."),
        ({"range": (0, 10), "classes": 1}, "from_pyg: classes are .'0'.; allowed: at least two"),
        ({"range": (0, 10), "classes": ["a", "a"]}, "classes are"),
        ({"range": (0, 10), "classes": 2, "private": ["edges", "names"]}, "private names 'names'"),
        ({"range": (0, 10), "classes": 2, "out_of_range": "drop"}, "out_of_range is 'drop'; allowed: refuse, clip"),
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


def test_zeros_and_ones_of_another_type_are_no_declaration():
    with pytest.raises(InputError, match="range is not declared"):
        from_pyg(data(x=torch.eye(3)), classes=2)


def test_numbers_of_numpy_declare_too():
    facts = {"range": np.array([0, 10]), "classes": np.array(["cat", "dog"]), "directed": False}
    same(from_pyg(data(), **facts), from_pyg(data(), **RANGE))
    assert len(from_pyg(data(), range=(0, 10), classes=np.int64(3)).schema.classes) == 3


def test_ranges_of_columns_scale_them():
    graph = from_tables(NODES, EDGES, range={"age": (0, 10), "*": (0, 20)}, classes=["cat", "dog"])
    assert torch.allclose(graph.x, torch.tensor([[0.1, 0.1], [0.3, 0.2], [0.5, 0.3]]))


# ---- PyG ----


def test_a_graph_with_a_schema_needs_nothing_else():
    graph = digits_graph()
    same(from_pyg(graph), graph)
    assert from_pyg(graph).image == graph.image


def test_masks_ids_and_known_edges_come_along():
    mask = torch.tensor([True, False, False])
    both = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    known = torch.tensor([True, True, False, False])
    parts = {"train_mask": mask, "ids": ["x", "y", "z"], "private_nodes": torch.tensor([1, 2])}
    graph = validate(from_pyg(data(edge_index=both, public_edges=known, **parts), **RANGE))
    assert torch.equal(graph.train_mask, mask)
    assert graph.ids == ["x", "y", "z"]
    assert graph.public_edges.tolist() == [True, True, False, False]
    assert graph.private_nodes.tolist() == [1, 2]


def test_edges_are_brought_to_one_form_and_each_change_is_counted():
    listed = torch.tensor([[0, 0, 1, 2, 2], [0, 1, 0, 1, 1]])
    graph = validate(from_pyg(data(edge_index=listed, edge_attr=torch.ones(5)), **RANGE))
    assert graph.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    notes = "; ".join(graph.schema.notes)
    for words in ("removed 1 self-loops", "merged 1 duplicate edges", "both directions", "left out edge_attr"):
        assert words in notes


def test_isolated_nodes_stay():
    graph = from_pyg(data(edge_index=torch.empty(2, 0, dtype=torch.int64)), **RANGE)
    assert validate(graph).num_nodes == 3
    assert describe(graph)["isolated_nodes"] == 3


KINDS = {
    "float64": lambda x: x.double(),
    "float16": lambda x: x.half(),
    "bfloat16": lambda x: x.bfloat16(),
    "whole": lambda x: x.long(),
    "csr": lambda x: x.to_sparse_csr(),
    "coo": lambda x: x.to_sparse(),
    "gradient": lambda x: x.clone().requires_grad_(),
}


@pytest.mark.parametrize("kind", KINDS)
def test_features_of_any_type_become_the_same(kind: str):
    with quiet():
        same(from_pyg(data(x=KINDS[kind](data().x)), **RANGE), from_pyg(data(), **RANGE))


def test_sparse_features_stay_sparse():
    x = csr_matrix(([1.0], ([0], [7])), shape=(3, 40))
    graph = from_adjacency(adjacency(), x, **RANGE)
    assert graph.x.is_sparse_csr
    assert graph.x.to_dense()[0, 7] == 1
    assert to_pyg(graph).x.layout == torch.strided


REFUSED = {
    "x missing": ({"x": None}, "from_pyg: data has no x"),
    "edges missing": ({"edge_index": None}, "data has no edge_index"),
    "x shape": ({"x": torch.zeros(3)}, r"x: has shape \(3,\)"),
    "x kind": ({"x": torch.zeros(3, 2, dtype=torch.complex64)}, "x: has type complex64"),
    "x nan": (
        {"x": torch.tensor([[0.0], [torch.nan], [1.0]])},
        "x: feature 0 of node 1 is nan; allowed: 0 to 10",
    ),
    "x inf": ({"x": torch.tensor([[0.0], [torch.inf], [1.0]])}, "x: feature 0 of node 1 is inf"),
    "x huge": ({"x": torch.tensor([[0.0], [1e300], [1.0]], dtype=torch.float64)}, "feature 0 of node 1 is inf"),
    "x high": ({"x": torch.tensor([[0.0], [1.0], [10.5]])}, "feature 0 of node 2 is 10.5; allowed: 0 to 10"),
    "x low": ({"x": torch.tensor([[0.0], [-1.0], [1.0]])}, "feature 0 of node 1 is -1"),
    "y kind": ({"y": torch.zeros(3)}, "y: has type float32; allowed: whole numbers"),
    "y nan": ({"y": torch.tensor([0.0, torch.nan, 1.0])}, "y: has type float32"),
    "y high": ({"y": torch.tensor([0, 2, 1])}, "label of node 1 is 2; allowed: 0 to 1"),
    "y low": ({"y": torch.tensor([0, -2, 1])}, "label of node 1 is -2"),
    "y short": ({"y": torch.tensor([0, 1])}, "y does not have one row for each node"),
    "y shape": ({"y": torch.zeros(3, 2, 2)}, r"y: has shape \(3, 2, 2\)"),
    "y several": ({"y": torch.full((3, 2), 0.5)}, "y is not a 0/1 matrix"),
    "edges kind": ({"edge_index": torch.rand(2, 4)}, r"edge_index: has shape \(2, 4\) and type float32"),
    "edges turned": ({"edge_index": torch.zeros(5, 2, dtype=torch.int64)}, "hand over its transpose"),
    "edges high": (
        {"edge_index": torch.tensor([[0], [3]])},
        "edge names a node that does not exist; allowed: whole numbers",
    ),
    "edges low": ({"edge_index": torch.tensor([[0], [-1]])}, "edge names a node that does not exist"),
    "mask kind": ({"train_mask": torch.tensor([1, 0, 0])}, "split mask is not a bool vector"),
    "mask several": ({"train_mask": torch.ones(3, 10, dtype=torch.bool)}, "train_mask holds 10 splits; choose one"),
    "mask shared": (
        {"train_mask": torch.tensor([True, False, False]), "test_mask": torch.tensor([True, True, False])},
        "a node is in two parts of the split",
    ),
    "ids short": ({"ids": ["a"]}, "1 ids for 3 nodes"),
    "ids twice": ({"ids": ["a", "b", "a"]}, "'a' appears twice"),
    "public kind": ({"public_edges": torch.tensor([1, 0])}, "public_edges: is not true or false for each edge"),
    "public and private": (
        {"edge_index": torch.tensor([[0, 1], [1, 0]]), "public_edges": torch.tensor([True, False])},
        "an edge is listed as public and as private",
    ),
    "members": ({"private_nodes": torch.tensor([2, 1])}, "are not ascending node numbers"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused_with_its_place(case: str):
    parts, message = REFUSED[case]
    with pytest.raises(DataError, match=message) as refused:
        from_pyg(data(**parts), **RANGE)
    assert "\n" not in str(refused.value)


def test_several_kinds_of_nodes_are_refused():
    with pytest.raises(InputError, match="several kinds of nodes; call data"):
        from_pyg(HeteroData(), **RANGE)


def test_clipping_is_counted_and_never_lets_nan_pass():
    x = torch.tensor([[-1.0], [5.0], [11.0]])
    graph = from_pyg(data(x=x), out_of_range="clip", **RANGE)
    assert graph.x.flatten().tolist() == [0, 5, 10]
    assert x.flatten().tolist() == [-1, 5, 11]
    assert "clipped 2 feature values to the declared range" in graph.schema.notes
    sparse = csr_matrix(np.array([[0.0] * 20 + [12.0]] * 3))
    assert from_adjacency(adjacency(), sparse, out_of_range="clip", **RANGE).x.to_dense().max() == 10
    for bad in (torch.nan, torch.inf):
        with pytest.raises(DataError, match="feature 0 of node 0"):
            from_pyg(data(x=torch.full((3, 1), bad)), out_of_range="clip", **RANGE)


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


# ---- adjacency ----


def test_weights_are_left_out_and_said():
    matrix = csr_matrix(np.array([[0, 0.5, 0], [0, 0, 2], [0, 0, 0]]))
    graph = from_adjacency(matrix, data().x, **RANGE)
    assert graph.edge_index.shape[1] == 4
    assert any("weights of edges" in note for note in graph.schema.notes)
    assert matrix.nnz == 2


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.zeros((2, 2)), r"adjacency: has shape \(2, 2\); allowed: \(3, 3\)"),
        (np.zeros(3), r"adjacency: has shape \(3,\)"),
        (np.full((3, 3), np.nan), "adjacency: holds NaN or infinity"),
        (np.full((3, 3), "a"), "adjacency: has shape"),
    ],
)
def test_a_matrix_that_is_no_adjacency_is_refused(matrix, message):
    with pytest.raises(DataError, match=message):
        from_adjacency(matrix, data().x, **RANGE)


def test_an_explicit_zero_is_no_edge():
    matrix = csr_matrix(([0.0, 1.0], ([0, 1], [1, 2])), shape=(3, 3))
    assert from_adjacency(matrix, data().x, **RANGE).edge_index.tolist() == [[1, 2], [2, 1]]


def test_an_unknown_mask_is_refused():
    with pytest.raises(DataError, match="unknown mask 'train'; allowed: train_mask"):
        from_adjacency(adjacency(), data().x, masks={"train": np.zeros(3, dtype=bool)}, **RANGE)


# ---- tables ----


def with_nodes(**columns: object) -> dict[str, object]:
    return {key: value for key, value in {**NODES, **columns}.items() if value is not None}


TABLES = {
    "no id": (with_nodes(id=None), EDGES, "nodes: has no column 'id'; allowed: its columns are age"),
    "id twice": (with_nodes(id=["a", "b", "a"]), EDGES, "nodes, row 3: id 'a' appears twice"),
    "id missing": (with_nodes(id=["a", None, "c"]), EDGES, "nodes, row 2: id is missing"),
    "stranger": (NODES, {"source": ["a"], "target": ["z"]}, "edges, row 1: target 'z' is not an id in the nodes file"),
    "no number": (with_nodes(age=["1", "two", "3"]), EDGES, "nodes, row 2: age is 'two', not a number"),
    "missing": (with_nodes(age=[1, None, 3]), EDGES, "nodes, row 2: age is missing; allowed: a number in every row"),
    "nan": (with_nodes(age=[1.0, float("nan"), 3.0]), EDGES, "nodes, row 2: age is missing"),
    "high": (with_nodes(age=[1, 11, 3]), EDGES, "nodes, row 2: age is 11; allowed: the declared range 0 to 10"),
    "class": (
        with_nodes(label=["cat", "bird", None]),
        EDGES,
        "label is 'bird', not a declared class; allowed: cat, dog",
    ),
    "lists": (with_nodes(age=[[1], [2], [3]]), EDGES, "nodes: column 'age' holds a list"),
    "short": (with_nodes(age=[1, 2]), EDGES, "nodes: has columns of different lengths"),
    "empty": ({key: [] for key in NODES}, EDGES, "nodes: has no rows"),
    "no columns": ({"id": ["a"]}, {"source": [], "target": []}, "nodes: has no feature columns; add some"),
    "huge": (with_nodes(age=[1, 10**30, 3]), EDGES, "nodes.*age"),
}


@pytest.mark.parametrize("case", TABLES)
def test_tables_are_refused_as_files_are(case: str):
    nodes, edges, message = TABLES[case]
    with pytest.raises(DataError, match=message):
        from_tables(nodes, edges, **RANGE)


def test_what_is_no_table_is_refused(tmp_path: Path):
    with pytest.raises(InputError, match="nodes: is a int; allowed: a polars or pandas frame"):
        from_tables(3, EDGES, **RANGE)
    with pytest.raises(DataError, match="edges: no file"):
        from_tables(NODES, tmp_path / "edges.csv", **RANGE)
    with pytest.raises(DataError, match="column 'age' holds List"):
        from_tables(polars.DataFrame(with_nodes(age=[[1], [2], [3]])), EDGES, **RANGE)


def test_whole_numbers_are_ids_too():
    nodes, edges = with_nodes(id=[10, 700, 3]), {"source": [10, 700], "target": [700.0, 3.0]}
    graph = from_tables(nodes, edges, **RANGE)
    assert list(graph.ids) == ["10", "700", "3"]
    assert torch.equal(graph.edge_index, from_pyg(data(), **RANGE).edge_index)


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


def test_sparse_entries_are_a_table_too():
    nodes = {key: NODES[key] for key in ("id", "label")}
    entries = {"id": ["a", "c"], "feature": [3, 39], "value": [2, 5]}
    graph = from_tables(nodes, EDGES, entries, dimension=40, **RANGE)
    assert graph.x.is_sparse_csr
    assert graph.x.to_dense()[2, 39] == 5
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


def test_a_list_of_numbers_is_a_row_of_features():
    graph = networkx.relabel_nodes(club(), {"a": 1, "b": 2, "c": 3})
    for node in graph:
        graph.nodes[node]["x"] = [graph.nodes[node]["age"], graph.nodes[node]["height"]]
    made = from_networkx(graph, **RANGE)
    same(made, from_tables(NODES, EDGES, **RANGE))
    assert list(made.ids) == ["1", "2", "3"]
    graph.nodes[2]["x"] = [1]
    with pytest.raises(DataError, match="node '2': x is not such a list; allowed: a list of numbers, equally long"):
        from_networkx(graph, **RANGE)


def test_direction_is_that_of_the_graph():
    assert from_networkx(_with_direction(True), features=["age"], **RANGE).schema.directed
    undirected = from_networkx(_with_direction(True), features=["age"], directed=False, **RANGE)
    assert undirected.edge_index.shape[1] == 4
    with pytest.raises(InputError, match="directed=True, but the edges of the graph have no direction"):
        from_networkx(club(), features=["age"], directed=True, **RANGE)


def test_parallel_edges_and_loops_are_merged():
    graph = networkx.MultiGraph(club())
    graph.add_edges_from([("a", "b"), ("c", "c")])
    made = from_networkx(graph, features=["age"], **RANGE)
    assert made.edge_index.shape[1] == 4
    assert "removed 1 self-loops" in made.schema.notes


def test_splits_and_known_edges_are_attributes():
    graph = club()
    networkx.set_node_attributes(graph, {"a": "train", "b": "val", "c": "test"}, "part")
    networkx.set_node_attributes(graph, {"a": True, "b": True, "c": False}, "member")
    networkx.set_edge_attributes(graph, {("a", "b"): True, ("b", "c"): False}, "open")
    named = {"split": "part", "public_edges": "open", "private_nodes": "member"}
    made = validate(from_networkx(graph, features=["age"], **named, **RANGE))
    assert made.val_mask.tolist() == [False, True, False]
    assert made.public_edges.tolist() == [True, True, False, False]
    assert made.private_nodes.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda graph: graph.nodes["b"].pop("age"), "nodes, node 'b': age is missing"),
        (lambda graph: graph.nodes["b"].update(age="old"), "nodes, node 'b': age is 'old', not a number"),
        (lambda graph: graph.nodes["b"].update(label="bird"), "nodes, node 'b': label is 'bird', not a declared class"),
        (lambda graph: graph.add_node((1, 2), age=1), "is a tuple; allowed: texts and whole numbers"),
        (lambda graph: graph.clear(), "nodes: has no rows"),
    ],
)
def test_a_networkx_graph_is_refused_by_the_name_of_the_node(change, message):
    graph = club()
    change(graph)
    with pytest.raises(DataError, match=message):
        from_networkx(graph, features=["age"], **RANGE)


def test_an_attribute_that_no_node_has_is_refused():
    with pytest.raises(DataError, match="nodes: has no column 'team'"):
        from_networkx(club(), features=["age"], label="team", **RANGE)
    with pytest.raises(DataError, match=r"node 'a': x is not such a list.*name them: features="):
        from_networkx(club(), **RANGE)


# ---- one door ----


def test_as_graph_takes_what_users_have(tmp_path: Path):
    graph = from_pyg(data(), **RANGE)
    assert as_graph(graph) is graph
    same(as_graph(data(), graph.schema), graph)
    same(as_graph(load_parts(folder(tmp_path / "own"))), graph)
    same(as_graph(str(tmp_path / "own")), graph)
    other = GraphSchema("other", 2, 0.0, 20.0, ("cat", "dog"))
    assert as_graph(graph, other).schema.high == 20
    friends = club()
    for node in friends:
        friends.nodes[node]["x"] = [friends.nodes[node]["age"], friends.nodes[node]["height"]]
    same(as_graph(friends, graph.schema), graph)


def test_as_graph_refuses_what_declares_nothing_and_what_is_no_graph():
    with pytest.raises(InputError, match=r"range and classes are not declared; write from_pyg\(data, range="):
        as_graph(data())
    with pytest.raises(InputError, match=r"a dict is not a graph.*from_tables\(nodes, edges"):
        as_graph(NODES)


def test_load_graph_takes_objects_too():
    graph = graphveil.load_graph(data(), schema=from_pyg(data(), **RANGE).schema)
    same(graph, from_pyg(data(), **RANGE))


def test_a_graph_goes_to_pyg_and_back():
    graph = load_graph("social-100")
    copied = to_pyg(graph)
    assert copied.x.layout == torch.strided
    assert torch.equal(copied.x, graph.x.to_dense())
    back = from_pyg(copied)
    assert torch.equal(back.x.to_dense(), copied.x)
    assert back.x.is_sparse_csr
    assert torch.equal(back.edge_index, graph.edge_index)
    assert graph.x.is_sparse_csr


def test_the_names_stand_in_the_package():
    for name in ("as_graph", "from_adjacency", "from_networkx", "from_pyg", "from_tables", "to_pyg"):
        assert getattr(graphveil, name) is getattr(graphveil.graphs, name)
        assert name in graphveil.__all__
