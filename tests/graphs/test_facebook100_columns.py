"""The profile fields of Facebook100 as declared categories, and what can be asked about them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from graphveil.columns import Category, blocks_of, width_of
from graphveil.graphs import Graph, load_graph
from graphveil.graphs.facebook100 import BUCKETS, GENDER_BUCKETS, columns_of
from graphveil.mechanisms.base.domain import VectorDomain
from graphveil.mechanisms.question import question_from
from tests.graphs.published_made import university

NAMES = ("status", "gender", "major", "minor", "housing", "year", "school")
GRAPHS = {
    "facebook100-made7": ("status", "gender", "major", "minor", "housing", "school"),
    "facebook100-made7-gender": ("status", "major", "minor", "housing", "year", "school"),
    "facebook100-made7-2004-2009": ("status", "gender", "major", "minor", "housing"),
}
#: status, gender, major, minor, housing, year, school of seven people; 0 stands for an empty field.
PEOPLE = np.array(
    [
        [1, 1, 11, 0, 90, 2006, 5000],
        [2, 2, 12, 3, 91, 2005, 5001],
        [1, 0, 13, 0, 0, 2009, 5002],
        [5, 2, 0, 0, 0, 2004, 0],
        [1, 1, 300, 256, 257, 2007, 1024],
        [0, 2, 11, 0, 90, 2008, 5000],
        [9, 1, 11, 0, 90, 2008, 5000],
    ]
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return university(tmp_path_factory.mktemp("made"), PEOPLE.tolist(), "Made7")


def graph_of(root: Path, name: str) -> Graph:
    return load_graph(name, root=root)


def asked(graph: Graph, text: str) -> list[int]:
    domain = VectorDomain(graph.schema.dimension, graph.schema.low, graph.schema.high)
    return question_from(text, 1.0, domain, graph.schema.columns).truth(graph.x).tolist()


@pytest.mark.parametrize("name", GRAPHS)
def test_every_field_but_the_label_is_a_column(root: Path, name: str) -> None:
    schema = graph_of(root, name).schema
    assert tuple(column.name for column in schema.columns) == GRAPHS[name]
    assert width_of(schema.columns) == schema.dimension
    assert all(isinstance(column.kind, Category) and column.kind.empty for column in schema.columns)


@pytest.mark.parametrize("name", GRAPHS)
def test_blocks_hold_the_codes_of_the_file(root: Path, name: str) -> None:
    """Whatever is read back from a block is the code modulo the number of buckets, and nothing where it is empty."""
    graph = graph_of(root, name)
    x = graph.x.to_dense().numpy()
    for column, block in zip(graph.schema.columns, blocks_of(graph.schema.columns), strict=True):
        codes, size = PEOPLE[:, NAMES.index(column.name)], column.kind.width
        held = np.where(x[:, block].sum(axis=1) > 0, x[:, block].argmax(axis=1), -1)
        assert held.tolist() == np.where(codes > 0, codes % size, -1).tolist(), column.name


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("status=1", [1, 0, 1, 0, 1, 0, 1]),
        ("status=2|5", [0, 1, 0, 1, 0, 0, 0]),
        ("status=", [0, 0, 0, 0, 0, 1, 0]),
        ("status", [1, 2, 1, 5, 1, 8, 1]),
        ("gender", [1, 2, 4, 2, 1, 2, 1]),
        ("gender=2", [0, 1, 0, 1, 0, 1, 0]),
        ("major=11", [1, 0, 0, 0, 0, 1, 1]),
        ("major=44", [0, 0, 0, 0, 1, 0, 0]),
        ("minor=0", [0, 0, 0, 0, 1, 0, 0]),
        ("minor=", [1, 0, 1, 1, 0, 1, 1]),
        ("housing=90|91", [1, 1, 0, 0, 0, 1, 1]),
        ("school=", [0, 0, 0, 1, 0, 0, 0]),
    ],
)
def test_questions_about_fields(root: Path, text: str, truth: list[int]) -> None:
    """Codes 9 and 1 of status share a bucket of 8, 300 and 44 one of 256: a fixed vocabulary tells no more."""
    assert asked(graph_of(root, "facebook100-made7"), text) == truth


def test_the_year_can_be_asked_where_gender_is_the_class(root: Path) -> None:
    graph = graph_of(root, "facebook100-made7-gender")
    assert asked(graph, f"year={2006 % 64}") == [1, 0, 0, 0, 0, 0, 0]
    assert asked(graph, f"year={2008 % 64}|{2007 % 64}") == [0, 0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("buckets", [BUCKETS, GENDER_BUCKETS])
def test_the_columns_are_those_of_the_buckets_whatever_the_codes(buckets: dict[int, int]) -> None:
    columns = columns_of(buckets)
    assert [column.kind.width for column in columns] == list(buckets.values())
    assert [column.name for column in columns] == [NAMES[field] for field in buckets]
    assert columns[0].kind.values[:3] == ("0", "1", "2")
