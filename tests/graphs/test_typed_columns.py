"""Columns whose kinds are declared: read, encoded, refused with file and line."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphveil.errors import DataError, InputError
from graphveil.files.columns import Category, Column, Integer, Kind, Number, Ordinal, Tags, YesNo
from graphveil.graphs import GraphSchema, load_graph, validate
from graphveil.graphs.declared.column_declaration import parse_columns
from graphveil.graphs.declared.declaration import parse_declaration
from tests.graphs.made import folder

TOML = """private = ["features", "labels"]
classes = ["cat", "dog"]
directed = false

[columns]
age = { number = [0, 100] }
children = { integer = [0, 4] }
member = "yes-no"
team = { category = ["red", "blue"], empty = true }
grade = { ordinal = ["low", "middle", "high"] }
hobbies = { tags = ["chess", "go", "poker"], most = 2 }
"""
HEAD = "id,age,children,member,team,grade,hobbies,label\n"
ROWS = ("a,25,1,yes,red,low,chess;go,cat\n", "b,50,4,no,,high,,dog\n", "c,100,0,TRUE,blue,middle, poker ,\n")
COLUMNS = {
    "age": Number(0, 100),
    "children": Integer(0, 4),
    "member": YesNo(),
    "team": Category(("red", "blue"), empty=True),
    "grade": Ordinal(("low", "middle", "high")),
    "hobbies": Tags(("chess", "go", "poker"), 2),
}
ENCODED = np.array(
    [[0.25, 0.25, 1, 1, 0, 0.0, 1, 1, 0], [0.50, 1.00, 0, 0, 0, 1.0, 0, 0, 0], [1.00, 0.00, 1, 0, 1, 0.5, 0, 0, 1]]
)


def test_every_kind_is_read_and_encoded(tmp_path: Path) -> None:
    graph = validate(load_graph(folder(tmp_path, graph__toml=TOML, nodes__csv=HEAD + "".join(ROWS))))
    assert graph.x.to_dense().numpy() == pytest.approx(ENCODED)
    assert graph.schema.columns == tuple(Column(name, kind) for name, kind in COLUMNS.items())
    assert (graph.schema.dimension, graph.schema.low, graph.schema.high) == (9, 0.0, 1.0)
    assert "encoded each feature column as its kind says, in 0..1" in graph.schema.notes


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("b,500,4,no,,high,,dog\n", "age is .*500"),
        ("b,x,4,no,,high,,dog\n", "not a number"),
        ("b,50,1.5,no,,high,,dog\n", "children is .*1.5.*, not a whole number"),
        ("b,50,4,perhaps,,high,,dog\n", "member is .*perhaps.*, neither yes nor no"),
        ("b,50,4,,,high,,dog\n", "member is missing"),
        ("b,50,4,no,pink,high,,dog\n", "team is .*pink.*, not a declared value"),
        ("b,50,4,no,red,,,dog\n", "grade is missing"),
        ("b,50,4,no,red,top,,dog\n", "grade is .*top.*, not a declared value"),
        ("b,50,4,no,red,low,chess;golf,dog\n", "hobbies is .*golf.*, not all of it in the vocabulary"),
        ("b,50,4,no,red,low,chess;go;poker,dog\n", "hobbies is .*, more than was declared"),
    ],
)
def test_a_cell_that_holds_something_else_is_refused(tmp_path: Path, row: str, message: str) -> None:
    nodes = HEAD + ROWS[0] + row + ROWS[2]
    with pytest.raises(DataError, match=message) as refused:
        load_graph(folder(tmp_path, graph__toml=TOML, nodes__csv=nodes))
    assert "line 3" in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("declaration", "message"),
    [
        ("columns = 3", "columns is 3"),
        ("[columns]", "columns is {}"),
        ("[columns]\nage = { number = [1, 0] }", r"'age': number is \(1, 0\)"),
        ('range = [0, 1]\n[columns]\nage = "yes-no"', "columns and range are both declared"),
        ('features = ["age"]\n[columns]\nage = "yes-no"', "columns and features are both declared"),
        ('dimension = 1\n[columns]\nage = "yes-no"', "columns and dimension are both declared"),
        ('[columns]\nid = "yes-no"', "features names 'id', which is the column of id"),
    ],
)
def test_a_declaration_that_cannot_be_is_refused(declaration: str, message: str) -> None:
    facts = tomllib.loads(TOML.split("[columns]", 1)[0] + declaration)
    with pytest.raises(DataError, match=message) as refused:
        parse_declaration(facts, "graph.toml")
    assert "\n" not in str(refused.value)


#: Every form that a column may have.
FORMS: dict[str, tuple[Any, Kind]] = {
    "number": ({"number": [0.5, 2]}, Number(0.5, 2)),
    "integer": ({"integer": [-2, 2]}, Integer(-2, 2)),
    "yes or no": ("yes-no", YesNo()),
    "category": ({"category": ["a", "b"]}, Category(("a", "b"))),
    "category that may be empty": ({"category": ["a", "b"], "empty": True}, Category(("a", "b"), empty=True)),
    "ordinal": ({"ordinal": ["a", "b"]}, Ordinal(("a", "b"))),
    "tags": ({"tags": ["a", "b"], "most": 1}, Tags(("a", "b"), 1)),
    "tags without a limit": ({"tags": ["a", "b"]}, Tags(("a", "b"), 2)),
    "a value": (Ordinal(("a", "b")), Ordinal(("a", "b"))),
}


def test_every_form_is_read_and_columns_keep_their_order() -> None:
    columns = parse_columns({name: declaration for name, (declaration, _) in FORMS.items()}, "here")
    assert columns == tuple(Column(name, kind) for name, (_, kind) in FORMS.items())


@pytest.mark.parametrize(
    "declaration",
    [
        None,
        "number",
        ["yes-no"],
        {},
        {"age": [0, 1]},
        {"number": [0, 1, 2]},
        {"number": ["a", "b"]},
        {"category": "ab"},
        {"category": ["a", "b"], "most": 1},
        {"ordinal": ["a", "b"], "empty": True},
        {"tags": ["a", "b"], "most": "all"},
        {"number": [0, 1], "integer": [0, 1]},
    ],
)
def test_anything_else_is_refused_with_the_column_in_one_line(declaration: object) -> None:
    with pytest.raises(DataError, match="the column 'x'") as refused:
        parse_columns({"x": declaration}, "here")
    assert str(refused.value).startswith("here: ") and "\n" not in str(refused.value)


def test_numbers_are_clipped_where_it_is_asked_for_and_columns_are_declared_once(tmp_path: Path) -> None:
    rows = "a,-25,1,yes,red,low,,cat\nb,50,9,no,,high,,dog\nc,100,0,yes,blue,middle,,\n"
    toml = 'out_of_range = "clip"\n' + TOML
    graph = load_graph(folder(tmp_path, graph__toml=toml, nodes__csv=HEAD + rows))
    assert graph.x.to_dense()[:, 0].tolist() == [0, 0.5, 1]
    assert "clipped 2 feature values to the declared range" in graph.schema.notes
    (tmp_path / "features.csv").write_text("id,feature\na,0\n")
    with pytest.raises(DataError, match=r"columns are declared, but features\.csv exists"):
        load_graph(tmp_path)


@pytest.mark.parametrize(("dimension", "high"), [(2, 1.0), (3, 2.0)])
def test_a_schema_is_as_wide_and_as_high_as_the_blocks_of_its_columns(dimension: int, high: float) -> None:
    columns = (Column("age", Number(0, 9)), Column("team", Category(("a", "b"))))
    assert GraphSchema("x", 3, 0.0, 1.0, ("c", "d"), columns=columns).columns == columns
    with pytest.raises(InputError, match=r"allowed: 3 in \[0, 1\]"):
        GraphSchema("x", dimension, 0.0, high, ("c", "d"), columns=columns)
