"""Weights of made edges, right by hand and from what was published alone; and rehearsals of a release."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.graphs import Split, draw_private, social_graph
from graphveil.mechanisms import EdgeRand, PairDomain
from graphveil.methods import HeteroRR
from graphveil.methods.release.counts.posterior import weighted_topology
from graphveil.methods.release.privacy import ReleasePrivacy
from graphveil.methods.release.public_part import neighbour_sums, public_part_of, split_of_labelled
from graphveil.methods.release.published import domain_of
from graphveil.methods.release.rehearsal import MOST_EDGES, alternatives, made_private, rehearsable, rehearse
from graphveil.privacy import SeededRandomness
from tests.methods import made, released_made


def released(graph: Any, epsilon: float, edges: str, **settings: Any) -> Any:
    method = HeteroRR(**{"epsilon_x": math.inf, "epsilon_a": epsilon, "edges": edges, **settings})
    return method.release(graph, randomness=SeededRandomness(2))


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
    split, quick = made.split_of(graph), {"epochs": 3, "hidden": 4, "model": "gcn", "pooling": "none"}
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


@pytest.mark.slow  # trainings
def test_weights_are_those_of_bayes_rule_with_the_public_shares(friends: Any) -> None:
    """All labels public: the share of public edges by groups, one more for each cell, scaled to the estimate."""
    graph = made.changed(friends, y=torch.arange(int(friends.num_nodes)) % 3)
    graph.public_edges = friends.public_edges
    split = made.split_of(graph)
    everyone = Split(split.train | split.test, split.val, torch.zeros_like(split.test))
    out = released(graph, 3.0, "edge-rand")
    domain = domain_of(out)
    weights: Any = weighted_topology(out, everyone, domain).weights
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


def test_sums_are_those_of_a_dense_adjacency() -> None:
    graph = released_made.graph()
    public = released_made.public_part(graph)
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
    first, second = (released_made.public_part(people, split) for people in (graph, other))
    assert torch.equal(first.pairs, second.pairs)
    assert torch.equal(first.groups(), second.groups())
    assert torch.equal(first.sums, second.sums)


@pytest.mark.parametrize("labelled", [0, 1, 3, 8])
def test_a_quarter_of_those_with_a_label_validates(labelled: int) -> None:
    labels = torch.full((20,), -1)
    labels[:labelled] = 1
    split = split_of_labelled(labels)
    assert (int(split.train.sum()), int(split.val.sum())) == (labelled - labelled // 4, labelled // 4)
    assert not bool((split.train & split.val).any() or split.test.any())
    again = split_of_labelled(labels)
    assert torch.equal(split.train, again.train)


def test_several_labels_a_node_are_refused() -> None:
    graph = released_made.graph()
    graph.y = torch.nn.functional.one_hot(graph.y.clamp_min(0), 3).float()
    with pytest.raises(InputError, match="several labels"):
        public_part_of(graph, made.split_of(released_made.graph()), domain_of(graph))


# ---- a rehearsal: what its worlds are made of, and that nothing private is read for it ----


def edges_alone(epsilon: float, edges: str = "class-counts") -> ReleasePrivacy:
    return ReleasePrivacy(math.inf, epsilon, edges=edges)


def town(share: float = 0.8, people: int = 300) -> Any:
    return draw_private(social_graph(people, 14, 20, 3, apps=4, seed=1), share, seed=1)


def homophily(pairs: Tensor, labels: Tensor) -> float:
    return float((labels[pairs[0]] == labels[pairs[1]]).float().mean())


def test_made_edges_are_protected_pairs_of_the_kind_that_public_ones_are() -> None:
    graph, domain = town(0.5), domain_of(town(0.5))
    pairs = made_private(public_part_of(graph, None, domain), domain, 0.5, np.random.default_rng(0))
    domain.require(pairs)  # u < v, private nodes, and no public edge
    assert len(torch.unique(pairs, dim=1).T) == pairs.shape[1]
    public = domain.public.shape[1]
    assert pairs.shape[1] == pytest.approx(public, abs=6 * public**0.5)
    assert homophily(pairs, graph.y) == pytest.approx(homophily(domain.public, graph.y), abs=0.06)


def test_made_edges_are_those_of_people_who_may_have_some() -> None:
    graph = town()
    graph.private_nodes = torch.arange(100)
    domain = domain_of(graph)
    pairs = made_private(public_part_of(graph, None, domain), domain, None, np.random.default_rng(0))
    assert int(pairs.max()) < 100
    assert pairs.shape[1] == pytest.approx(10.0 * 100 / 2, rel=0.2)


@pytest.mark.slow  # trainings
def test_no_private_edge_is_read_nor_counted() -> None:
    """With two thirds fewer of them nothing else is expected."""
    graph, rivals = town(people=100), ("edge-rand",)
    trials = rehearse(edges_alone(4.0), graph, rivals)
    fewer = released_made.with_private(graph, released_made.private_pairs(graph)[:, ::3])
    assert rehearse(edges_alone(4.0), fewer, rivals) == trials


def with_labels(start: Any, y: Tensor) -> Any:
    other = copy.copy(start)
    other.y = y
    return other


def test_what_cannot_be_rehearsed() -> None:
    graph = town()
    assert rehearsable(edges_alone(1.0), graph)
    for privacy in (
        ReleasePrivacy(1.0, 1.0),
        ReleasePrivacy(math.inf, 1.0, 1.0),
        edges_alone(1.0, "mcmc"),
        ReleasePrivacy(1.0, math.inf),
    ):
        assert not rehearsable(privacy, graph)
    for other in (town(1.0), with_labels(graph, torch.full((300,), -1)), with_labels(graph, torch.zeros(300, 3))):
        assert not rehearsable(edges_alone(1.0), other)
    people = 4000
    assert PairDomain(people).size / (math.e + 1) > MOST_EDGES
    large = draw_private(social_graph(people, 4, 5, 2, apps=2, seed=1), 0.5, seed=1)
    assert rehearsable(edges_alone(1.0), large) and not rehearsable(edges_alone(1.0, "edge-rand"), large)
    assert alternatives(edges_alone(1.0, "public-tree"), large) == ("class-counts",)
