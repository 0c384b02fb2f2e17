"""Degree-preserving randomized response: exhaustive audits on three users, the clamp, the degrees it keeps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from graphveil.errors import InputError
from graphveil.mechanisms import AdjacencyRR, DegreePreservingReports, DegreePreservingRR, DegreeReports
from graphveil.privacy import SecureRandomness, SeededRandomness
from tests.mechanisms import conformance, tiny_graphs
from tests.mechanisms.tiny_graphs import MODES, NODES


def build(epsilon: float, mode: str, share: float = 0.5) -> DegreePreservingRR:
    return DegreePreservingRR(epsilon=epsilon, nodes=NODES, mode=mode, degree_share=share)


def outputs(mechanism: DegreePreservingRR) -> list[DegreePreservingReports]:
    """Every level with every list: output k of user v is the level and the v-th user's k-th list."""
    lowest, highest = mechanism.degree.ends
    lists = [tiny_graphs.lists_of(user, mechanism.mode) for user in range(NODES)]
    reports = []
    for level in range(lowest, highest + 1):
        degrees = DegreeReports(torch.full((NODES,), level, dtype=torch.int32))
        for k in range(max(map(len, lists))):
            sent = tiny_graphs.reports_of([own[k % len(own)] for own in lists])
            reports.append(DegreePreservingReports(degrees, sent))
    return reports


def table(mechanism: DegreePreservingRR) -> np.ndarray[Any, Any]:
    """log Pr of all that can be sent: [graphs, outputs, users].

    Nobody ever names anybody after a noisy degree of 0 or less, whatever the graph is: no output tells for certain.
    """
    return tiny_graphs.log_table(mechanism, tiny_graphs.all_graphs(mechanism.mode), outputs(mechanism))


@pytest.mark.parametrize("mode", MODES)
def test_audit_accepts_the_stated_epsilon_and_it_is_tight(mode: str) -> None:
    """All graphs that differ in one relationship, all levels with all lists."""
    mechanism = build(8.0, mode)
    ratio = tiny_graphs.worst_of_independent(table(mechanism))
    assert mechanism.guarantee.epsilon == (16.0 if mode == "both" else 8.0)
    assert tiny_graphs.is_private(ratio, mechanism.guarantee.epsilon)
    assert ratio > 0.999 * mechanism.guarantee.epsilon


def test_probabilities_sum_to_one() -> None:
    """Of each user in "both", whose lists all have the same length."""
    mechanism = build(8.0, "both")
    assert np.allclose(np.exp(table(mechanism)).sum(1), 1.0, atol=1e-12)


@pytest.mark.parametrize("mode", ["both", pytest.param("directed", marks=pytest.mark.slow)])
def test_sampler_follows_likelihood(mode: str) -> None:
    """Of every user (chi-square on 500 collections, false-alarm rate 1e-6), and not another graph's law."""
    mechanism, graph = build(3.0, mode), tiny_graphs.edge_index([(0, 1), (1, 2)], mode)
    counts = np.zeros((NODES, len(outputs(mechanism))))
    lists = [{named: k for k, named in enumerate(tiny_graphs.lists_of(user, mode))} for user in range(NODES)]
    lowest, randomness = mechanism.degree.ends[0], SeededRandomness(1)
    for _ in range(500):
        sent = mechanism.randomize(graph, randomness=randomness)
        parts = torch.split(sent.edges.columns, sent.edges.starts.diff().tolist())
        for user, (level, named) in enumerate(zip(sent.degrees.levels.tolist(), parts, strict=True)):
            counts[user, (level - lowest) * 4 + lists[user][tuple(named.tolist())]] += 1
    laws = tiny_graphs.log_table(mechanism, [graph], outputs(mechanism))[0].T
    for user in range(NODES):
        assert conformance.fits(counts[user], laws[user]) > conformance.FALSE_ALARM
    empty = tiny_graphs.log_table(mechanism, [graph[:, :0]], outputs(mechanism))[0].T
    assert conformance.fits(counts[0], empty[0]) < conformance.FALSE_ALARM


def test_users_with_a_negative_noisy_degree_name_nobody() -> None:
    nodes = 3000
    ring = torch.stack([torch.arange(0, nodes, 2), torch.arange(1, nodes, 2)])
    graph = torch.cat([ring, ring.flip(0)], dim=1)
    mechanism = DegreePreservingRR(epsilon=8.0, nodes=nodes, mode="both")
    sent = mechanism.randomize(graph, randomness=SeededRandomness(1))
    negative = sent.degrees.levels <= 0
    assert int(negative.sum()) > 100
    assert int(sent.edges.starts.diff()[negative].sum()) == 0


def test_very_large_and_small_epsilon_and_the_price_of_the_lists() -> None:
    graph = tiny_graphs.edge_index([(0, 1), (1, 2)], "both")
    for epsilon in (1e-3, 100.0, 1e300):
        mechanism = build(epsilon, "both")
        sent = mechanism.randomize(graph, randomness=SecureRandomness())
        assert epsilon < 1 or torch.equal(sent.to_edge_index(), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
        assert bool(torch.isfinite(mechanism.log_likelihood(sent, graph)).all())
    mechanism = DegreePreservingRR(epsilon=1.0, nodes=NODES)
    assert (mechanism.degree.epsilon, mechanism._flips.epsilon) == pytest.approx((0.1, 0.9))
    assert mechanism.warning is None
    assert "epsilon 2.7 for the lists" in str(DegreePreservingRR(epsilon=3.0, nodes=100_000).warning)


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, math.nan, "0.1", None, True])
def test_bad_shares_are_refused(share: float) -> None:
    with pytest.raises(InputError, match="degree_share"):
        DegreePreservingRR(epsilon=1.0, nodes=NODES, degree_share=share)


def test_thinning_afterwards_has_the_law_of_the_devices() -> None:
    """Of each noisy degree d in 300 lists the share d / (d (1 - 2 f) + (n - 1) f) is named, within 6 deviations."""
    users, noise = 300, SeededRandomness(2)
    mechanism = DegreePreservingRR(epsilon=4.0, nodes=users, mode="both", degree_share=0.25)
    flips = AdjacencyRR(epsilon=3.0, nodes=users, mode="both")
    levels = torch.arange(users, dtype=torch.int32) % 60 - 10
    whole = flips.randomize(torch.zeros(2, 0, dtype=torch.int64), randomness=noise)
    sent = mechanism.thinned(DegreeReports(levels), whole, randomness=noise).edges
    long, thinned = whole.starts.diff().numpy(), sent.starts.diff().numpy()
    degree = np.maximum(levels.numpy(), 0)
    share = degree / (degree * (1 - 2 * flips.flip) + (users - 1) * flips.flip)
    deviation = math.sqrt((long * share * (1 - share)).sum())
    assert abs((thinned - long * share).sum()) < 6 * deviation < 0.1 * thinned.sum()
    assert not thinned[degree == 0].any()
    assert np.corrcoef(thinned, long * share)[0, 1] > 0.8


def test_nothing_is_added_to_a_list() -> None:
    """A thinned list is part of the whole one, and possible under the exact law."""
    noise, path = SeededRandomness(1), torch.stack([torch.arange(11), torch.arange(1, 12)])
    edges = torch.cat([path, path.flip(0)], dim=1)
    mechanism = DegreePreservingRR(epsilon=2.0, nodes=12, mode="both", degree_share=0.25)
    degrees = mechanism.degree.randomize(mechanism.degree.count(edges), randomness=noise)
    whole = AdjacencyRR(epsilon=1.5, nodes=12, mode="both").randomize(edges, randomness=noise)
    thinned = mechanism.thinned(degrees, whole, randomness=noise)
    assert torch.equal(thinned.degrees.levels, degrees.levels)
    listed = [set(map(tuple, sent.to_edge_index().T.tolist())) for sent in (thinned, whole)]
    assert listed[0] <= listed[1] and bool(mechanism.log_likelihood(thinned, edges).isfinite().all())
