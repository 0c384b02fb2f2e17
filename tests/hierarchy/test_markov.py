"""One tree leaves the private chain; public chains read public edges only, and their traces are compared."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from graphveil.errors import InputError
from graphveil.hierarchy import (
    ASYMPTOTIC,
    Dendrogram,
    MarkovFit,
    balanced_dendrogram,
    count_edges,
    fit_markov,
    likelihood_sensitivity,
    log_likelihood,
    private_weight,
    split_rhat,
)
from graphveil.privacy import SecureRandomness, SeededRandomness
from graphveil.runtime.progress import Progress
from tests.hierarchy.trees import below
from tests.methods.made import Counted

NONE = np.zeros((2, 0), np.int64)
NODES = 40


def blocks(seed: int, density: float = 0.8) -> npt.NDArray[np.int64]:
    """Edges inside four groups of ten, hardly any between."""
    rng = np.random.default_rng(seed)
    source, other = np.triu_indices(NODES, 1)
    chance = np.where(source // 10 == other // 10, density, 0.02)
    return np.stack([source, other])[:, rng.random(len(source)) < chance]


def halves(seed: int = 0) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Public and private edges of blocks."""
    edges = blocks(seed)
    private = np.random.default_rng(seed + 1).random(edges.shape[1]) < 0.4
    return edges[:, ~private], edges[:, private]


def fit(public: Any = None, private: Any = None, **changed: Any) -> MarkovFit:
    edges = halves()
    settings: dict[str, Any] = {"epsilon": 1.0, "steps": 4000, "chains": 1, "randomness": SeededRandomness(3)}
    members = changed.pop("members", None)
    nodes = changed.pop("nodes", NODES)
    public, private = edges[0] if public is None else public, edges[1] if private is None else private
    return fit_markov(nodes, members, public, private, **{**settings, **changed})


def likelihood(tree: Dendrogram, edges: npt.NDArray[np.int64]) -> float:
    """L of a tree among all nodes."""
    sizes = np.array([len(below(tree, node)) for node in range(tree.nodes)])
    return log_likelihood(count_edges(tree, edges), sizes[tree.left] * sizes[tree.right])


def test_public_chains_see_no_private_edge() -> None:
    """Formal guarantee: with the noise the same, other private edges change no trace, not in its last bit."""
    public = halves()[0]
    allowed = np.stack(np.triu_indices(NODES, 1))
    free = allowed[:, ~(allowed[:, None, :] == public[:, :, None]).all(0).any(0)]
    some = [fit(private=private, chains=3, epsilon=50.0) for private in (free[:, :1], free[:, ::2], NONE)]
    assert some[0].public_traces.shape == (2, 256)
    for other in some[1:]:
        np.testing.assert_array_equal(other.public_traces, some[0].public_traces)
    assert not np.array_equal(some[0].dendrogram.left, some[1].dendrogram.left)


def test_the_number_of_coins_is_public() -> None:
    """Formal guarantee: the same count and order of draws whatever the private edges are."""
    draws = []
    for private in (halves()[1], NONE, halves()[1][:, ::3]):
        randomness = Counted(1)
        fit(private=private, chains=2, epsilon=5.0, steps=70_000, randomness=randomness)
        draws.append(randomness.counts)
    assert draws[0] == draws[1] == draws[2]
    assert sum(draws[0]) == 2 * (NODES + 2 * 70_000)


def test_the_tree_is_the_first_chains_and_without_epsilon_private_edges_have_no_say() -> None:
    single, three = fit(chains=1), fit(chains=3)
    np.testing.assert_array_equal(single.dendrogram.left, three.dendrogram.left)
    np.testing.assert_array_equal(single.dendrogram.right, three.dendrogram.right)
    assert single.public_traces.shape == (0, 256)
    assert single.assumes == (ASYMPTOTIC,) and "no finite-time guarantee" in ASYMPTOTIC.sentence
    assert math.isnan(single.public_rhat)
    with_edges, without = fit(epsilon=0.0), fit(epsilon=0.0, private=NONE)
    assert with_edges.weight == 0.0
    np.testing.assert_array_equal(with_edges.dendrogram.left, without.dendrogram.left)


def test_weight_is_half_of_epsilon_over_delta_of_the_declared_nodes() -> None:
    assert fit(epsilon=3.0).weight == pytest.approx(1.5 / likelihood_sensitivity(NODES))
    assert [private_weight(1.0, members) for members in (0, 1, 2)] == [0.0] * 3, "too few for a tree to tell"
    few = np.arange(10)
    private = halves()[1]
    inside = private[:, (private < 10).all(0)]
    assert fit(epsilon=3.0, members=few, private=inside).weight == pytest.approx(1.5 / likelihood_sensitivity(10))


def test_public_blocks_are_found_by_all_chains_and_private_ones_as_far_as_epsilon_lets_them() -> None:
    fitted, public = fit(steps=60_000, chains=4), halves()[0]
    assert likelihood(fitted.dendrogram, public) > likelihood(fit(steps=1).dendrogram, public) + 100
    assert fitted.public_traces[:, -1].min() > likelihood(balanced_dendrogram(np.arange(NODES)), public)
    assert fitted.public_rhat < 1.2 and fit(steps=256, chains=4).public_rhat > fitted.public_rhat + 0.2
    edges = blocks(0)  # privHRG: no public edge at all, so nothing to diagnose either
    trees = [fit(NONE, edges, epsilon=epsilon, steps=40_000).dendrogram for epsilon in (0.01, 6.0)]
    assert likelihood(trees[0], edges) + 150 < likelihood(trees[1], edges)
    assert math.isnan(fit(NONE, edges, chains=3).public_rhat)


def test_the_given_first_tree_is_where_it_starts() -> None:
    start = balanced_dendrogram(np.arange(NODES))
    traces = [fit(start=start, chains=3, steps=256, randomness=SeededRandomness(seed)).public_traces for seed in (1, 2)]
    for trace in traces:
        assert trace[0, 0] > trace[1, 0] + 50, "the second public chain starts at a random tree"
    with pytest.raises(InputError, match="a first tree over 39 leaves; allowed: 40 leaves"):
        fit(start=balanced_dendrogram(np.arange(39)))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"epsilon": -1.0}, "epsilon is -1.0"),
        ({"epsilon": math.inf}, "epsilon is inf"),
        ({"steps": 0}, "steps is 0"),
        ({"chains": 0}, "chains is 0"),
        ({"nodes": 0}, "nodes is 0"),
        ({"nodes": 20}, "not a pair of nodes"),
        ({"members": [0, 0]}, "twice"),
        ({"members": [40]}, "not a list of nodes"),
        ({"members": np.arange(20)}, "a private edge ends outside the declared private nodes"),
        ({"private": np.array([[3, 4], [4, 3]])}, "an edge is listed twice"),
        ({"public": np.array([[3, 3], [4, 4]]), "private": NONE}, "an edge is listed twice"),
        ({"public": np.array([[3], [4]]), "private": np.array([[4], [3]])}, "an edge is listed twice"),
    ],
)
def test_what_is_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        fit(**changed)


def test_progress_comes_in_fixed_steps() -> None:
    seen: list[Progress] = []
    fit(steps=100_000, chains=2, progress=seen.append)
    assert [event.done for event in seen[:2]] == [65_536, 100_000]
    assert seen[-1] == Progress(100_000, 100_000, "Markov chain: public chain 1 of 1")


@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_the_smallest_graphs_have_trees_too(nodes: int) -> None:
    private = np.array([[0], [1]]) if nodes > 1 else NONE
    assert fit(NONE, private, nodes=nodes, chains=2, randomness=SecureRandomness()).dendrogram.leaves == nodes


def test_split_rhat_by_hand_of_constant_traces_and_of_chains_apart_or_adrift() -> None:
    """Halves (0, 2), (1, 3): within 2, between 2 * 0.5 = 1; sqrt(1/2 + 1/2/2)."""
    assert split_rhat([[0.0, 2.0, 1.0, 3.0]]) == pytest.approx(math.sqrt(0.75))
    assert math.isnan(split_rhat(np.zeros((3, 10))))
    assert split_rhat(np.repeat([[0.0], [1.0]], 10, axis=1)) == math.inf
    draws = np.random.default_rng(0).normal(size=(4, 1000))
    assert split_rhat(draws) == pytest.approx(1.0, abs=0.01)
    assert split_rhat(draws[:1] + np.linspace(0, 2, 1000)) > 1.1


@pytest.mark.parametrize("traces", [np.zeros(8), np.zeros((2, 3)), np.zeros((0, 8)), np.full((2, 8), np.nan)])
def test_what_is_no_trace_is_refused(traces: np.ndarray) -> None:
    with pytest.raises(InputError, match="traces of shape"):
        split_rhat(traces)
