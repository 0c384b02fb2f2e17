"""A network on a release, pooled with the public part: not below it, and above where private data says something."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch

from graphveil.graphs import Split, draw_private, social_graph
from graphveil.mechanisms import PairDomain
from graphveil.methods import HeteroRR, load_method
from graphveil.methods.release.counts.count_readings import read_public
from graphveil.methods.release.public_part import public_part_of
from graphveil.methods.release.published import domain_of
from graphveil.privacy import SeededRandomness
from graphveil.reproduction.catalogue import HETERORR
from tests.methods import made

OPEN: dict[str, Any] = {"epsilon_x": math.inf, "epsilon_a": math.inf, "model": "gcn"}


def people(degree: float = 16, homophily: float = 0.6) -> Any:
    """400 people of three classes, three in ten of whose friendships are public."""
    return draw_private(social_graph(400, degree, dimension=20, classes=3, homophily=homophily, seed=3), 0.7, 3)


def fitted(graph: Any, split: Any = None, **settings: Any) -> HeteroRR:
    method = HeteroRR(**{**OPEN, **settings})
    return method.fit(graph, split=split or made.split_of(graph), randomness=SeededRandomness(1))


def accuracy(scores: Any, graph: Any) -> float:
    return float((scores.argmax(dim=1) == graph.y)[made.split_of(graph).test].float().mean())


def test_made_edges_that_only_disturb_are_left_out() -> None:
    graph = people()
    pooled, alone = (fitted(graph, epsilon_a=1.0, pooling=pooling) for pooling in ("public-part", "none"))
    public = read_public(public_part_of(pooled.published, made.split_of(graph), domain_of(graph)))
    assert torch.allclose(pooled.predict_proba(), torch.softmax(public, dim=1), atol=1e-5)
    assert accuracy(public, graph) > accuracy(alone.predict_proba(), graph) + 0.1


def test_private_data_that_says_something_is_used() -> None:
    features = {"epsilon_x": 200.0, "epsilon_a": 1.0}
    for graph, settings in ((people(), {"epsilon_a": 8.0, "edges": "edge-rand"}), (people(6, 0.8), features)):
        method = fitted(graph, **settings)
        assert method.reading.used
        assert accuracy(method.predict_proba(), graph) > accuracy(method.reading.public, graph) + 0.1


def test_sums_over_made_edges_are_less_what_chance_brings() -> None:
    """Where every protected pair is an edge, nothing is left but public neighbours; so too for a few private nodes."""
    for members in (None, torch.arange(0, 400, 3)):
        graph = people()
        pairs = graph.edge_index[:, graph.public_edges]
        domain = PairDomain(400, members, pairs[:, pairs[0] < pairs[1]])
        part = public_part_of(graph, made.split_of(graph), domain)
        every = domain.unrank(torch.arange(domain.size))
        # How much of each class; in which proportion is rounding where nobody is left.
        drawn = (every, every[:, ::2], every[:, :0])
        all_made, half_made, public = (part.made_sums(pairs, domain)[:, :3] for pairs in drawn)
        torch.testing.assert_close(all_made, part.sums[:, :3], atol=1e-3, rtol=0)
        torch.testing.assert_close(public, part.sums[:, :3])
        assert float((half_made - part.sums[:, :3]).abs().max()) > 0.1


def test_no_made_edge_and_no_noisy_feature_is_in_the_public_part() -> None:
    graph, settings = people(), {**OPEN, "epsilon_a": 1.0, "epsilon_x": 1.0, "epsilon_y": 2.0}
    first = fitted(graph, **settings)
    again = HeteroRR(**settings).release(graph, randomness=SeededRandomness(2))
    again.y = first.published.y
    assert not torch.equal(again.edge_index, first.published.edge_index)
    second = HeteroRR(**OPEN).fit_released(again, split=made.split_of(graph))
    assert torch.equal(second.reading.public, first.reading.public)


def test_where_nobody_judges_and_in_reproductions_the_network_speaks_alone() -> None:
    graph, quick = people(), {"epochs": 2}
    split = made.split_of(graph)
    several = made.changed(graph, y=torch.nn.functional.one_hot(graph.y, 3).float())
    several.public_edges = graph.public_edges
    unjudged = fitted(graph, Split(split.train, torch.zeros_like(split.val), split.test), epsilon_a=1.0, **quick)
    for method in (unjudged, fitted(several, epsilon_a=1.0, **quick), fitted(graph, **quick)):
        assert method.reading is None
        assert torch.equal(method.predict_proba(), method.network.predict_proba())
    assert all(entry.settings["pooling"] == "none" for exhibit in HETERORR.values() for entry in exhibit())


def test_a_release_is_read_as_it_was_made_at_no_further_cost(tmp_path: Path) -> None:
    first = fitted(people(), epsilon_a=3.0)
    again = fitted(first.published, epsilon_x=1.0, epsilon_a=9.0)
    assert load_method(again.save(tmp_path)).epsilon_relationship == 3.0
    assert torch.equal(again.predict_proba(), first.predict_proba())
    assert (again.ledger, again.guarantee.epsilon, again.epsilon_relationship) == (first.ledger, 3.0, 3.0)
