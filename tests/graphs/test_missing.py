"""Missing feature values: what stands for them is declared, never computed, and noted; else they are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

import graphveil
from graphveil.errors import DataError, InputError
from graphveil.files.columns import Category, Column, Number
from graphveil.graphs import load_graph, load_parts, store_parts, write_folder
from graphveil.graphs.declared.declaration import parse_declaration
from tests.graphs.made import folder

FACTS = 'private = ["features"]\nclasses = ["cat", "dog"]\ndirected = false\n'
COLUMNS = """
[columns]
age = { number = [0, 100], missing = 25 }
children = { integer = [0, 4], missing = 2 }
member = { yes-no = true, missing = "own category" }
vote = { yes-no = true, missing = "no" }
team = { category = ["red", "blue"], missing = "own category" }
house = { category = ["old", "new"], missing = "new" }
grade = { ordinal = ["low", "middle", "high"], missing = "middle" }
hobbies = { tags = ["chess", "go"] }
"""
TYPED = FACTS + COLUMNS
NODES = "id,age,children,member,vote,team,house,grade,hobbies,label\n"
ROWS = ("a,50,4,1,yes,red,old,low,go,cat", "b,,,,,,,,,dog", "c,NaN,0,false,no,blue,new,high,,dog")
ENCODED = [
    [0.50, 1.0, 0, 1, 1, 1, 0, 1, 0, 0.0, 0, 1],
    [0.25, 0.5, 0, 0, 0, 0, 0, 0, 1, 0.5, 0, 0],
    [0.25, 0.0, 1, 0, 0, 0, 1, 0, 1, 1.0, 0, 0],
]
PLAIN = FACTS + "range = [0, 10]\nmissing = 2.5\n"


def typed(path: Path, format: str = "csv") -> Path:
    """A folder with every kind of column, and a person who has filled in nothing."""
    source = folder(path, graph__toml=TYPED, nodes__csv="\n".join([NODES.strip(), *ROWS]) + "\n")
    if format == "parquet":
        polars.read_csv(source / "nodes.csv").write_parquet(source / "nodes.parquet")
        (source / "nodes.csv").unlink()
    return source


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_every_kind_of_column_takes_what_is_declared(tmp_path: Path, format: str) -> None:
    graph = load_graph(typed(tmp_path, format))
    assert graph.x.to_dense().numpy() == pytest.approx(np.array(ENCODED))
    assert graph.schema.columns[2] == Column("member", Category(("no", "yes"), empty=True))
    assert "2 missing values of age: 25, as declared" in graph.schema.notes
    assert "1 missing value of team: own category, as declared" in graph.schema.notes
    assert "a missing value of team is an answer of its own, as declared" in graph.schema.missing_words


def test_what_stands_for_missing_values_goes_wherever_the_graph_goes(tmp_path: Path) -> None:
    graph = load_graph(typed(tmp_path / "own"))
    for again in (
        load_graph(write_folder(graph, tmp_path / "written")),
        load_graph(store_parts(load_parts(tmp_path / "own"), tmp_path / "stored")),
    ):
        assert (again.schema.columns, again.schema.missing) == (graph.schema.columns, graph.schema.missing)
        assert np.array_equal(again.x.to_dense().numpy(), graph.x.to_dense().numpy())


@pytest.mark.parametrize(
    ("toml", "nodes", "features"),
    [
        (PLAIN, "id,x,y,label\na,1,,cat\nb,nan,4,dog\nc,5,6,\n", [[1, 2.5], [2.5, 4], [5, 6]]),
        (
            FACTS + 'range = { "x*" = [0, 10], y = [0, 4] }\nmissing = { "x*" = 5, y = 1 }\n',
            "id,x1,y,label\na,1,,cat\nb,,4,dog\nc,10,2,\n",
            [[0.1, 0.25], [0.5, 1], [1, 0.5]],
        ),
    ],
)
def test_numbers_without_declared_columns_take_it_too(tmp_path: Path, toml: str, nodes: str, features: Any) -> None:
    graph = load_graph(folder(tmp_path, graph__toml=toml, nodes__csv=nodes))
    assert graph.x.to_dense().numpy() == pytest.approx(np.array(features))


def test_python_declares_the_same() -> None:
    edges = {"source": ["a"], "target": ["b"]}
    nodes = {"id": ["a", "b"], "age": [50, None], "team": [None, "red"], "label": ["cat", "dog"]}
    columns = {"age": Number(0, 100), "team": Category(("red", "blue"))}
    facts: dict[str, Any] = {"columns": columns, "classes": ["cat", "dog"], "label": "label"}
    graph = graphveil.from_tables(nodes, edges, missing={"age": 25, "team": "own category"}, **facts)
    assert graph.x.to_dense().tolist() == [[0.5, 0, 0], [0.25, 1, 0]]
    with pytest.raises(DataError, match=r"nodes, row 2: age is missing; .*for example missing=\{'age': 50.0\}"):
        graphveil.from_tables(nodes, edges, missing={"team": "own category"}, **facts)
    x = np.array([[0.5, np.nan], [np.nan, 1.0]])
    graph = graphveil.from_adjacency(
        np.eye(2)[::-1], x, ["cat", "dog"], range=(0, 1), classes=["cat", "dog"], missing=0.5
    )
    assert graph.x.to_dense().tolist() == [[0.5, 0.5], [0.5, 1.0]]
    assert "2 missing values of the features: 0.5, as declared" in graph.schema.notes


@pytest.mark.parametrize(
    ("column", "line"),
    [
        ("{ number = [0, 100] }", "x = { number = [0, 100], missing = 50.0 }"),
        ("{ integer = [0, 5] }", "x = { integer = [0, 5], missing = 2 }"),
        ('"yes-no"', 'x = { yes-no = true, missing = "own category" }'),
        ('{ category = ["a", "b"] }', 'x = { category = ["a", "b"], missing = "own category" }'),
        ('{ ordinal = ["a", "b"] }', 'x = { ordinal = ["a", "b"], missing = "b" }'),
        (None, "missing = 5.0"),
    ],
)
def test_a_missing_value_that_nothing_stands_for_is_refused_with_the_line_that_mends_it(
    tmp_path: Path, column: str | None, line: str
) -> None:
    toml = FACTS + ("range = [0, 10]\n" if column is None else f"[columns]\nx = {column}\n")
    nodes = "id,x,label\na,,cat\nb,,dog\nc,,\n"
    with pytest.raises(DataError) as refused:
        load_graph(folder(tmp_path, graph__toml=toml, nodes__csv=nodes))
    assert str(refused.value).endswith(line) and "nodes.csv, line 2: x is missing" in str(refused.value)
    # The line does what it says.
    mended = toml.split("[columns]\nx = ")[0] + ("" if column is None else "[columns]\n") + line + "\n"
    load_graph(folder(tmp_path, graph__toml=mended, nodes__csv=nodes))


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"range": [0, 1], "missing": 2}, "missing is 2; allowed: 0 to 1"),
        ({"range": [0, 1], "missing": "mean"}, "missing is 'mean'; allowed: a number"),
        ({"range": {"x": [0, 1]}, "missing": {"x": 2}}, "missing is 2; allowed: 0 to 1"),
        ({"columns": {"x": {"number": [0, 9], "missing": 10}}}, "'x' is 10; allowed: a number from 0 to 9"),
        ({"columns": {"x": {"integer": [0, 9], "missing": 1.5}}}, "allowed: a whole number from 0 to 9"),
        ({"columns": {"x": {"category": ["a", "b"], "missing": "c"}}}, "'c'; allowed: 'own category', 'a', 'b'"),
        ({"columns": {"x": {"ordinal": ["a", "b"], "missing": "own category"}}}, "allowed: 'a', 'b'"),
        ({"columns": {"x": {"tags": ["a", "b"], "missing": "a"}}}, "an empty cell has no tags"),
        ({"columns": {"x": {"yes-no": True, "missing": 0.5}}}, "allowed: 'own category', 'no', 'yes'"),
        (
            {"columns": {"x": "yes-no"}, "missing": {"y": "no"}},
            "missing names 'y'; allowed: a table of declared columns",
        ),
        ({"columns": {"x": "yes-no"}, "missing": 0.5}, "missing names all columns"),
        ({"columns": {"x": {"number": [0, 9], "missing": 1}}, "missing": {"x": 2}}, "declared twice"),
    ],
)
def test_what_cannot_stand_for_a_missing_value_is_refused_before_anything_is_read(
    declared: dict[str, Any], message: str
) -> None:
    facts = {"private": [], "classes": ["a", "b"], "directed": False}
    with pytest.raises(DataError, match="missing") as refused:
        parse_declaration({**facts, **declared}, "graph.toml")
    assert message in str(refused.value)


def test_what_no_feature_can_take_is_refused(tmp_path: Path) -> None:
    toml = FACTS + 'range = { x = [0, 1], "*" = [0, 10] }\nmissing = { "*" = 5 }\n'
    with pytest.raises(DataError, match="missing of 'x' is 5; allowed: the declared range 0 to 1"):
        load_graph(folder(tmp_path, graph__toml=toml, nodes__csv="id,x,y,label\na,1,2,cat\nb,1,2,dog\nc,1,2,\n"))
    with pytest.raises(InputError, match="missing names columns, and x has none"):
        graphveil.from_adjacency(np.eye(2), np.eye(2), range=(0, 1), classes=["a", "b"], missing={"age": 1})
