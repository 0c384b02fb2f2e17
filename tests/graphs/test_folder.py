"""Own files: what is read, what is normalised and reported, and every refusal with file and line."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import zlib

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
    assert graph.x.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert graph.y.tolist() == [0, 1, -1]
    assert list(graph.ids) == ["a", "b", "c"]
    assert graph.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert (graph.schema.low, graph.schema.high, graph.schema.classes) == (0.0, 10.0, ("cat", "dog"))
    assert graph.schema.private == ("features", "labels")
    assert "graph.toml" in graph.schema.source
    assert graph.schema.notes == (
        "1 labels unknown",
        "made undirected: 2 edges, each stored in both directions",
    )


def test_edges_are_normalised_and_reported(tmp_path):
    graph = load_graph(folder(tmp_path, edges__csv="source,target\na,b\na,b\nb,a\nc,c\nb,c\n"))
    assert graph.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert graph.schema.notes[1:] == (
        "removed 1 self-loops",
        "merged 1 duplicate edges",
        "merged 1 edges that were listed in both directions",
        "made undirected: 2 edges, each stored in both directions",
    )


def test_directed_edges_keep_their_direction(tmp_path):
    toml = TOML.replace("false", "true")
    graph = validate(load_graph(folder(tmp_path, graph__toml=toml, edges__csv="source,target\nb,a\nb,c\n")))
    assert graph.schema.directed
    assert graph.edge_index.tolist() == [[1, 1], [0, 2]]


def test_columns_can_have_other_names(tmp_path):
    toml = TOML + 'id = "who"\nlabel = "pet"\nsplit = "part"\nfeatures = ["h"]\nsource = "from"\ntarget = "to"\n'
    nodes = "who,h,pet,part,town\n1,1,cat,train,x\n2,2,dog,val,y\n3,3,dog,test,z\n4,4,,,z\n"
    graph = validate(load_graph(folder(tmp_path, graph__toml=toml, nodes__csv=nodes, edges__csv="from,to\n1,2\n")))
    assert graph.x.tolist() == [[1], [2], [3], [4]]
    assert graph.train_mask.tolist() == [True, False, False, False]
    assert graph.val_mask.tolist() == [False, True, False, False]
    assert graph.test_mask.tolist() == [False, False, True, False]


def test_clipping_is_asked_for_and_reported(tmp_path):
    nodes = NODES.replace("b,3,4", "b,-3,400")
    graph = load_graph(folder(tmp_path, graph__toml=TOML + 'out_of_range = "clip"\n', nodes__csv=nodes))
    assert graph.x.tolist() == [[1, 2], [0, 10], [5, 6]]
    assert "clipped 2 feature values to the declared range" in graph.schema.notes


def test_groups_of_columns_have_their_own_range_and_are_scaled(tmp_path):
    toml = TOML.replace("range = [0, 10]", 'range = { age = [0, 20], "hei*" = [-10, 10] }')
    graph = load_graph(folder(tmp_path, graph__toml=toml))
    assert torch.allclose(graph.x, torch.tensor([[0.05, 0.6], [0.15, 0.7], [0.25, 0.8]]))
    assert (graph.schema.low, graph.schema.high) == (0.0, 1.0)
    assert "scaled each feature column from its declared range to 0..1" in graph.schema.notes


def test_sparse_features_stay_sparse(tmp_path):
    features = "id,feature,value\nc,49,2.5\na,0,1\n"
    graph = validate(load_graph(folder(tmp_path, graph__toml=SPARSE, nodes__csv=PLAIN, features__csv=features)))
    assert graph.x.layout == torch.sparse_csr
    assert graph.x.shape == (3, 50)
    assert graph.x.to_dense()[2, 49] == 2.5
    assert graph.x.values().tolist() == [1.0, 2.5]


def test_sparse_features_without_values_are_ones(tmp_path):
    graph = load_graph(folder(tmp_path, graph__toml=SPARSE, nodes__csv=PLAIN, features__csv="id,feature\nb,7\n"))
    assert graph.x.to_dense()[1, 7] == 1


def test_sparse_features_are_clipped_on_request(tmp_path):
    files = {"graph__toml": SPARSE + 'out_of_range = "clip"\n', "nodes__csv": PLAIN}
    graph = load_graph(folder(tmp_path, **files, features__csv="id,feature,value\nb,7,99\n"))
    assert graph.x.values().tolist() == [10.0]
    assert "clipped 1 feature values to the declared range" in graph.schema.notes


def test_parquet_with_numbers_as_ids_and_labels(tmp_path):
    path = folder(tmp_path, graph__toml=TOML.replace('["cat", "dog"]', "[3, 4]"), nodes__csv=None, edges__csv=None)
    nodes = polars.DataFrame({"id": [10, 20, 30], "age": [1, 2, 3], "label": [3.0, None, 4.0]})
    nodes.write_parquet(path / "nodes.parquet")
    polars.DataFrame({"source": [10, 20], "target": [20, 30]}).write_parquet(path / "edges.parquet")
    graph = validate(load_graph(path))
    assert graph.y.tolist() == [0, -1, 1]
    assert list(graph.ids) == ["10", "20", "30"]
    assert graph.edge_index.shape == (2, 4)


def test_no_label_column_means_unknown(tmp_path):
    graph = load_graph(folder(tmp_path, nodes__csv="id,age\na,1\nb,2\nc,3\n"))
    assert graph.y.tolist() == [-1, -1, -1]
    assert "no label column: every label unknown" in graph.schema.notes


def test_blank_lines_at_the_end_byte_order_mark_and_windows_lines_are_fine(tmp_path):
    nodes = b"\xef\xbb\xbf" + NODES.replace("\n", "\r\n").encode() + b"\r\n\r\n"
    assert load_graph(folder(tmp_path, nodes__csv=nodes)).num_nodes == 3


def toml(old: str, new: str) -> dict[str, str]:
    return {"graph__toml": TOML.replace(old, new)}


def nodes(text: str) -> dict[str, str]:
    return {"nodes__csv": text}


def sparse(features: str, toml: str = SPARSE) -> dict[str, str]:
    return {"graph__toml": toml, "nodes__csv": PLAIN, "features__csv": features}


REFUSALS = {
    # graph.toml
    "nested": ({"graph__toml": TOML + "name = " + "[" * 5000}, "graph.toml: is nested too deeply; allowed: at most 50"),
    "range too large": (toml("[0, 10]", "[0, 1e39]"), "range is [0, 1e+39]; allowed: two finite numbers from -1e+15"),
    "range overflows": (
        toml("[0, 10]", "[0, 1" + "0" * 400 + "]"),
        "cannot be read as TOML (a whole number has more than 300 digits)",
    ),
    "range nan": (toml("[0, 10]", "[nan, 1]"), "range is [nan, 1]"),
    "range denormal": (toml("[0, 10]", "[0, 1e-40]"), "range is [0, 1e-40]; allowed: two finite"),
    "range too narrow": (toml("[0, 10]", "[1e6, 1000000.01]"), "range is [1e+06, 1e+06]; allowed: two finite"),
    "huge dimension": ({"graph__toml": TOML + "dimension = 1000000000000"}, "allowed: a whole number from 1 to"),
    "one end twice": (
        {"graph__toml": TOML + 'source = "target"'},
        "source and target are both the column 'target'; name two different columns",
    ),
    "id is label": ({"graph__toml": TOML + 'label = "id"'}, "id and label are both the column 'id'"),
    "public is end": ({"graph__toml": TOML + 'public_edges = "source"'}, "source and public_edges are both"),
    "feature without name": (
        {"graph__toml": TOML + 'features = ["age", ""]'},
        "features names a column without a name",
    ),
    "feature is label": (
        {"graph__toml": TOML + 'label = "label"\nfeatures = ["age", "label"]'},
        "features names 'label', which is the column of label",
    ),
    "large toml": ({"graph__toml": TOML + "#" * 3_000_000}, "graph.toml: has 2.9 MiB; allowed: at most 2 MiB"),
    # what a file holds
    "gzip": (nodes(gzip.compress(NODES.encode())), "nodes.csv: is compressed (gzip); unpack it first"),
    "gzip edges": ({"edges__csv": gzip.compress(b"source,target\na,b\n")}, "edges.csv: is compressed (gzip)"),
    "bzip2": (nodes(bz2.compress(NODES.encode())), "nodes.csv: is compressed (bzip2)"),
    "xz": (nodes(lzma.compress(NODES.encode())), "nodes.csv: is compressed (xz)"),
    "zstd": (nodes(b"\x28\xb5\x2f\xfd" + bytes(20)), "nodes.csv: is compressed (zstd)"),
    "zip": (nodes(b"PK\x03\x04" + bytes(20)), "nodes.csv: is compressed (zip)"),
    "zlib": (nodes(zlib.compress(NODES.encode())), "nodes.csv: is compressed (zlib)"),
    "unnamed column": (
        nodes("id,,label\na,1,cat\nb,2,dog\nc,3,\n"),
        "nodes.csv, line 1: column 2 has no name; name it or leave it out; pandas writes",
    ),
    "index column": (nodes(",id,age\n0,a,1\n1,b,2\n2,c,3\n"), "nodes.csv, line 1: column 1 has no name"),
    "nul": (nodes(NODES.replace("a,1", "a\0,1")), r"nodes.csv, line 2: id is 'a\x00'; allowed: no NUL"),
    "cut off": (nodes(NODES[:-1].replace("5,6,", "5,6")), "nodes.csv, line 4: has 3 fields; allowed: 4, as in"),
    "no toml": ({"graph__toml": None}, "graph.toml: no graph.toml found; write for example: private"),
    "bad toml": (toml("[0, 10]", "[0, "), "graph.toml: cannot be read as TOML ("),
    "unknown key": (toml("directed", "directd"), "graph.toml: unknown key 'directd'; allowed: private"),
    "nearest key": (toml("directed", "directd"), "did you mean directed?"),
    "no range": (toml("range = [0, 10]", ""), "graph.toml: range is not declared; write"),
    "no classes": (toml('classes = ["cat", "dog"]', ""), "classes is not declared"),
    "private": (toml('"labels"]', '"names"]'), "private names 'names'; allowed: features, labels, edges"),
    "private kind": (toml('["features", "labels"]', '"features"'), "private is 'features'; allowed: a list"),
    "one class": (toml(', "dog"', ""), "classes are ['cat']; allowed: at least two different names"),
    "class twice": (toml('"dog"', '"cat"'), "classes are ['cat', 'cat']"),
    "range order": (
        toml("[0, 10]", "[10, 0]"),
        "range is [10, 0]; allowed: two finite numbers from -1e+15",
    ),
    "range inf": (toml("[0, 10]", "[0, inf]"), "range is [0, inf]"),
    "range kind": (toml("[0, 10]", '"0-10"'), "range is '0-10'; allowed: [low, high]"),
    "range length": (toml("[0, 10]", "[0, 5, 10]"), "range is [0, 5, 10]"),
    "directed kind": (toml("false", '"no"'), "directed is 'no'; allowed: true or false"),
    "policy": (
        {"graph__toml": TOML + 'out_of_range = "drop"'},
        "out_of_range is 'drop'; allowed: refuse, clip",
    ),
    "id kind": ({"graph__toml": TOML + "id = 3"}, "id is 3; allowed: a word"),
    "dimension kind": (
        {"graph__toml": TOML + "dimension = 0"},
        "dimension is 0; allowed: a whole number from 1 to 16,777,216",
    ),
    "dimension": ({"graph__toml": TOML + "dimension = 3"}, "dimension is 3, but there are 2 feature columns"),
    "no group": (toml("[0, 10]", "{ age = [0, 10] }"), "range has no entry for the feature column 'height'"),
    "feature twice": ({"graph__toml": TOML + 'features = ["age", "age"]'}, "features names a column twice"),
    # nodes
    "no nodes": (nodes(None), "found neither nodes.csv nor nodes.parquet"),
    "both nodes": ({"nodes__parquet": "x"}, "found both nodes.csv and nodes.parquet; remove one"),
    "empty nodes": (nodes(""), "nodes.csv: is empty; allowed: a header line and rows"),
    "only blank": (nodes("\n\n"), "nodes.csv: cannot be read ("),
    "no rows": (nodes("id,age,label\n"), "nodes.csv: has no rows; allowed: one row for each node"),
    "no id column": (
        nodes("name,age\na,1\n"),
        "nodes.csv: has no column 'id'; allowed: its columns are name, age",
    ),
    "no features": (nodes("id,label\na,cat\n"), "nodes.csv: has no feature columns"),
    "id missing": (nodes(NODES.replace("b,3", ",3")), "nodes.csv, line 3: id is missing"),
    "id twice": (nodes(NODES.replace("c,5", "a,5")), "nodes.csv, line 4: id 'a' appears twice"),
    # One person to everybody but a program: asked and charged as two.
    "id in two spellings": (
        nodes(NODES.replace("c,5", "A\u00a0,5")),
        r"nodes.csv, line 4: id 'a' and 'A\xa0' are one id to people",
    ),
    "column twice": (nodes("id,age,age\na,1,2\n"), "nodes.csv, line 1: has two columns 'age'"),
    "value missing": (
        nodes(NODES.replace("3,4", ",4")),
        "nodes.csv, line 3: age is missing; allowed: a number",
    ),
    "line cut short": (nodes(NODES.replace("3,4,dog", "3")), "nodes.csv, line 3: height is missing"),
    "line too long": (
        nodes(NODES.replace("dog", "dog,9")),
        "nodes.csv, line 3: has 5 fields; allowed: 4, as",
    ),
    "blank line": (nodes(NODES.replace("b,3", "\nb,3")), "nodes.csv, line 3: id is missing"),
    "not a number": (nodes(NODES.replace("3,4", "old,4")), "line 3: age is 'old', not a number"),
    "nan": (nodes(NODES.replace("3,4", "3,NaN")), "line 3: height is 'NaN'; allowed: finite numbers, no NaN"),
    "inf": (nodes(NODES.replace("3,4", "3,-inf")), "line 3: height is '-inf'; allowed: finite"),
    "huge": (nodes(NODES.replace("3,4", "3,1e999")), "line 3: height is '1e999'"),
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
    "line after blank lines on top": (
        nodes("\n\n" + NODES.replace("dog", "cow")),
        "nodes.csv, line 5: label",
    ),
    "label column": ({"graph__toml": TOML + 'label = "pet"'}, "nodes.csv: has no column 'pet'"),
    "feature column": ({"graph__toml": TOML + 'features = ["town"]'}, "nodes.csv: has no column 'town'"),
    "split": (
        {"graph__toml": TOML + 'split = "height"'},
        "nodes.csv, line 2: height is '2'; allowed: train, val, test or empty",
    ),
    "encoding": (
        nodes(b"id,age,height,label\na,1,2,cat\n\xff,3,4,dog\n"),
        "nodes.csv, line 3: is not UTF-8 text; save the file as UTF-8",
    ),
    "wide letters": (nodes(NODES.encode("utf-16")), "save the file as UTF-8, not UTF-16"),
    "semicolons": (nodes(NODES.replace(",", ";")), "separate fields by commas, not semicolons"),
    "tabs": (nodes(NODES.replace(",", "\t")), "separate fields by commas, not tabs"),
    "space in a heading": (
        nodes(NODES.replace(",", ", ")),
        "nodes.csv, line 1: column 2 is ' age'; allowed: names without spaces around; separate fields by commas",
    ),
    "open quote": (nodes('id,age,label\n"a,1,cat\n'), "nodes.csv: cannot be read ("),
    "parquet": ({"nodes__csv": None, "nodes__parquet": "no"}, "nodes.parquet: cannot be read ("),
    # edges
    "no edges": ({"edges__csv": None}, "found neither edges.csv nor edges.parquet"),
    "empty edges": ({"edges__csv": ""}, "edges.csv: is empty"),
    "edge column": ({"edges__csv": EDGES.replace("target", "to")}, "edges.csv: has no column 'target'"),
    "unknown source": (
        {"edges__csv": EDGES + "z,a\n"},
        "edges.csv, line 4: source 'z' is not an id in the nodes file; allowed: ids written as they are there",
    ),
    "unknown target": ({"edges__csv": EDGES + "a,z\n"}, "edges.csv, line 4: target 'z' is not an id"),
    "end missing": ({"edges__csv": EDGES + "a,\n"}, "edges.csv, line 4: target is missing"),
    # features
    "no dimension": (
        sparse("id,feature\na,1\n", TOML),
        "dimension is not declared, but features.csv exists",
    ),
    "range without 0": (
        sparse("id,feature\na,1\n", SPARSE.replace("[0, 10]", "[1, 10]")),
        "what is not listed counts as 0; allowed: range = [low, high] with low <= 0 <= high",
    ),
    "unknown id": (
        sparse("id,feature\nz,1\n"),
        "features.csv, line 2: id 'z' is not an id in the nodes file",
    ),
    "no feature column": (sparse("id,item\na,1\n"), "features.csv: has no column 'feature'"),
    "feature too high": (
        sparse("id,feature\na,1\na,50\n"),
        "features.csv, line 3: feature is '50'; allowed: whole numbers 0 to 49",
    ),
    "feature negative": (sparse("id,feature\na,-1\n"), "line 2: feature is '-1'"),
    "feature broken": (sparse("id,feature\na,1.5\n"), "line 2: feature is '1.5'"),
    "entry twice": (
        sparse("id,feature,value\na,1,1\nb,1,1\na,1,2\n"),
        "features.csv, line 4: feature '1' of this id appears twice",
    ),
    "sparse value": (
        sparse("id,feature,value\na,1,11\n"),
        "features.csv, line 2: value is '11'; allowed: the",
    ),
    "sparse nan": (sparse("id,feature,value\na,1,nan\n"), "features.csv, line 2: value is 'nan'"),
}


@pytest.mark.parametrize("files, message", REFUSALS.values(), ids=REFUSALS.keys())
def test_refusals_name_file_and_line(tmp_path, files, message):
    with pytest.raises(DataError) as caught:
        load_graph(folder(tmp_path / "mine", **files))
    assert message in str(caught.value)
    assert str(tmp_path / "mine") in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "loop"])
def test_what_is_no_file_is_refused_at_once(tmp_path, kind):
    path = folder(tmp_path, nodes__csv=None)
    file = path / "nodes.csv"
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    else:
        file.symlink_to({"device": "/dev/zero", "loop": file}[kind])
    with pytest.raises(DataError, match=r"nodes\.csv: (is a (pipe|folder|device), not a file|cannot be opened)"):
        load_graph(path)


def test_a_parquet_file_with_nested_columns_is_refused(tmp_path):
    path = folder(tmp_path, nodes__csv=None)
    polars.DataFrame({"id": ["a", "b", "c"], "age": [[1], [2], [3]]}).write_parquet(path / "nodes.parquet")
    with pytest.raises(DataError, match=r"nodes.parquet: column 'age' holds List\(Int64\); allowed: text, numbers"):
        load_graph(path)


def test_a_parquet_file_that_stands_for_more_than_any_memory_is_refused(tmp_path, monkeypatch):
    path = folder(tmp_path, nodes__csv=None)
    rows = 100_000
    polars.DataFrame({"id": ["a"] * rows}).write_parquet(path / "nodes.parquet")
    monkeypatch.setattr("graphveil.graphs.tables.LARGEST_TABLE", rows - 1)
    with pytest.raises(DataError, match=r"nodes.parquet: holds 100,000 rows of 1 columns; allowed: at most"):
        load_graph(path)


def test_names_in_a_path_are_not_patterns(tmp_path):
    """`[ab]` and `*` are letters here; a library that reads them as patterns would read another folder's files."""
    folder(tmp_path / "a", nodes__csv=NODES.replace("a,1,2", "a,9,9"))
    graph = load_graph(folder(tmp_path / "[ab]"))
    assert graph.x[0].tolist() == [1.0, 2.0]


def test_a_parquet_row_is_named_by_number(tmp_path):
    path = folder(tmp_path, nodes__csv=None)
    polars.DataFrame({"id": ["a", "b", "c"], "age": [1, 2, 11]}).write_parquet(path / "nodes.parquet")
    with pytest.raises(DataError, match=r"nodes.parquet, row 3: age is 11; allowed: the declared range 0 to 10"):
        load_graph(path)


# Checklist items 5, 6 and 7: what mechanisms are built from does not move when private data do.


def declared(graph) -> tuple:
    schema = graph.schema
    return schema.dimension, schema.low, schema.high, schema.classes, schema.private, schema.directed


def test_declared_facts_do_not_depend_on_features(tmp_path):
    before = load_graph(folder(tmp_path / "a"))
    toml = TOML + 'out_of_range = "clip"\n'
    after = load_graph(folder(tmp_path / "b", graph__toml=toml, nodes__csv=NODES.replace("3,4", "1e308,-1e308")))
    assert declared(before) == declared(after)
    assert (float(after.x.min()), float(after.x.max())) == (0.0, 10.0)


def test_declared_facts_do_not_depend_on_labels(tmp_path):
    before = load_graph(folder(tmp_path / "a"))
    after = load_graph(folder(tmp_path / "b", nodes__csv=NODES.replace("dog", "cat")))
    assert declared(before) == declared(after)
    assert after.y.tolist() == [0, 0, -1]


def test_declared_facts_do_not_depend_on_numbers_of_nodes_and_edges(tmp_path):
    before = load_graph(folder(tmp_path / "a"))
    more = "".join(f"n{i},1,1,cat\n" for i in range(30))
    ties = "".join(f"n{i},a\n" for i in range(30))
    after = load_graph(folder(tmp_path / "b", nodes__csv=NODES + more, edges__csv=EDGES + ties))
    assert declared(before) == declared(after)


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e308", "-1e308"])
def test_an_extreme_feature_is_refused_before_anything_is_built(tmp_path, value):
    with pytest.raises(DataError, match="line 3: age is"):
        load_graph(folder(tmp_path, nodes__csv=NODES.replace("b,3", f"b,{value}")))


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
