"""Made graphs: what they keep of the graph they stand for, and what they make anew."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from graphveil.graphs.parts import GraphParts, SparseRows
from graphveil.graphs.social import social_parts
from graphveil.methods.advise.facts import facts_of
from graphveil.methods.advise.worlds import World, rows_of, worlds_of
from tests.methods.advise.made import parts, sealed


def made(graph: GraphParts, *hidden: str, degree: float | None = None, seed: int = 0) -> tuple[World, ...]:
    """The worlds of a graph, of which the hidden parts fail when they are read."""
    closed = sealed(graph, *hidden)
    return tuple(worlds_of(closed, facts_of(closed, hidden, degree), seed=seed))


def mean_degree(world: World) -> float:
    return float(world.graph.edge_index.shape[1] / world.graph.num_nodes)


def test_more_contacts_than_a_made_graph_has_room_for_are_cut() -> None:
    for world in made(parts("edges", nodes=100), "edges", degree=90.0):
        assert 5 < mean_degree(world) < 25


def test_edges_are_of_the_form_that_all_methods_take() -> None:
    for world in made(parts("edges", nodes=400), "edges", degree=9.0):
        source, target = world.graph.edge_index.numpy()
        keys = source * 400 + target
        assert (source != target).all() and (np.diff(keys) > 0).all()
        assert np.array_equal(np.sort(target * 400 + source), keys)


def test_private_labels_do_not_follow_the_true_ones() -> None:
    """With 4 even classes a quarter agrees by chance; 500 people, so a third is six deviations away."""
    graph = parts("features", "labels", "edges", nodes=500, classes=4)
    for world in made(graph, "features", "labels", "edges", degree=8.0):
        agree = float((world.graph.y.numpy() == graph.y)[graph.y >= 0].mean())
        assert agree < 0.34


def two_groups(nodes: int = 400) -> GraphParts:
    """Two groups of people without a contact between them."""
    halves = [social_parts(nodes // 2, 10.0, 6, 2, apps=2, seed=seed) for seed in (1, 2)]
    edges = np.concatenate([halves[0].edge_index, halves[1].edge_index + nodes // 2], axis=1)
    labels = np.repeat([0, 1], nodes // 2)
    x = np.concatenate([np.asarray(_dense(half)) for half in halves])
    return replace(halves[0], x=x, edge_index=edges, y=labels)


def _dense(graph: GraphParts) -> np.ndarray:
    assert isinstance(graph.x, np.ndarray)
    return graph.x


def test_made_labels_follow_public_contacts_as_far_as_these_fall_into_groups() -> None:
    """Two groups apart: "mostly" is reached, and contacts follow classes more from world to world."""
    inside = []
    for world in made(two_groups(), "features", "labels"):
        source, target = world.graph.edge_index
        inside.append(float((world.graph.y[source] == world.graph.y[target]).float().mean()))
    assert inside == sorted(inside)
    assert inside[0] == pytest.approx(0.55, abs=0.08) and inside[2] > 0.75


def test_public_features_and_labels_stay_with_their_people_in_a_sample() -> None:
    graph = parts("edges", nodes=2400)
    numbered = replace(graph, x=np.arange(2400, dtype=np.float32)[:, None].repeat(12, axis=1))
    numbered = replace(numbered, schema=replace(graph.schema, high=2400.0))
    for world in made(numbered, "edges", degree=6.0):
        people = world.graph.x.numpy()[:, 0].astype(int)
        assert len(set(people)) == 1500
        assert np.array_equal(world.graph.y.numpy(), graph.y[people])


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_of_some_people(sparse: bool) -> None:
    rows = np.zeros((6, 40), np.float32)
    rows[np.arange(6), np.arange(6)] = np.arange(1, 7)
    features = SparseRows(np.arange(1, 7, dtype=np.float32), np.arange(6), np.arange(7), (6, 40)) if sparse else rows
    taken = rows_of(features, np.array([1, 4]))
    if isinstance(taken, SparseRows):
        assert taken.values.tolist() == [2.0, 5.0] and taken.columns.tolist() == [1, 4] and taken.shape == (2, 40)
    else:
        assert np.array_equal(taken, rows[[1, 4]])


def with_public_edges(nodes: int = 400) -> GraphParts:
    """A graph of which every other relationship is public."""
    graph = parts("edges", nodes=nodes, degree=10.0)
    low, high = np.minimum(*graph.edge_index), np.maximum(*graph.edge_index)
    return replace(graph, public_edges=(low + high) % 2 == 0)


def test_public_edges_stay_and_private_ones_are_made_beside_them() -> None:
    graph = with_public_edges()
    assert graph.public_edges is not None
    facts = facts_of(graph, ("edges",), None)
    (world,) = worlds_of(graph, facts)
    assert "private contacts lie as public ones do" in world.name
    public = world.graph.edge_index.numpy()[:, world.graph.public_edges.numpy()]
    assert np.array_equal(public, graph.edge_index[:, graph.public_edges])
    assert mean_degree(world) > 1.5 * public.shape[1] / 400


def test_private_edges_are_made_alike_whichever_the_true_ones_are() -> None:
    """The same public edges and other private ones give the same world."""
    graph = with_public_edges()
    assert graph.public_edges is not None
    only = replace(
        graph, edge_index=graph.edge_index[:, graph.public_edges], public_edges=np.ones(graph.public_edges.sum(), bool)
    )
    (first,), (second,) = (worlds_of(one, facts_of(one, ("edges",), None)) for one in (graph, only))
    assert np.array_equal(first.graph.edge_index.numpy(), second.graph.edge_index.numpy())
