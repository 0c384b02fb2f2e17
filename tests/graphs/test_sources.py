"""Graphs of other programs copied into tables: each source as its program writes it, and as nobody should."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import polars
import pytest
import torch
from safetensors.torch import save_file

from graphveil.errors import GraphveilError, MissingExtraError
from graphveil.graphs.sources.importing import import_source
from graphveil.runtime.late import quiet
from tests.collection.postgresql import postgresql

with quiet():
    from torch_geometric.data import Data

QUERIES = ("SELECT id, age, name AS nick FROM people ORDER BY id", "SELECT a, b, 7 FROM calls WHERE '%s' = '%s'")
GRAPHML = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">{}</graphml>'


def club(*, directed: bool = False) -> Any:
    graph: Any = (networkx.DiGraph if directed else networkx.Graph)()
    graph.add_node("ann", age=30, vip=True, hobbies="chess; go")
    graph.add_node("bob", age=41.5)  # NetworkX writes a second key of this name, for the other type
    graph.add_edge("ann", "bob", weight=1.5)
    return graph


def imported(source: str | Path, folder: Path, *queries: str) -> tuple[dict[str, list[tuple[Any, ...]]], Any]:
    """The rows of the tables, headers first, and what the source says of itself."""
    folder.mkdir()
    facts = import_source(str(source), folder, queries or (None, None))  # type: ignore[arg-type]
    tables = {}
    for path in sorted(folder.iterdir()):
        assert path.stat().st_mode & 0o777 == 0o600
        frame = polars.read_csv(path, infer_schema=False) if path.suffix == ".csv" else polars.read_parquet(path)
        tables[path.stem] = [tuple(frame.columns), *frame.rows()]
    return tables, facts


@pytest.mark.parametrize("directed", [False, True])
def test_graphml_of_networkx(tmp_path: Path, directed: bool) -> None:
    networkx.write_graphml(club(directed=directed), tmp_path / "club.graphml")
    tables, facts = imported(tmp_path / "club.graphml", tmp_path / "out")
    rows = [dict(zip(tables["nodes"][0], row, strict=True)) for row in tables["nodes"][1:]]
    assert rows[0] == {"id": "ann", "age": "30", "vip": "True", "hobbies": "chess; go"}
    assert rows[1] == {"id": "bob", "age": "41.5", "vip": None, "hobbies": None}
    assert tables["edges"] == [("source", "target"), ("ann", "bob")]
    assert (facts.directed, facts.notes) == (directed, ("left out of the edges: weight",))


def test_defaults_and_awkward_names_of_graphml_are_copied(tmp_path: Path) -> None:
    keys = '<key id="k" for="node" attr.name="id"><default>7 &amp; "8"</default></key>'
    nodes = '<node id="a"/><node id="b"><data key="k">x,\ny</data></node><edge source="a" target="b"/>'
    (tmp_path / "g.graphml").write_text(GRAPHML.format(f"{keys}<graph>{nodes}</graph>"))
    tables, facts = imported(tmp_path / "g.graphml", tmp_path / "out")
    assert tables["nodes"] == [("id", "id_attribute"), ("a", '7 & "8"'), ("b", "x,\ny")]
    assert facts.directed is False


def test_graphml_of_neo4j_says_what_no_key_declares(tmp_path: Path) -> None:
    keys = '<key id="hours" for="node" attr.name="hours"/><key id="since" for="edge" attr.name="since"/>'
    nodes = '<node id="n1" labels=":Person"><data key="labels">:Person</data><data key="hours">3</data></node>'
    edge = '<edge id="e0" source="n1" target="n1" label="CALLED"><data key="label">CALLED</data></edge>'
    graph = f'<graph id="G" edgedefault="directed">{nodes}{edge}</graph>'
    (tmp_path / "g.graphml").write_text(GRAPHML.format(keys + graph))
    tables, facts = imported(tmp_path / "g.graphml", tmp_path / "out")
    assert tables["nodes"] == [("id", "hours"), ("n1", "3")]
    assert facts.notes == ("left out of the edges: since", "left out of the nodes, since no key declares it: labels")


def test_the_one_table_of_neo4j(tmp_path: Path) -> None:
    head = '"_id","_labels","hours","id","_start","_end","_type","since"\n'
    nodes = '"7",":Person","3","a ""b"",\nc","","","",""\n"8",":Person:Boss","","","","","",""\n'
    (tmp_path / "all.csv").write_text(f'{head}{nodes}"","","","","7","8","CALLED","2020"\n')
    tables, facts = imported(tmp_path / "all.csv", tmp_path / "out")
    people = [("7", ":Person", "3", 'a "b",\nc'), ("8", ":Person:Boss", None, None)]
    assert tables["nodes"] == [("id", "labels", "hours", "id_attribute"), *people]
    assert tables["edges"] == [("source", "target"), ("7", "8")]
    assert (facts.directed, facts.notes) == (True, ("left out of the edges: _type, since",))
    for row in ('"","","","","7","","CALLED",""', '"9",":A","","","7","8","CALLED",""', '"9",":A"', '"9'):
        (tmp_path / "all.csv").write_text(f"{head}{nodes}{row}\n")
        with pytest.raises(GraphveilError, match=r"all\.csv, line 5"):
            import_source(str(tmp_path / "all.csv"), tmp_path / "out")


@pytest.mark.parametrize("key", ["edges", "links"])
def test_node_link_json_of_networkx(tmp_path: Path, key: str) -> None:
    graph = club(directed=key == "links")
    graph.nodes["ann"].update(x=[0.5, 1], tags=["a", "b"])
    content = networkx.node_link_data(graph, edges=key)
    (tmp_path / "club.json").write_text(json.dumps(content))
    tables, facts = imported(tmp_path / "club.json", tmp_path / "out")
    assert tables["nodes"] == [
        ("id", "age", "vip", "hobbies", "x0", "x1", "tags"),
        ("ann", "30", "true", "chess; go", "0.5", "1", "a;b"),
        ("bob", "41.5", None, None, None, None, None),
    ]
    assert tables["edges"] == [("source", "target"), ("ann", "bob")]
    assert facts.directed == (key == "links")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("e.txt", "# from to\n10 9\n9 ann 3.5\n\n10 ann\n"),
        ("e.csv", 'source,target,weight\n10,9,1\n9,"ann",1\n10,ann,1\n'),
        ("e.tsv", "\ufeffFromNodeId\tToNodeId\n10\t9\n9\tann\n10\tann\n"),
        ("e.edgelist", "10 9 {'weight': 1}\n9 ann {}\n10 ann {}\n"),
    ],
)
def test_a_list_of_edges(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    tables, facts = imported(tmp_path / name, tmp_path / "out")
    assert tables["edges"] == [("source", "target"), ("10", "9"), ("9", "ann"), ("10", "ann")]
    # In an order of their own: that of the edges would tell who has the first.
    assert tables["nodes"] == [("id",), ("9",), ("10",), ("ann",)]
    assert facts.directed is None and "ids alone" in facts.notes[-1]


def saved(path: Path) -> Path:
    x = torch.tensor([[0.25, 1.0], [0.5, 0.0], [1.0, 0.0]])
    data = Data(x=x, edge_index=torch.tensor([[0, 1], [1, 2]]), y=torch.tensor([1, 0, -1]))
    data.update({"train_mask": torch.tensor([True, False, False]), "test_mask": torch.tensor([False, True, False])})
    data.pos = torch.ones(3, 2)
    parts = {name: part.contiguous() for name, part in data.to_dict().items() if hasattr(part, "contiguous")}
    if path.suffix == ".npz":
        np.savez(path, **{name: part.numpy() for name, part in parts.items()})
    else:
        save_file(parts, path)
    return path


@pytest.mark.parametrize("ending", ["npz", "safetensors"])
def test_a_pyg_data_without_pickle(tmp_path: Path, ending: str) -> None:
    tables, facts = imported(saved(tmp_path / f"data.{ending}"), tmp_path / "out")
    assert tables["nodes"] == [
        ("id", "x0", "x1", "label", "split"),
        ("0", 0.25, 1.0, "1", "train"),
        ("1", 0.5, 0.0, "0", "test"),
        ("2", 1.0, 0.0, None, ""),
    ]
    assert tables["edges"] == [("source", "target"), ("0", "1"), ("1", "2")]
    assert facts.notes == ("left out: pos",)


def people(connect: Callable[[str], object]) -> None:
    connect("CREATE TABLE people (id integer, age integer, name text)")
    connect("INSERT INTO people VALUES (1, 30, 'a''n;n'), (2, NULL, '')")
    connect("CREATE TABLE calls (a integer, b integer)")
    connect("INSERT INTO calls VALUES (1, 2)")


TABLES = {
    "nodes": [("id", "age", "nick"), ("1", "30", "a'n;n"), ("2", None, None)],
    "edges": [("source", "target"), ("1", "2")],
}


@pytest.mark.parametrize("address", ["{}", "sqlite:///{}"])
def test_queries_of_sqlite(tmp_path: Path, address: str) -> None:
    path = tmp_path / "people of the town.db"
    with sqlite3.connect(path) as connection:
        people(connection.execute)
    connection.close()
    before = path.read_bytes()
    assert imported(address.format(path), tmp_path / "out", *QUERIES)[0] == TABLES
    for query, message in (
        ("DELETE FROM people", "not authorized"),
        ("SELECT nobody", "no such column"),
        (f"ATTACH '{tmp_path}/new.db' AS new", "not authorized"),
        (f"VACUUM INTO '{tmp_path}/copy.db'", "authorization denied"),
        ("PRAGMA user_version = 3", "not authorized"),
    ):
        with pytest.raises(GraphveilError, match=message):
            import_source(address.format(path), tmp_path / "out", (query, query))
    assert path.read_bytes() == before and {file.name for file in tmp_path.iterdir()} == {path.name, "out"}


@pytest.mark.slow  # a server starts
def test_queries_of_postgresql_change_nothing(tmp_path: Path) -> None:
    import psycopg

    with postgresql() as server:
        url = server.url("town").replace("postgresql+psycopg", "postgresql")
        with psycopg.connect(url, autocommit=True) as connection:
            people(connection.execute)  # type: ignore[arg-type]
            connection.execute("CREATE SEQUENCE tickets")
        assert imported(url, tmp_path / "out", *QUERIES)[0] == TABLES
        with pytest.raises(GraphveilError, match="read-only transaction"):
            import_source(url, tmp_path / "out", ("SELECT nextval('tickets') AS id", QUERIES[1]))
        program = f"COPY (SELECT 1) TO PROGRAM 'touch {tmp_path}/written'"
        for query in (program, "SELECT 1 AS id; COMMIT; DROP TABLE people", "COMMIT"):
            with pytest.raises(GraphveilError, match="the database refuses"):
                import_source(url, tmp_path / "out", (query, QUERIES[1]))
        assert imported(url, tmp_path / "again", *QUERIES)[0] == TABLES and not (tmp_path / "written").exists()
    with pytest.raises(GraphveilError, match="the database refuses") as refused:
        import_source(url.replace("@", ":secret@"), tmp_path / "out", QUERIES)
    assert "secret" not in str(refused.value)


BOMB = '<!DOCTYPE g [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;"><!ENTITY x SYSTEM "/etc/passwd">]>' + GRAPHML.format(
    "&b;&x;"
)
EMPTY = '{"nodes": [{"id": 1%s}], "edges": [%s]}'
BAD = {
    "bomb.graphml": (BOMB, "declares a document type"),
    "cut.graphml": ("<graphml><graph>", "cannot be read as XML"),
    "code.graphml": ('<?xml version="1.0" encoding="utf-x"?><graphml/>', "cannot be read as XML .*utf-x"),
    "none.graphml": (GRAPHML.format(""), "holds no graph"),
    "two.graphml": (GRAPHML.format("<graph/><graph/>"), "holds a second graph"),
    "hyper.graphml": (GRAPHML.format("<graph><hyperedge/></graph>"), "all directed, or none"),
    "mixed.graphml": (GRAPHML.format('<graph><edge source="a" target="b" directed="true"/></graph>'), "all directed"),
    "ends.graphml": (GRAPHML.format('<graph><edge source="a"/></graph>'), "an edge without two ends"),
    "list.json": ("[]", "is no node-link JSON; allowed: "),
    "names.json": ('{"nodes": [1], "links": []}', "is no node-link JSON"),
    "id.json": (EMPTY % ("", '{"source": 1, "target": [1]}'), r"edge 1: id, source or target is \[1\]"),
    "deep.json": (EMPTY % (', "a": {"b": 1}', ""), "node 1: holds a dict"),
    "wide.json": (
        '{"nodes": [{"id": 1, "x": [1, 2]}, {"id": 2, "x": [1]}], "edges": []}',
        "node 2: x is not a list of 2",
    ),
    "one.txt": ("a b\nc\n", r"one\.txt, line 2: holds no two ids"),
    "header.csv": ("von;an\n1;2\n", r"header\.csv, line 1: an and von stand above ids that are numbers; if they name"),
    "none.txt": ("# nothing\n\n", r"none\.txt: holds no edges"),
    "mixed.csv": ("a,b\nc d\n", r"mixed\.csv, line 2: holds no two ids"),
    "latin.txt": (b"a \xff\n", r"latin\.txt, line 1: is not UTF-8"),
    "bad.npz": ("PK", "cannot be read as arrays"),
    "bad.safetensors": ("no tensors", "cannot be read as arrays"),
    "data.pt": ("", r"nothing is unpickled; .* save_file\(parts"),
    "g.gml": ("", r"no source ends in '\.gml'; allowed: \.graphml"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_such_graph_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    content, message = BAD[name]
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (tmp_path / "out").mkdir()
    with pytest.raises(GraphveilError, match=message) as refused:
        import_source(str(tmp_path / name), tmp_path / "out")
    assert "\n" not in str(refused.value)
    assert list((tmp_path / "out").glob(".*")) == []


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"x": None}, "holds no x"),
        ({"x": np.ones(3)}, r"x has shape \(3,\)"),
        ({"y": np.ones((3, 2))}, r"y has shape \(3, 2\).*from_pyg"),
        ({"edge_index": np.ones((2, 2))}, r"edge_index: has shape"),
        ({"train_mask": np.ones((3, 10), bool)}, "train_mask holds 10 splits"),
    ],
)
def test_arrays_of_another_shape_are_refused(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    arrays = {**np.load(saved(tmp_path / "a.npz")), **changed}
    np.savez(tmp_path / "b.npz", **{name: array for name, array in arrays.items() if array is not None})
    with pytest.raises(GraphveilError, match=message):
        import_source(str(tmp_path / "b.npz"), tmp_path)


@pytest.mark.parametrize(
    ("source", "queries", "message"),
    [
        ("no.graphml", (None, None), "no such file; allowed: "),
        ("no.db", QUERIES, "no such file"),
        ("a.db", (None, "SELECT 1"), "a database needs both"),
        ("a.json", QUERIES, "only a database is queried"),
        ("mysql://a/b", QUERIES, "a database of the kind 'mysql'; allowed: sqlite:///FILE, postgresql"),
        ("://", QUERIES, "is no address of a database"),
    ],
)
def test_a_source_that_is_not_there_or_needs_more_is_refused(
    tmp_path: Path, source: str, queries: tuple[str, str], message: str
) -> None:
    with pytest.raises(GraphveilError, match=message):
        import_source(source, tmp_path, queries)


def test_a_query_gives_two_ends_and_rows(tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "a.db").close()
    (tmp_path / "a.db").write_bytes(b"")
    for queries, message in (
        (("SELECT 1 AS id", "SELECT 1"), "gives 1 column"),
        (("SELECT 1, 2", "SELECT 1, 2"), "--nodes-query: holds only numbers"),
        (("SELECT 1 AS id, 2 AS id", "SELECT 1, 2"), "has two columns 'id'"),
    ):
        with pytest.raises(GraphveilError, match=message):
            import_source(str(tmp_path / "a.db"), tmp_path, queries)


def test_without_sqlalchemy_a_database_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphveil.runtime.extras.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'graphveil\[collect\]'"):
        import_source("sqlite:///a.db", tmp_path, QUERIES)
