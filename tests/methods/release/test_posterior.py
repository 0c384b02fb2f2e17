"""Weights of made edges: right by hand, right on average, and from what was published alone."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from graphveil.errors import InputError
from graphveil.graphs import Split, draw_private, social_graph
from graphveil.mechanisms import EdgeRand
from graphveil.methods import HeteroRR
from graphveil.methods.release.heterorr import domain_of
from graphveil.methods.release.posterior import weighted_topology
from graphveil.methods.release.public_part import PublicPart, everybody, neighbour_sums, public_part_of
from graphveil.privacy import SeededRandomness
from tests.methods import made, released_made


def released(graph: Any, epsilon: float, edges: str, **settings: Any) -> Any:
    method = HeteroRR(**{"epsilon_x": math.inf, "epsilon_a": epsilon, "edges": edges, **settings})
    return method.release(graph, randomness=SeededRandomness(2))


def weights_of(out: Any, split: Any) -> torch.Tensor:
    found = weighted_topology(out, split, domain_of(out)).weights
    assert found is not None
    return found


@pytest.fixture(scope="module")
def friends() -> Any:
    """400 people of three classes, half of whose friendships are public."""
    return draw_private(social_graph(400, average_degree=12, dimension=20, classes=3, homophily=0.9, seed=3), 0.5, 3)


def test_nobody_who_validates_is_weighed_by_their_own_label(friends: Any) -> None:
    """Their group is what the public part expects, wrong of some; the test of Bayes rule shows weights of it."""
    split, out = made.split_of(friends), released(friends, 3.0, "edge-rand")
    right = public_part_of(out, split, domain_of(out)).groups(of_judges=False) == friends.y
    assert bool(right[split.train].all())
    assert 0.5 < float(right[split.val].float().mean()) < 0.99


def test_a_network_takes_them_and_a_clone_remembers() -> None:
    graph = released_made.graph()
    split, quick = made.split_of(graph), {"epochs": 3, "hidden": 4, "model": "gcn"}
    fits = [
        HeteroRR(epsilon_x=math.inf, epsilon_a=2.0, edges="edge-rand", weights=weights, **quick).fit(
            graph, split=split, randomness=SeededRandomness(1)
        )
        for weights in ("none", "posterior")
    ]
    assert not torch.equal(fits[0].predict_proba(), fits[1].predict_proba())
    assert fits[0].guarantee == fits[1].guarantee and fits[0].ledger == fits[1].ledger
    assert fits[1].get_params()["weights"] == "posterior"


def test_other_mechanisms_and_noisy_features_are_refused() -> None:
    graph = released_made.graph()
    split = made.split_of(graph)
    for settings in ({"edges": "public-tree"}, {"edges": "edge-rand", "epsilon_x": 2.0}, {"epsilon_y": 1.0}):
        out = released(graph, 3.0, **{"edges": "edge-rand", **settings})
        with pytest.raises(InputError, match="edge-rand and lap-graph alone"):
            weighted_topology(out, split, domain_of(out))
    with pytest.raises(InputError, match="weights = 'some'; allowed: none, posterior"):
        HeteroRR(epsilon_x=1.0, epsilon_a=1.0, weights="some")


@pytest.mark.slow  # trainings
def test_weights_are_those_of_bayes_rule_with_the_public_shares(friends: Any) -> None:
    """All labels public: the share of public edges by groups, one more for each cell, scaled to the estimate."""
    graph = made.changed(friends, y=torch.arange(int(friends.num_nodes)) % 3)
    graph.public_edges = friends.public_edges
    split = made.split_of(graph)
    everyone = Split(split.train | split.test, split.val, torch.zeros_like(split.test))
    out = released(graph, 3.0, "edge-rand")
    weights, domain = weights_of(out, everyone), domain_of(out)
    groups = public_part_of(out, everyone, domain).groups(of_judges=False)
    seen, size = torch.ones(3, 3, dtype=torch.float64), torch.bincount(groups, minlength=3).double()
    for source, target in out.edge_index[:, out.public_edges].T.tolist():
        seen[groups[source], groups[target]] += 1
    pairs = size[:, None] * size - torch.diag(size)
    made_pairs = out.edge_index[:, ~out.public_edges]
    total = EdgeRand(epsilon=3.0, domain=domain).estimate(made_pairs[:, made_pairs[0] < made_pairs[1]]).total
    prior = seen / pairs * 2 * total / seen.sum()
    for place in torch.nonzero(~out.public_edges)[:200, 0].tolist():
        source, target = out.edge_index[:, place]
        before = float(prior[groups[source], groups[target]])
        expected = before * math.exp(3.0) / (before * math.exp(3.0) + 1 - before)
        assert float(weights[place]) == pytest.approx(expected, rel=1e-4)


# ---- the public part of a release ----


def part(graph: Any = None, split: Split | None = None) -> PublicPart:
    graph = graph or released_made.graph()
    return public_part_of(graph, split or made.split_of(graph), domain_of(graph))


def test_sums_are_those_of_a_dense_adjacency() -> None:
    graph = released_made.graph()
    public = part(graph)
    rows = torch.rand(made.NODES, 4, dtype=torch.float64)
    dense = torch.zeros(made.NODES, made.NODES, dtype=torch.float64)
    dense[graph.edge_index[0][graph.public_edges], graph.edge_index[1][graph.public_edges]] = 1
    assert torch.allclose(neighbour_sums(public.pairs, rows), dense @ rows)
    assert torch.equal(neighbour_sums(public.pairs[:, :0], rows), torch.zeros_like(rows))


@pytest.mark.slow  # trainings
def test_another_set_of_private_edges_is_the_same_public_part() -> None:
    graph = released_made.graph()
    split = made.split_of(graph)
    other = released_made.with_private(graph, released_made.private_pairs(graph)[:, ::3])
    first, second = (part(one, split) for one in (graph, other))
    assert torch.equal(first.pairs, second.pairs)
    assert torch.equal(first.groups(), second.groups())
    assert torch.equal(first.sums, second.sums)


@pytest.mark.parametrize("labelled", [0, 1, 3, 8])
def test_a_quarter_of_those_with_a_label_validates(labelled: int) -> None:
    labels = torch.full((20,), -1)
    labels[:labelled] = 1
    split = everybody(labels)
    assert (int(split.train.sum()), int(split.val.sum())) == (labelled - labelled // 4, labelled // 4)
    assert not bool((split.train & split.val).any() or split.test.any())
    again = everybody(labels)
    assert torch.equal(split.train, again.train)


def test_several_labels_a_node_are_refused() -> None:
    graph = released_made.graph()
    graph.y = torch.nn.functional.one_hot(graph.y.clamp_min(0), 3).float()
    with pytest.raises(InputError, match="several labels"):
        public_part_of(graph, made.split_of(released_made.graph()), domain_of(graph))
