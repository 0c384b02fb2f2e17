"""Own files: what is read, what is normalised and reported, and every refusal with file and line."""

from __future__ import annotations

import polars
import pytest
import torch

from graphveil.errors import DataError
from graphveil.graphs import load_graph, validate
from tests.graphs.made import EDGES, NODES, TOML, folder

SPARSE = TOML + "dimension = 50\n"
PLAIN = "id,label\na,cat\nb,dog\nc,\n"


def test_the_small_folder_is_read(tmp_path):
    graph = validate(load_graph(folder(tmp_path / "mine")))
    assert graph.schema.name == "mine"
    # Names in a path are not patterns: `[ab]` would be another folder's files.
    folder(tmp_path / "a", nodes__csv=NODES.replace("a,1,2", "a,9,9"))
    assert load_graph(folder(tmp_path / "[ab]")).x[0].tolist() == [1.0, 2.0]
    assert graph.x.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert graph.y.tolist() == [0, 1, -1]
    assert list(graph.ids) == ["a", "b", "c"]
    assert graph.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert (graph.schema.low, graph.schema.high, graph.schema.classes) == (0.0, 10.0, ("cat", "dog"))
    assert graph.schema.private == ("features", "labels")
    assert "graph.toml" in graph.schema.source
    assert graph.schema.notes == ("1 label unknown", "made undirected: 2 edges, each stored in both directions")


def test_sparse_features_stay_sparse_count_as_one_without_a_value_and_are_clipped_on_request(tmp_path):
    features = "id,feature,value\nc,49,2.5\na,0,1\n"
    files = {"graph__toml": SPARSE, "nodes__csv": PLAIN}
    graph = validate(load_graph(folder(tmp_path / "a", **files, features__csv=features)))
    assert graph.x.layout == torch.sparse_csr and graph.x.shape == (3, 50)
    assert graph.x.to_dense()[2, 49] == 2.5 and graph.x.values().tolist() == [1.0, 2.5]
    graph = load_graph(folder(tmp_path / "b", **files, features__csv="id,feature\nb,7\n"))
    assert graph.x.to_dense()[1, 7] == 1
    files["graph__toml"] += 'out_of_range = "clip"\n'
    clipped = load_graph(folder(tmp_path / "c", **files, features__csv="id,feature,value\nb,7,99\n"))
    assert clipped.x.values().tolist() == [10.0]
    assert "clipped 1 feature value to the declared range" in clipped.schema.notes


def test_numbers_as_ids_and_labels_are_known_by_their_whole_numbers(tmp_path):
    path = folder(tmp_path, graph__toml=TOML.replace('["cat", "dog"]', "[3, 4]"), nodes__csv=None, edges__csv=None)
    nodes = polars.DataFrame({"id": [10, 20, 30], "age": [1, 2, 3], "label": [3.0, None, 4.0]})
    nodes.write_parquet(path / "nodes.parquet")
    polars.DataFrame({"source": [10, 20], "target": [20, 30]}).write_parquet(path / "edges.parquet")
    graph = validate(load_graph(path))
    assert (graph.y.tolist(), list(graph.ids)) == ([0, -1, 1], ["10", "20", "30"])


def test_blank_lines_at_the_end_byte_order_mark_windows_lines_and_no_labels_are_fine(tmp_path):
    nodes = b"\xef\xbb\xbf" + NODES.replace("\n", "\r\n").encode() + b"\r\n\r\n"
    assert load_graph(folder(tmp_path / "a", nodes__csv=nodes)).num_nodes == 3
    unlabelled = load_graph(folder(tmp_path / "b", nodes__csv="id,age\na,1\nb,2\nc,3\n"))
    assert unlabelled.y.tolist() == [-1, -1, -1]
    assert "no label column: every label unknown" in unlabelled.schema.notes


def toml(old: str, new: str) -> dict[str, str]:
    return {"graph__toml": TOML.replace(old, new)}


def nodes(text: str) -> dict[str, str]:
    return {"nodes__csv": text}


def sparse(features: str, toml: str = SPARSE) -> dict[str, str]:
    return {"graph__toml": toml, "nodes__csv": PLAIN, "features__csv": features}


REFUSALS = {
    # graph.toml
    "range too large": (toml("[0, 10]", "[0, 1e39]"), "range is [0, 1e+39]; allowed: two finite numbers from -1e+15"),
    "huge dimension": ({"graph__toml": TOML + "dimension = 1000000000000"}, "allowed: a whole number from 1 to"),
    "one end twice": (
        {"graph__toml": TOML + 'source = "target"'},
        "source and target are both the column 'target'; name two different columns",
    ),
    "feature without name": (
        {"graph__toml": TOML + 'features = ["age", ""]'},
        "features names a column without a name",
    ),
    "feature twice": ({"graph__toml": TOML + 'features = ["age", "age"]'}, "features names a column twice"),
    "feature is label": (
        {"graph__toml": TOML + 'label = "label"\nfeatures = ["age", "label"]'},
        "features names 'label', which is the column of label",
    ),
    # what a file holds
    "unnamed column": (
        nodes("id,,label\na,1,cat\nb,2,dog\nc,3,\n"),
        "nodes.csv, line 1: column 2 has no name; name it or leave it out; pandas writes",
    ),
    "nul": (nodes(NODES.replace("a,1", "a\0,1")), r"nodes.csv, line 2: id is 'a\x00'; allowed: no NUL"),
    "cut off": (nodes(NODES[:-1].replace("5,6,", "5,6")), "nodes.csv, line 4: has 3 fields; allowed: 4, as in"),
    "no toml": ({"graph__toml": None}, "graph.toml: no graph.toml found; graphveil data init"),
    "unknown key": (toml("directed", "directd"), "graph.toml: unknown key 'directd'; allowed: private"),
    "words alone": (
        nodes("id,age,label\na,old,cat\nb,,dog\nc,young,\n"),
        r"nodes.csv, line 2: age is 'old', not a number; declare by columns what it may hold, name it as label",
    ),
    "a word": (
        nodes("id,age,label\na,1,cat\nb,old,dog\nc,3,\n"),
        "nodes.csv, line 3: age is 'old', not a number; leave the cell empty where a value is missing",
    ),
    "no range": (toml("range = [0, 10]", ""), "graph.toml: range is not declared; write"),
    "range order": (toml("[0, 10]", "[10, 0]"), "range is [10, 0]; allowed: two finite numbers from -1e+15"),
    "directed kind": (toml("false", '"no"'), "directed is 'no'; allowed: true or false"),
    "no group": (toml("[0, 10]", "{ age = [0, 10] }"), "range has no entry for the feature column 'height'"),
    # nodes
    "no nodes": (nodes(None), "found neither nodes.csv nor nodes.parquet"),
    "empty table": (nodes("id,age\n"), "nodes.csv: has no rows; allowed: one row for each node"),
    "ids alone": (nodes("id,label\na,cat\nb,dog\nc,\n"), "nodes.csv: has no feature columns"),
    "both nodes": ({"nodes__parquet": "x"}, "found both nodes.csv and nodes.parquet; remove one"),
    "no id column": (nodes("name,age\na,1\n"), "nodes.csv: has no column 'id'; allowed: its columns are name, age"),
    "id missing": (nodes(NODES.replace("b,3", ",3")), "nodes.csv, line 3: id is missing"),
    "id twice": (nodes(NODES.replace("c,5", "a,5")), "nodes.csv, line 4: id 'a' appears twice"),
    # One person to everybody but a program: asked and charged as two.
    "id in two spellings": (
        nodes(NODES.replace("c,5", "A\u00a0,5")),
        r"nodes.csv, line 4: id 'a' and 'A\xa0' are one id to people",
    ),
    "column twice": (nodes("id,age,age\na,1,2\n"), "nodes.csv, line 1: has two columns 'age'"),
    "value missing": (nodes(NODES.replace("3,4", ",4")), "nodes.csv, line 3: age is missing; allowed: a number"),
    "nan": (nodes(NODES.replace("3,4", "3,NaN")), "line 3: height is 'NaN'; allowed: finite numbers, no NaN"),
    "inf": (nodes(NODES.replace("3,4", "3,-inf")), "line 3: height is '-inf'; allowed: finite"),
    "out of range": (
        nodes(NODES.replace("3,4", "3,10.5")),
        "nodes.csv, line 3: height is '10.5'; allowed: the declared range 0 to 10",
    ),
    "unlisted class": (
        nodes(NODES.replace("dog", "cow")),
        "nodes.csv, line 3: label is 'cow', not a declared class; allowed: cat, dog",
    ),
    "line after a field with line breaks": (
        nodes('id,age,height,label\n"a\n1",1,2,cat\nb,3,4,cow\n'),
        "nodes.csv, line 4: label is 'cow'",
    ),
    "line after blank lines on top": (nodes("\n\n" + NODES.replace("dog", "cow")), "nodes.csv, line 5: label"),
    "feature column": ({"graph__toml": TOML + 'features = ["town"]'}, "nodes.csv: has no column 'town'"),
    "split": (
        {"graph__toml": TOML + 'split = "height"'},
        "nodes.csv, line 2: height is '2'; allowed: train, val, test or empty",
    ),
    "wide letters": (nodes(NODES.encode("utf-16")), "save the file as UTF-8, not UTF-16"),
    "old Mac": (nodes(NODES.replace("\n", "\r")), "nodes.csv: its lines end in carriage returns alone, as on old Macs"),
    "semicolons": (nodes(NODES.replace(",", ";")), "separate fields by commas, not semicolons"),
    "decimal commas": (nodes("id;x;label\na;0,5;cat\n"), "has 2 fields; allowed: 1, as in the header; separate"),
    "space in a heading": (
        nodes(NODES.replace(",", ", ")),
        "nodes.csv, line 1: column 2 is ' age'; allowed: names without spaces around; separate fields by commas",
    ),
    "open quote": (nodes('id,age,label\n"a,1,cat\n'), "nodes.csv: cannot be read ("),
    "parquet": ({"nodes__csv": None, "nodes__parquet": "no"}, "nodes.parquet: cannot be read ("),
    # edges
    "no edges": ({"edges__csv": None}, "found neither edges.csv nor edges.parquet"),
    "unknown source": (
        {"edges__csv": EDGES + "z,a\n"},
        "edges.csv, line 4: source 'z' is not an id in the nodes file; allowed: ids written as they are there",
    ),
    # features
    "no dimension": (sparse("id,feature\na,1\n", TOML), "dimension is not declared, but features.csv exists"),
    "range without 0": (
        sparse("id,feature\na,1\n", SPARSE.replace("[0, 10]", "[1, 10]")),
        "what is not listed counts as 0; allowed: range = [low, high] with low <= 0 <= high",
    ),
    "feature too high": (
        sparse("id,feature\na,1\na,50\n"),
        "features.csv, line 3: feature is '50'; allowed: whole numbers 0 to 49",
    ),
    "entry twice": (
        sparse("id,feature,value\na,1,1\nb,1,1\na,1,2\n"),
        "features.csv, line 4: feature '1' of this id appears twice",
    ),
    "sparse value": (sparse("id,feature,value\na,1,11\n"), "features.csv, line 2: value is '11'; allowed: the"),
}


@pytest.mark.parametrize("files, message", REFUSALS.values(), ids=REFUSALS.keys())
def test_refusals_name_file_and_line(tmp_path, files, message):
    with pytest.raises(DataError) as caught:
        load_graph(folder(tmp_path / "mine", **files))
    assert message in str(caught.value)
    assert str(tmp_path / "mine") in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("age", "message"),
    [
        ([[1], [2], [3]], r"nodes.parquet: column 'age' holds List\(Int64\); allowed: text, numbers"),
        ([1, 2, 11], r"nodes.parquet, row 3: age is 11; allowed: the declared range 0 to 10"),
        ([1] * 1000, r"nodes.parquet: holds 1,000 rows of 2 columns; allowed: at most"),
    ],
    ids=["nested", "out of range", "more than any memory"],
)
def test_a_parquet_file_is_refused_by_column_row_or_size(tmp_path, monkeypatch, age, message):
    monkeypatch.setattr("graphveil.graphs.tables.tables.LARGEST_TABLE", 999)
    path = folder(tmp_path, nodes__csv=None)
    polars.DataFrame({"id": list(map(str, range(len(age)))), "age": age}).write_parquet(path / "nodes.parquet")
    with pytest.raises(DataError, match=message):
        load_graph(path)


# Checklist items 5, 6 and 7: what mechanisms are built from does not move when private data do.


def declared(graph) -> tuple:
    schema = graph.schema
    return schema.dimension, schema.low, schema.high, schema.classes, schema.private, schema.directed


def test_declared_facts_do_not_depend_on_what_people_are(tmp_path):
    before = declared(load_graph(folder(tmp_path / "a")))
    toml = TOML + 'out_of_range = "clip"\n'
    extreme = load_graph(folder(tmp_path / "b", graph__toml=toml, nodes__csv=NODES.replace("3,4", "1e308,-1e308")))
    assert (float(extreme.x.min()), float(extreme.x.max())) == (0.0, 10.0)
    cats = load_graph(folder(tmp_path / "c", nodes__csv=NODES.replace("dog", "cat")))
    assert cats.y.tolist() == [0, 0, -1]
    more = "".join(f"n{i},1,1,cat\n" for i in range(30))
    ties = "".join(f"n{i},a\n" for i in range(30))
    larger = load_graph(folder(tmp_path / "d", nodes__csv=NODES + more, edges__csv=EDGES + ties))
    assert declared(extreme) == declared(cats) == declared(larger) == before


POINTS = 'private = []\nrange = [0, 10]\nclasses = ["1", "2"]\ndirected = false\n'


@pytest.mark.parametrize("ids", [("1.0", "2.0", "3.0"), ("1", "2", "3")])
@pytest.mark.parametrize("ends", ["1.0,2.0\n2.0,3.0\n", "1,2\n2,3\n"])
def test_whole_numbers_as_pandas_writes_them_beside_missing_ones_are_whole(tmp_path, ids, ends):
    nodes = "id,age,label\n" + "".join(
        f"{name},1,{label}\n" for name, label in zip(ids, ("1.0", "2.0", ""), strict=True)
    )
    graph = load_graph(folder(tmp_path, graph__toml=POINTS, nodes__csv=nodes, edges__csv="source,target\n" + ends))
    assert (list(graph.ids), graph.y.tolist()) == (["1", "2", "3"], [0, 1, -1])
    assert graph.edge_index.shape[1] == 4


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (
            ("1.0", "9.0", ""),
            "label is '9.0', not a declared class; allowed: 1, 2; neither 9.0 nor 9 is declared; pandas",
        ),
        (("1.0", "two", ""), "label is '1.0', not a declared class; allowed: 1, 2; write 1: with a point it is taken"),
        (("1", " 2", ""), "label is ' 2', not a declared class; allowed: 1, 2; remove the spaces around it"),
    ],
)
def test_labels_that_are_written_otherwise_than_declared_are_refused_with_how(tmp_path, labels, message):
    nodes = "id,age,label\n" + "".join(f"{name},1,{label}\n" for name, label in zip("abc", labels, strict=True))
    with pytest.raises(DataError) as refused:
        load_graph(folder(tmp_path, graph__toml=POINTS, nodes__csv=nodes))
    assert message in str(refused.value)


def test_classes_that_are_declared_with_a_point_are_taken_as_they_are(tmp_path):
    nodes = "id,age,label\na,1,1.0\nb,1,2.0\nc,1,\n"
    toml = POINTS.replace('"1", "2"', '"1.0", "2.0"')
    assert load_graph(folder(tmp_path, graph__toml=toml, nodes__csv=nodes)).y.tolist() == [0, 1, -1]
