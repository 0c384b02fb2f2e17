"""The graph value of commands: the same parts as PyG's, without PyG."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from graphveil.graphs import load_graph, load_parts, validate
from graphveil.graphs.parts import GraphParts
from graphveil.graphs.plain import attributes_of, plain_graph


@pytest.mark.parametrize("name", ["digits", "social-200", "docs/examples/town"])
def test_a_plain_graph_has_the_parts_of_a_pyg_graph(name: str) -> None:
    plain, whole = plain_graph(load_parts(name)), load_graph(name)
    assert set(plain.keys()) == {key for key in whole.keys() if whole.get(key) is not None}  # noqa: SIM118
    assert plain.num_nodes == whole.num_nodes
    assert plain.schema == whole.schema
    for part in ("x", "y", "edge_index"):
        mine, theirs = plain.get(part), whole.get(part)
        assert torch.equal(mine.to_dense(), theirs.to_dense())
    validate(plain)


def test_a_part_that_is_not_there_is_none() -> None:
    graph = plain_graph(load_parts("social-100"))
    assert graph.get("release") is None
    assert getattr(graph, "public_edges", None) is None


def test_a_copy_may_be_given_other_parts() -> None:
    graph = plain_graph(load_parts("social-100"))
    other = copy.copy(graph)
    other["public_edges"] = torch.zeros(graph.edge_index.shape[1], dtype=torch.bool)
    assert other.public_edges.shape == (graph.edge_index.shape[1],)
    assert graph.get("public_edges") is None


def test_a_plain_graph_is_asked_like_a_mapping_and_shows_no_content() -> None:
    graph = plain_graph(load_parts("social-100"))
    assert "x" in graph and "release" not in graph
    assert graph["y"] is graph.get("y") is graph.y
    assert graph.get("release", "none") == "none"
    assert repr(graph) == f"PlainGraph({', '.join(graph.keys())})"
    with pytest.raises(KeyError):
        graph["release"]


def test_tensors_share_the_arrays_they_are_made_of() -> None:
    """No second copy of a large graph: what is written into an array is read in the tensor."""
    parts = load_parts("docs/examples/town")
    found = attributes_of(parts)
    for name in ("edge_index", "y"):
        array = getattr(parts, name)
        before = int(array.flat[0])
        array.flat[0] = before + 1
        assert int(torch.as_tensor(found[name]).flatten()[0]) == before + 1
        array.flat[0] = before


def test_every_part_has_its_attribute_and_no_other_has_one() -> None:
    parts = load_parts("digits")
    found = attributes_of(parts)
    assert set(found) == {*GraphParts.__dataclass_fields__, "num_nodes", *parts.masks} - {"masks"}
    for name in ("ids", "schema", "release", "image"):
        assert found[name] is getattr(parts, name)
    assert found["public_edges"] is None and found["num_nodes"] == len(parts.y)
    named = replace(
        parts, public_edges=np.zeros(parts.edge_index.shape[1], dtype=np.bool_), private_nodes=np.array([2])
    )
    open_edges, private = (attributes_of(named)[name] for name in ("public_edges", "private_nodes"))
    assert open_edges.dtype == torch.bool and private.tolist() == [2]
