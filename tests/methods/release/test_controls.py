"""Controls of released graphs, what is refused of them, and statistics of their structure."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from graphveil.errors import InputError
from graphveil.methods import LPGNN, HeteroRR, LabelPropagation
from graphveil.methods.registry import METHODS, build_method, require_trainable
from graphveil.methods.release.controls import random_in_place, release_controls_of, release_notes
from graphveil.methods.release.structure import (
    WEDGES,
    Structure,
    block_distance,
    degree_distance,
    kept_structure,
    overlap,
    pairs_of,
    preserved,
    structure_of,
    with_statistics,
)
from graphveil.methods.runs import experiment
from graphveil.methods.runs.search import Search
from graphveil.privacy import SecureRandomness, SeededRandomness
from tests.methods import made, released_made

OPEN = {"epsilon_x": math.inf, "epsilon_y": math.inf}


def released(**settings: Any) -> Any:
    method = HeteroRR(**{"epsilon_x": 2.0, "epsilon_a": 3.0, **settings})
    return method.release(released_made.graph(), randomness=SeededRandomness(1))


def trained(graph: Any, **settings: Any) -> LPGNN:
    method = LPGNN(**{**OPEN, **settings}, **released_made.QUICK)
    return method.fit(graph, split=made.split_of(graph), randomness=SeededRandomness(1))


def test_a_network_on_a_release_has_its_guarantee_and_ledger() -> None:
    graph = released(epsilon_y=1.0)
    for settings in ({}, {"epsilon_x": 1.0}, {"epsilon_y": 1.0}):
        method = trained(graph, **settings)
        assert method.guarantee == graph.release.guarantee
        assert method.ledger == graph.release.ledger
        twice = "protects nothing more" in " ".join(release_notes(method, graph))
        assert twice == bool(settings)


def test_the_channel_of_the_release_is_inverted_and_two_channels_are_one(tmp_path: Any) -> None:
    graph = released(epsilon_y=1.0)
    once, twice = trained(graph).released, trained(graph, epsilon_y=2.0).released
    keep, flip = graph.release.keep, graph.release.flip
    assert (once.channel.keep, once.channel.flip) == pytest.approx((keep, flip))
    second = math.exp(2) / (math.exp(2) + 2)
    both = keep * second + 2 * flip * (1 - second) / 2
    assert (twice.channel.keep, twice.channel.flip) == pytest.approx((both, (1 - both) / 2))
    loaded = LPGNN.load(trained(graph).save(tmp_path))
    assert loaded.guarantee == graph.release.guarantee
    assert loaded.ledger == graph.release.ledger
    labels = LabelPropagation(epsilon_y=math.inf).fit(graph, randomness=SeededRandomness(1))
    assert LabelPropagation.load(labels.save(tmp_path / "labels")).guarantee == graph.release.guarantee


@pytest.mark.slow  # trainings
@pytest.mark.parametrize("epsilon_y", [math.inf, 1.0])
def test_controls_read_the_release_and_test_labels_alone(epsilon_y: float) -> None:
    graph = released_made.graph()
    split = made.split_of(graph)
    method = HeteroRR(epsilon_x=2.0, epsilon_a=3.0, epsilon_y=epsilon_y, **released_made.QUICK)
    method.fit(graph, split=split, randomness=SeededRandomness(1))
    open_, sealed = (release_controls_of(method, g, split) for g in (graph, made.Sealed(graph, split.test)))
    names = {"public-edges", "random-edges", "public-only", "no-edges", "random-features", "label-propagation"}
    names |= {"majority", "label-pool", "public-part"}
    assert set(open_) == set(sealed) == names
    for control in names:
        own = open_[control]()
        assert np.array_equal(own, sealed[control]()), control
        if control == "public-only" and epsilon_y < math.inf:
            assert own.tolist() == [1 / 3] * int(split.test.sum())


def test_random_edges_are_as_many_and_lie_in_the_protected_pairs() -> None:
    graph = released()
    edge_index = random_in_place(graph, seed=3)
    assert edge_index.shape == graph.edge_index.shape
    count = torch.unique(edge_index[0] * made.NODES + edge_index[1]).numel()
    assert count == edge_index.shape[1]
    public = graph.edge_index[:, graph.public_edges]
    keys = {tuple(pair) for pair in edge_index.T.tolist()}
    assert {tuple(pair) for pair in public.T.tolist()} <= keys
    assert not torch.equal(edge_index, random_in_place(graph, seed=4))


@pytest.mark.parametrize("name", ["gap", "solitude", "edge-rand"])
def test_what_would_protect_again_or_did_not_publish_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"is a release(:| of heterorr, which) {name} (would protect|did not)"):
        experiment.run(name, released(), settings={}, randomness=SecureRandomness())
    for served in ("gcn", "heterorr"):
        require_trainable(METHODS[served], released())


@pytest.mark.parametrize("name", ["links", "solitude", "class-sums", "node-sums", "dp-mlp"])
def test_a_class_protects_no_release_again_either(name: str) -> None:
    """Its guarantee would be of the release's numbers, and tell neither the release's price nor that it is void."""
    method = build_method(name, {}, classes=3)
    with pytest.raises(InputError, match=f"the graph is a release: {name} would protect data that is already public"):
        method.fit(released())
    assert method.ledger.spends == ()
    again = HeteroRR(epsilon_x=1.0, epsilon_a=1.0)
    with pytest.raises(InputError, match="the graph is a release: heterorr would protect"):
        again.release(released(), randomness=SecureRandomness())


def test_what_a_release_keeps_is_public_and_its_distance_to_the_truth_is_not() -> None:
    graph, out = released_made.graph(), released(edges="edge-rand", epsilon_a=30.0)
    compared = kept_structure(graph, out)
    assert compared.curator["overlap"]["common"] == compared.curator["overlap"]["true"]
    assert compared.curator["distance_of_released"]["edges"] == 0
    statistics = with_statistics(out, compared).release.statistics
    assert statistics["released"]["edges"] == pairs_of(out, public=True).shape[1] + pairs_of(out, public=False).shape[1]
    assert "truth" not in statistics and "overlap" not in statistics
    assert kept_structure(graph, released(epsilon_a=math.inf)) is None


def test_settings_are_chosen_on_one_release() -> None:
    search = Search({"hidden": (2, 4), "steps_x": (1, 2)})
    run = {"randomness": SecureRandomness(), "controls": False, "search": search}
    result = experiment.run("heterorr", released_made.graph(), settings={"epochs": 2}, **run)
    assert result.privacy.ledger.total("edges")[0] == 1.0
    assert result.privacy.ledger.total("features")[0] == 1.0
    assert "4 trials: this costs no privacy" in result.notes[0]
    with pytest.raises(InputError, match="edges must be fixed before people report"):
        Search({"edges": ("mcmc",)}).require("heterorr", {})


# ---- structure statistics, against counting by hand ----


NODES = 40


def drawn(seed: int, share: float = 0.3, nodes: int = NODES) -> Tensor:
    """A random graph with more triangles than chance: nodes near one another on a ring are joined more often."""
    generator = np.random.default_rng(seed)
    left, right = np.triu_indices(nodes, 1)
    near = np.minimum(right - left, nodes - (right - left)) < nodes // 6
    return torch.from_numpy(np.stack([left, right])[:, generator.random(len(left)) < share * np.where(near, 2, 0.3)])


def matrix(pairs: Tensor, nodes: int = NODES) -> np.ndarray:
    """The dense adjacency matrix."""
    full = np.zeros((nodes, nodes), dtype=np.int64)
    full[pairs[0], pairs[1]] = 1
    return full + full.T


def structure(pairs: Tensor, **options: object) -> Structure:
    return structure_of(pairs, NODES, **options)  # type: ignore[arg-type]


def test_counts_are_those_of_the_dense_matrix() -> None:
    pairs = drawn(0)
    full = matrix(pairs)
    labels = torch.from_numpy(np.random.default_rng(1).integers(-1, 3, NODES))
    counted = structure(pairs, labels=labels, groups={"class": labels})
    assert counted.edges == full.sum() // 2
    assert np.array_equal(counted.degrees, np.sort(full.sum(axis=0)))
    labelled = [(u, v) for u, v in pairs.T.tolist() if labels[u] >= 0 and labels[v] >= 0]
    assert counted.homophily == pytest.approx(np.mean([bool(labels[u] == labels[v]) for u, v in labelled]))
    for a, b in itertools.product(range(3), repeat=2):
        ours, theirs = labels.numpy() == a, labels.numpy() == b
        edges = full[ours][:, theirs].sum() // (2 if a == b else 1)
        possible = ours.sum() * (ours.sum() - 1) // 2 if a == b else ours.sum() * theirs.sum()
        assert counted.blocks["class"][a, b] == edges
        assert counted.pairs["class"][a, b] == possible
        assert counted.densities("class")[a, b] == pytest.approx(edges / possible)


def test_clustering_is_the_share_of_closed_wedges() -> None:
    """Five standard errors: a false alarm in two million.  The mean of the local coefficients is another number."""
    star = torch.stack([torch.zeros(NODES - 1, dtype=torch.int64), torch.arange(1, NODES)])
    pairs = torch.unique(torch.cat([drawn(4), star], dim=1), dim=1)
    full = matrix(pairs)
    wedges = full.sum(axis=0) * (full.sum(axis=0) - 1)
    closed = np.diag(full @ full @ full)
    exact, other = closed.sum() / wedges.sum(), float((closed[wedges > 0] / wedges[wedges > 0]).mean())
    error = 5 * np.sqrt(exact * (1 - exact) / WEDGES)
    clustering = structure(pairs).clustering
    assert abs(clustering - exact) < error
    assert abs(other - exact) > error


def test_distances_are_zero_to_oneself_and_whole_to_nothing_in_common() -> None:
    group = torch.arange(NODES) % 2
    inside = structure(torch.tensor([[0, 2], [2, 4]]), groups={"side": group})
    across = structure(torch.tensor([[0, 2], [1, 3]]), groups={"side": group})
    assert degree_distance(inside, inside) == 0 == block_distance(inside, inside, "side")
    assert block_distance(inside, across, "side") == 1
    assert degree_distance(inside, across) == pytest.approx(1 / NODES)  # one node of degree 2, three touched not four


@pytest.mark.parametrize("bad", [[[1], [1]], [[2], [1]], [[0], [NODES]], [[-1], [3]]])
def test_pairs_of_another_form_are_refused(bad: list[list[int]]) -> None:
    with pytest.raises(InputError, match="u < v"):
        structure(torch.tensor(bad))


def test_chance_is_what_uniform_pairs_hit() -> None:
    """Of 60 pairs drawn out of all, 120 of which are true: the hypergeometric law, whose ends hold 95% or more."""
    everything = torch.from_numpy(np.stack(np.triu_indices(NODES, 1)))
    every, true = everything.shape[1], everything[:, np.random.default_rng(5).permutation(780)[:120]]
    counted, law = overlap(everything[:, :60], true, every), stats.hypergeom(every, 120, 60)
    assert counted.chance == pytest.approx(law.mean())
    assert law.cdf(counted.high) - law.cdf(counted.low - 1) >= 0.95 > law.cdf(counted.high - 1) - law.cdf(counted.low)
    with pytest.raises(InputError, match="at most the 50 protected"):
        overlap(everything[:, :60], true, 50)


def test_what_may_be_published_does_not_know_the_truth() -> None:
    labels = torch.arange(NODES) % 3
    everything = drawn(6)
    public, true, other = everything[:, ::3], everything[:, 1::3], everything[:, 2::3]
    synthetic = torch.tensor([[0, 1], [39, 38]])
    size = NODES * (NODES - 1) // 2 - public.shape[1]
    first, second = (
        preserved(NODES, public, synthetic, true=some, protected=size, labels=labels) for some in (true, other)
    )
    blind = preserved(NODES, public, synthetic, labels=labels)
    assert first.public() == second.public() == blind.public()
    assert first.curator() != second.curator()
    assert "not for release" in first.curator()["warning"]
    assert first.curator()["distance_of_synthetic_to_private_edges"]["blocks by class"] > 0
    with pytest.raises(InputError, match="true edges are not here"):
        blind.curator()
