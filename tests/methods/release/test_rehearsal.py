"""A rehearsal: what its worlds are made of, that nothing private is read for it, and what it finds."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from graphveil.graphs import draw_private, social_graph
from graphveil.mechanisms import PairDomain
from graphveil.methods.release.heterorr import domain_of
from graphveil.methods.release.privacy import ReleasePrivacy
from graphveil.methods.release.public_part import public_part_of
from graphveil.methods.release.rehearsal import MOST_EDGES, alternatives, made_private, rehearsable, rehearse
from tests.methods import released_made


class PublicColumns:
    """Edges of which only public columns may be asked for."""

    def __init__(self, edges: Tensor, public: Tensor) -> None:
        self.edges, self.public = edges, public

    def __getitem__(self, key: tuple[slice, Tensor]) -> Tensor:
        if not (key[0] == slice(None) and torch.equal(key[1], self.public)):
            raise RuntimeError("private edges were read")
        return self.edges[key]


class PrivateSealed:
    """A graph of which everything may be read but its private edges."""

    def __init__(self, start: Any) -> None:
        self.start, self.edge_index = start, PublicColumns(start.edge_index, start.public_edges)

    def __getattr__(self, name: str) -> Any:
        if name in ("num_edges", "num_undirected_edges"):
            raise RuntimeError("private edges were counted")
        return getattr(self.start, name)


def edges_alone(epsilon: float, edges: str = "class-counts") -> ReleasePrivacy:
    return ReleasePrivacy(math.inf, epsilon, edges=edges)


def town(share: float = 0.8, people: int = 300) -> Any:
    return draw_private(social_graph(people, 14, 20, 3, apps=4, seed=1), share, seed=1)


def homophily(pairs: Tensor, labels: Tensor) -> float:
    return float((labels[pairs[0]] == labels[pairs[1]]).float().mean())


def test_made_edges_are_protected_pairs_of_the_kind_that_public_ones_are() -> None:
    graph, domain = town(0.5), domain_of(town(0.5))
    found = made_private(public_part_of(graph, None, domain), domain, 0.5, np.random.default_rng(0))
    domain.require(found)  # u < v, private nodes, and no public edge
    assert len(torch.unique(found, dim=1).T) == found.shape[1]
    assert domain.public is not None
    known = domain.public.shape[1]
    assert found.shape[1] == pytest.approx(known, abs=6 * known**0.5)
    assert homophily(found, graph.y) == pytest.approx(homophily(domain.public, graph.y), abs=0.06)


def test_made_edges_are_those_of_people_who_may_have_some() -> None:
    graph = town()
    graph.private_nodes = torch.arange(100)
    domain = domain_of(graph)
    found = made_private(public_part_of(graph, None, domain), domain, None, np.random.default_rng(0))
    assert int(found.max()) < 100
    assert found.shape[1] == pytest.approx(10.0 * 100 / 2, rel=0.2)


@pytest.mark.slow  # trainings
def test_no_private_edge_is_read_nor_counted() -> None:
    """Everything but private edges may be read; with two thirds fewer of them nothing else is expected."""
    graph, others = town(people=100), ("edge-rand",)
    sealed: Any = PrivateSealed(graph)
    found = rehearse(edges_alone(4.0), graph, others)
    assert rehearse(edges_alone(4.0), sealed, others) == found
    fewer = released_made.with_private(graph, released_made.private_pairs(graph)[:, ::3])
    assert rehearse(edges_alone(4.0), fewer, others) == found


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
