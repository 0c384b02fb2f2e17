"""Properties of the readers: what is written is read back, whatever the graph."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphveil.device.people.canonical_id import known_as
from graphveil.errors import DataError, InputError
from graphveil.graphs import GraphSchema, load_graph, make_graph, normalise_edges, validate, write_folder
from graphveil.graphs.value.features import compact_dense, features_tensor, to_rows
from graphveil.graphs.value.schema import usable_range
from tests.graphs.made import tiny_graph

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1, max_size=6)


@st.composite
def graphs(draw):
    n, d, c = draw(st.integers(1, 8)), draw(st.integers(1, 25)), draw(st.integers(2, 4))
    low = draw(st.floats(-1e6, 0.0, width=32))
    high = draw(st.floats(0.0, 1e6, width=32).filter(lambda value: usable_range(low, value)))
    filled = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, d - 1)), max_size=12))
    x = np.zeros((n, d), dtype=np.float32)
    for place in filled:
        x[place] = draw(st.floats(low, high, width=32, allow_subnormal=False))
    ends = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=20))
    source, target = np.array(ends, dtype=np.int64).reshape(-1, 2).T
    directed = draw(st.booleans())
    edge_index, _ = normalise_edges(source, target, n, directed=directed)
    classes = tuple(draw(st.lists(TEXT, min_size=c, max_size=c, unique=True)))
    y = torch.tensor(draw(st.lists(st.integers(-1, c - 1), min_size=n, max_size=n)))
    ids = draw(st.lists(TEXT, min_size=n, max_size=n, unique_by=known_as))
    schema = GraphSchema("made", d, low, high, classes, directed=directed)
    return make_graph(features_tensor(compact_dense(x)), edge_index, y, schema, ids=ids)


@pytest.mark.slow  # long tables
@settings(max_examples=60, deadline=None, derandomize=True)
@given(graph=graphs(), format=st.sampled_from(["csv", "parquet"]))
def test_written_is_read_back(graph, format):
    with tempfile.TemporaryDirectory() as place:
        again = load_graph(write_folder(graph, Path(place) / "graph", format=format))
        validate(again)
        assert torch.equal(graph.edge_index, again.edge_index)
        assert torch.equal(graph.y, again.y)
        assert graph.x.layout == again.x.layout
        assert (to_rows(graph.x) != to_rows(again.x)).nnz == 0
        for field in ("name", "dimension", "low", "high", "classes", "directed", "private"):
            assert getattr(graph.schema, field) == getattr(again.schema, field), field
        assert list(again.ids) == list(graph.ids)


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_several_labels_a_node_survive_the_round_trip(tmp_path, format):
    y = torch.tensor([[0.0, 1.0], [1.0, 1.0], [0.0, 0.0], [1.0, 0.0]])
    again = validate(load_graph(write_folder(tiny_graph(y=y), tmp_path / "graph", format=format)))
    assert torch.equal(again.y, y)
    mask = torch.tensor([True, False, False, False])
    masks = {"train_mask": mask, "val_mask": mask.roll(1), "test_mask": mask.roll(2)}
    split = load_graph(write_folder(tiny_graph(masks=masks), tmp_path / "split", format=format))
    assert all(torch.equal(split[name], masks[name]) for name in masks)
    if format == "csv":
        nodes = tmp_path / "graph" / "nodes.csv"
        nodes.write_text(nodes.read_text().replace("cat;dog", "cat;cow"))
        with pytest.raises(DataError, match=r"nodes.csv, line 3: label is 'cat;cow', not all of it declared classes"):
            load_graph(tmp_path / "graph")


@pytest.mark.parametrize(
    "options, fields, message",
    [
        ({"format": "json"}, {}, "format is 'json'; allowed: csv, parquet"),
        (
            {},
            {"y": torch.zeros(4, 2), "schema": GraphSchema("tiny", 2, 0.0, 1.0, ("cat;mouse", "dog"))},
            "nodes have several labels each, and a class name is empty or holds ';'",
        ),
    ],
)
def test_what_could_not_be_read_back_is_not_written(tmp_path, options, fields, message):
    with pytest.raises(InputError, match=message):
        write_folder(tiny_graph(**fields), tmp_path / "graph", **options)
    assert not (tmp_path / "graph").exists()
