"""The made social network: deterministic, sparse, and as its settings say."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

from graphveil.errors import InputError
from graphveil.graphs import describe, load_graph, social_graph, validate
from graphveil.graphs.features import to_rows


def test_the_same_seed_gives_the_same_graph():
    one, same, other = social_graph(800, seed=3), social_graph(800, seed=3), social_graph(800, seed=4)
    assert torch.equal(one.edge_index, same.edge_index)
    assert (to_rows(one.x) != to_rows(same.x)).nnz == 0
    assert torch.equal(one.y, same.y)
    assert not torch.equal(one.y, other.y)


def test_sizes_are_as_asked_for():
    graph = validate(social_graph(5_000, 20.0, 1_000, 6))
    assert graph.num_nodes == 5_000
    assert graph.edge_index.shape == (2, 100_000)
    assert graph.x.layout == torch.sparse_csr
    assert graph.x.shape == (5_000, 1_000)
    assert set(graph.x.values().tolist()) == {1.0}
    assert int(to_rows(graph.x).getnnz(axis=1).min()) >= 1
    assert len(graph.schema.classes) == 6
    assert (graph.schema.low, graph.schema.high) == (0.0, 1.0)


@pytest.mark.parametrize("homophily", [0.1, 0.5, 0.9])
def test_homophily_is_as_asked_for(homophily):
    # 50,000 edges; drawing duplicates again moves the share by a little, the bound is 0.03.
    found = describe(social_graph(5_000, homophily=homophily))["homophily"]["edge"]
    assert abs(found - homophily) < 0.03


def test_degrees_follow_a_power_law():
    """Hill's estimate of the tail exponent lies near 2.5; seeded, and an exponential tail is rejected."""

    def hill(degrees):
        tail = np.sort(degrees)[-300:].astype(float)
        return 1 + 1 / np.log(tail / tail[0])[1:].mean()

    graph = social_graph(20_000, 10.0, 50, apps=3)
    degrees = torch.bincount(graph.edge_index[0]).numpy()
    assert 2.0 < hill(degrees) < 3.2
    assert not 2.0 < hill(np.random.default_rng(0).exponential(10, 20_000)) < 3.2


def mean_apps(graph):
    """Share of people of each class that have each app [c, d]."""
    rows = to_rows(graph.x)
    return np.stack([rows[(graph.y == c).numpy()].mean(axis=0).A1 for c in range(len(graph.schema.classes))])


def test_apps_tell_the_classes_apart_only_as_much_as_asked():
    spread = {s: mean_apps(social_graph(4_000, 10.0, 100, 4, signal=s, apps=8)).std(axis=0).mean() for s in (0.0, 0.8)}
    assert spread[0.8] > 4 * spread[0.0]


@pytest.mark.parametrize("name, nodes", [("social", 5_000), ("social-1000", 1_000), ("social:1000", 1_000)])
def test_names_with_sizes(name, nodes):
    assert load_graph(name).num_nodes == nodes


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"nodes": 3}, "nodes is 3; allowed: 10 to"),
        ({"nodes": 100, "average_degree": 80}, "average_degree is 80; allowed: 0 to 24.75"),
        ({"average_degree": float("nan")}, "average_degree is nan"),
        ({"dimension": 0}, "dimension is 0"),
        ({"classes": 1}, "classes is 1; allowed: 2 to"),
        ({"homophily": 1.2}, "homophily is 1.2; allowed: 0 to 1"),
        ({"apps": 0}, "apps is 0"),
        ({"signal": -1}, "signal is -1"),
    ],
)
def test_refusals(settings, message):
    with pytest.raises(InputError, match=re.escape(message)):
        social_graph(**settings)
