"""HeteroRR: one release, paid once and before anything is read; everything after it is post-processing."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphveil.errors import BudgetError, DataError, InputError
from graphveil.graphs import load_graph, normalise_edges, validate, write_release
from graphveil.mechanisms import NoisyCounts
from graphveil.methods import HeteroRR, load_method
from graphveil.methods.release.entries import EDGE_METHODS, RELEASE_FEATURES
from graphveil.methods.release.privacy import ReleasePrivacy
from graphveil.methods.release.published import bound_of, domain_of, published_features
from graphveil.methods.release.scores import declared_scores
from graphveil.privacy import Guarantee, SecureRandomness, SeededRandomness
from tests.methods import made, released_made
from tests.methods.conformance import secrets

INFINITE = math.inf


def build(**settings: Any) -> HeteroRR:
    return HeteroRR(**{"epsilon_x": 2.0, "epsilon_a": 3.0, "steps": 200, **released_made.QUICK, **settings})


def release(graph: Any = None, *, noise: int = 1, **settings: Any) -> Any:
    return build(**settings).release(graph or released_made.graph(), randomness=SeededRandomness(noise))


def fitted(graph: Any = None, *, noise: int = 1, **settings: Any) -> HeteroRR:
    graph = graph or released_made.graph()
    return build(**settings).fit(graph, split=made.split_of(graph), randomness=SeededRandomness(noise))


# ---- the release ----


@pytest.mark.parametrize("edges", EDGE_METHODS)
def test_made_edges_lie_in_the_protected_pairs_and_public_ones_stay(edges: str) -> None:
    graph = released_made.graph()
    graph.private_nodes = torch.unique(released_made.private_pairs(graph))
    out = validate(release(graph, edges=edges, epsilon_a=6.0))
    public, before = (part.edge_index[:, part.public_edges] for part in (out, graph))
    assert torch.equal(public, before)
    domain_of(graph).require(released_made.private_pairs(out))
    assert out.release.edges
    assert torch.equal(out.private_nodes, graph.private_nodes)
    assert out.schema.private == ()


@pytest.mark.parametrize("features", RELEASE_FEATURES)
def test_published_features_lie_in_the_range_that_is_declared_for_them(features: str) -> None:
    """The range follows from public facts: it is the same for other values."""
    graph = released_made.graph()
    out = validate(release(graph, features=features))
    assert out.schema.low < 0 < out.schema.high
    other = made.changed(graph, x=np.zeros_like(made.dense(graph.x)))
    other.public_edges = graph.public_edges
    again = release(other, features=features)
    assert (again.schema.low, again.schema.high) == (out.schema.low, out.schema.high)
    assert out.x.shape == graph.x.shape
    assert "unbiased estimates less the middle 0.5" in out.release.notes[0]


@pytest.mark.parametrize("features", RELEASE_FEATURES)
def test_published_features_are_unbiased_about_the_middle(features: str) -> None:
    """They are the unbiased estimates of the mechanism, less the middle of the range."""
    mechanism = ReleasePrivacy(4.0, 1.0, features=features).feature_mechanism(made.graph(20).schema)
    sent = mechanism.randomize(torch.full((50, 20), 0.25), randomness=SeededRandomness(3))
    x, estimates = made.dense(published_features(mechanism, sent).x), made.dense(mechanism.estimate(sent))
    assert np.allclose(x, estimates - 0.5, atol=1e-5)
    assert np.abs(x).max() <= bound_of(mechanism)


def test_what_is_public_goes_out_as_it_is_and_is_said() -> None:
    graph = released_made.graph()
    out = release(graph, epsilon_x=INFINITE)
    assert torch.equal(out.x, graph.x) and torch.equal(out.y, graph.y)
    assert (out.schema.low, out.schema.high) == (graph.schema.low, graph.schema.high)
    assert out.release.guarantee.assumption("features-published-open")
    out = release(graph, epsilon_a=INFINITE)
    assert torch.equal(out.edge_index, graph.edge_index)
    assert not out.release.edges
    assert out.release.guarantee.assumption("edges-published-open")


def test_nothing_raw_is_in_a_release(tmp_path: Path) -> None:
    graph = released_made.graph(100)
    out = release(graph, epsilon_y=1.0)
    write_release(out, tmp_path / "out", out.release, card="")
    content = b"".join(file.read_bytes() for file in (tmp_path / "out").iterdir())
    for secret in (np.float32(made.CANARY).tobytes(), np.float64(made.CANARY).tobytes(), b"0.73105"):
        assert secret not in content
    assert out.schema.notes == ()  # they count what loading met in private data
    stored = out.x.values() if out.x.layout == torch.sparse_csr else out.x
    assert not bool((stored == made.CANARY).any())


def test_labels_go_through_randomized_response_and_unknown_ones_stay_unknown() -> None:
    graph = released_made.graph()
    out = release(graph, epsilon_y=0.5)
    assert torch.equal(out.y < 0, graph.y < 0)
    assert not torch.equal(out.y, graph.y)
    keep = math.exp(0.5) / (math.exp(0.5) + 2)
    assert (out.release.keep, out.release.flip) == pytest.approx((keep, (1 - keep) / 2))


# ---- what it costs ----


@pytest.mark.parametrize("edges", EDGE_METHODS)
def test_the_ledger_and_the_guarantee_say_the_same(edges: str) -> None:
    out = release(edges=edges, epsilon_y=1.0).release
    assert [out.ledger.total(unit)[0] for unit in ("features", "labels", "edges")] == [2.0, 1.0, 3.0]
    assert out.guarantee.epsilon == 6.0
    assert [part.epsilon for part in out.guarantee.parts] == [2.0, 1.0, 3.0]
    assert out.guarantee.model == "central"
    assert Guarantee.from_dict(out.guarantee.to_dict()) == out.guarantee


def test_reproducible_noise_voids_and_secure_noise_does_not() -> None:
    graph = released_made.graph()
    for parts in ({}, {"epsilon_x": INFINITE}, {"epsilon_a": INFINITE}):
        assert "seed 1" in str(release(graph, **parts).release.guarantee.void)
    secure = build().release(graph, randomness=SecureRandomness()).release.guarantee
    assert secure.void is None and secure.protects
    assert secure == replace(release(graph).release.guarantee, void=None)


def test_with_the_noisy_counts_frozen_nothing_else_tells_a_neighbour(monkeypatch: pytest.MonkeyPatch) -> None:
    """Record and replay: blocks, number of counts and draws are the same; one count differs by one."""
    counted: list[torch.Tensor] = []

    def frozen(self: NoisyCounts, counts: torch.Tensor, *, randomness: Any) -> torch.Tensor:
        counted.append(counts.clone())
        return torch.full_like(counts, 3)

    monkeypatch.setattr(NoisyCounts, "randomize", frozen)
    graph = released_made.graph()
    outs, draws = [], []
    for people in (graph, released_made.without_one(graph)):
        noise = made.Counted(5)
        outs.append(build(edges="public-tree", epsilon_x=INFINITE).release(people, randomness=noise))
        draws.append(noise.counts)
    assert torch.equal(outs[0].edge_index, outs[1].edge_index)
    assert draws[0] == draws[1]
    for part in ("ledger", "guarantee", "settings"):
        assert getattr(outs[0].release, part) == getattr(outs[1].release, part)
    assert int((counted[0] - counted[1]).abs().sum()) == 1


@pytest.mark.parametrize("edges", ["public-tree", "mcmc"])
def test_private_features_decide_no_edge(edges: str) -> None:
    """Other features, the same draws: where features are private nothing but their own reports may tell of them.

    Few edges are public, so that many nodes have a place in the tree by public features alone, where there are any.
    """
    graph = released_made.graph(share=0.8)
    other = released_made.with_private(graph, released_made.private_pairs(graph), x=graph.x.flip(0))
    made_edges = [release(people, edges=edges).edge_index for people in (graph, other)]
    assert torch.equal(*made_edges)
    sampled = [release(people, edges=edges, epsilon_x=INFINITE).edge_index for people in (graph, other)]
    assert edges == "mcmc" or not torch.equal(*sampled), "public features would place nodes"


# ---- what is refused ----


def test_directed_graphs_are_refused_where_edges_are_protected() -> None:
    start = made.graph(20)
    edges, _ = normalise_edges(*start.edge_index.numpy(), made.NODES, directed=True)
    graph = made.changed(start, directed=True)
    graph.edge_index = edges
    with pytest.raises(InputError, match=r"edges have a direction.*allowed: undirected graphs"):
        release(graph)
    assert release(graph, epsilon_a=INFINITE).schema.directed


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1.5, None])
def test_what_lies_outside_of_what_is_declared_is_refused_once_it_was_paid_for_and_read(bad: float | None) -> None:
    """A value, or an edge between people who are declared to have no private one."""
    graph, method = released_made.graph(), build()
    if bad is None:
        graph.private_nodes = torch.arange(10)
    else:
        graph.x = graph.x.clone()
        graph.x[4, 3] = bad
    with pytest.raises((InputError, DataError)):
        method.release(graph, randomness=SeededRandomness(1))
    assert method.ledger.spends != ()


def test_several_private_labels_a_node_are_refused_and_public_ones_go_out() -> None:
    graph = released_made.graph()
    several = made.changed(graph, y=torch.nn.functional.one_hot(graph.y.clamp_min(0), 3).float())
    several.public_edges = graph.public_edges
    assert torch.equal(release(several).y, several.y)
    with pytest.raises(InputError, match="several labels for each node"):
        release(several, epsilon_y=1.0)


def test_a_range_whose_noisy_numbers_are_too_large_is_refused_by_the_name_of_the_data() -> None:
    graph = released_made.graph()
    graph.schema = replace(graph.schema, high=1e15)
    with pytest.raises(InputError, match=rf"release of {graph.schema.name}: noisy features would reach"):
        release(graph)


def test_scores_come_from_a_declared_file_and_are_stamped(tmp_path: Path) -> None:
    for scores in ("file.txt", declared_scores([1.0, 2.0])):
        with pytest.raises(InputError, match="multi-bit gives every feature the same"):
            build(features="multi-bit", scores=scores)
    file = tmp_path / "scores.txt"
    file.write_text("\n".join(["3", *["1"] * 19]) + "\n")
    out = release(features="feature-rr", scores=str(file)).release
    spend = next(spend for spend in out.ledger.spends if spend.unit == "features")
    assert spend.parameters["shares"] == declared_scores([3.0, *[1.0] * 19]).stamp
    assert "shares of the features' budget: a declared vector" in " ".join(out.notes)
    file.write_text("1\n")
    with pytest.raises(DataError, match="1 scores"):
        release(features="feature-rr", scores=str(file))


# ---- what is trained on it ----


def test_training_needs_the_release_alone_and_may_be_repeated(tmp_path: Path) -> None:
    """By somebody else, from the folder: the same predictions and the same ledger."""
    graph = released_made.graph()
    out = release(graph, epsilon_y=2.0)
    write_release(out, tmp_path / "out", out.release, card="")
    loaded = load_graph(tmp_path / "out")
    split = made.split_of(graph)
    whole = build(epsilon_y=2.0).fit(graph, split=split, randomness=SeededRandomness(1))
    first = build(epsilon_y=2.0).fit_released(out, split=split)
    assert torch.equal(first.predict_proba(), whole.predict_proba()) and whole.guarantee == out.release.guarantee
    second = build(epsilon_y=2.0).fit_released(loaded, split=split)
    assert torch.equal(first.predict_proba(), second.predict_proba())
    before = first.predict_proba()
    assert torch.equal(first.fit_released(out, split=split).predict_proba(), before)
    assert first.ledger == second.ledger == out.release.ledger


def test_a_graph_that_nobody_released_is_not_trained_on() -> None:
    graph = released_made.graph()
    with pytest.raises(InputError, match="the graph was not released"):
        build().fit_released(graph, split=made.split_of(graph))
    with pytest.raises(InputError, match="write_release: release is a NoneType; publish it with"):
        write_release(graph, "nowhere", None, card="")
    with pytest.raises(InputError, match="a NoneType is not a graph"):
        build().fit_released(None, split=made.split_of(graph))


def test_a_saved_method_comes_back_the_same_and_cannot_release_again(tmp_path: Path) -> None:
    graph = released_made.graph()
    for settings in ({"features": "feature-rr", "bins": 4}, {"edges": "mcmc"}):
        method = fitted(graph, **settings)
        path = tmp_path / "-".join(map(str, settings.values()))
        method.save(path)
        for loaded in (load_method(path), HeteroRR.load(path)):
            assert torch.equal(loaded.predict_proba(graph), method.predict_proba())
            for part in ("kind", "guarantee", "ledger", "history", "privacy"):
                assert getattr(loaded, part) == getattr(method, part)
            with pytest.raises(BudgetError):
                loaded.release(released_made.Sealed(graph), randomness=SeededRandomness(1))


def test_a_saved_method_holds_no_edges_and_no_raw_values(tmp_path: Path) -> None:
    graph = released_made.graph(100)
    method = fitted(graph)
    content = method.save(tmp_path).read_bytes()
    for name, secret in secrets(graph, {"edges": method.published.edge_index[1]}, method).items():
        assert secret not in content, name
