"""Lists of some: of a pair only the ends that answered count, and nobody's silence is a no."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.mechanisms import AdjacencyRR
from graphveil.methods.links.collection import LinkReports, pairs_of, randomize_graph, reported_edges
from graphveil.methods.links.solitude import SolitudeCore
from graphveil.privacy import SeededRandomness
from tests.methods import made

NODES = 40
MODES = ("lower", "both", "directed")


def edges(mode: str, seed: int = 0) -> Tensor:
    pairs = torch.from_numpy(np.random.default_rng(seed).integers(0, NODES, (2, 120)))
    pairs = pairs[:, pairs[0] != pairs[1]]
    both = pairs if mode == "directed" else torch.cat([pairs, pairs.flip(0)], dim=1)
    return torch.unique(both, dim=1)


def who(seed: int = 1, share: float = 0.6) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).random(NODES) < share)


def log_ratios(pairs: Any) -> dict[tuple[int, int], float]:
    """log L of every pair, named or not."""
    ends = ((i, j) for i in range(NODES) for j in range(NODES) if i != j and (pairs.directed or i < j))
    found = dict.fromkeys(ends, pairs.background)
    named = zip(pairs.source.tolist(), pairs.target.tolist(), pairs.log_ratio.tolist(), strict=True)
    listed = [((i, j), ratio) for i, j, ratio in named]
    assert len(dict(listed)) == len(listed), "a pair is named twice"
    return {**found, **dict(listed)}


@pytest.mark.parametrize("mode", MODES)
def test_every_pair_is_worth_what_its_heard_ends_said(mode: str) -> None:
    mechanism, heard = AdjacencyRR(epsilon=1.5, nodes=NODES, mode=mode), who()
    sent = mechanism.randomize(edges(mode), randomness=SeededRandomness(3))
    said = set(map(tuple, sent.to_edge_index().T.tolist()))
    worth = math.log((1 - mechanism.flip) / mechanism.flip)
    for (i, j), found in log_ratios(pairs_of(mechanism, sent, heard)).items():
        asked = [(i, j), (j, i)] if mode == "both" else [(i, j)]
        expected = sum(worth * (1 if pair in said else -1) for pair in asked if heard[pair[0]])
        assert found == pytest.approx(expected, abs=1e-9)


def partly(core: SolitudeCore, every: int) -> LinkReports:
    """The reports of a graph of which every k-th person sent no list; what stands in its place is never read."""
    graph = made.graph()
    released = randomize_graph(graph, made.split_of(graph), core.privacy, core.links, randomness=SeededRandomness(2))
    return replace(released, heard=torch.arange(int(graph.num_nodes)) % every > 0)


@pytest.mark.parametrize("mode", ["lower", "both"])
@pytest.mark.parametrize(
    "denoiser", ["calibration", "none", "beliefs", "degree-preserving", "blink-hybrid", "blink-soft"]
)
def test_solitude_takes_silence_for_no_evidence(denoiser: str, mode: str) -> None:
    core = SolitudeCore(epsilon_x=2.0, epsilon_y=2.0, epsilon_a=8.0, mode=mode, denoiser=denoiser, epochs=3)
    some = partly(core, 3)
    found = core.fit_reports(some).probabilities()
    assert found.shape[0] == some.nodes and bool(torch.isfinite(found).all())


@pytest.mark.parametrize("mode", ["lower", "both"])
def test_a_pair_is_read_from_the_end_that_answered(mode: str) -> None:
    core = SolitudeCore(epsilon_x=2.0, epsilon_y=2.0, epsilon_a=8.0, mode=mode)
    some = partly(core, 4)
    edges, heard = reported_edges(some), some.heard
    assert heard is not None
    named = set(map(tuple, some.lists["lists"].to_edge_index().T.tolist()))
    silent = [int(one) for one in (~heard).nonzero().flatten()]
    for person in silent:
        # Messages into them come from those who named them, and from nobody else.
        into = edges[0][edges[1] == person].tolist()
        assert sorted(into) == sorted(other for other in range(some.nodes) if heard[other] and (other, person) in named)
    whole = replace(some, heard=None)
    assert torch.equal(reported_edges(whole), reported_edges(replace(some, heard=torch.ones_like(heard))))


def test_no_link_is_learned_from_silence() -> None:
    core = SolitudeCore(epsilon_x=2.0, epsilon_y=2.0, epsilon_a=8.0, complement=5)
    with pytest.raises(InputError, match="complement where some people sent no list"):
        core.fit_reports(partly(core, 3))
