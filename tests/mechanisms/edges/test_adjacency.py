"""Randomized response on neighbour lists: exhaustive audits on all graphs of three users, and what is concluded."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest
import torch

from graphveil.errors import InputError
from graphveil.mechanisms import AdjacencyRR, DegreePreservingRR, NoisyDegree
from graphveil.privacy import SecureRandomness, SeededRandomness
from graphveil.privacy.statement.unit import DIRECTED_LINK, LIST_ENTRY, RELATIONSHIP
from tests.mechanisms import tiny_graphs
from tests.mechanisms.tiny_graphs import MODES, NODES

PRICES = {"lower": 1, "both": 2, "directed": 1}


def build(epsilon: float, mode: str) -> AdjacencyRR:
    return AdjacencyRR(epsilon=epsilon, nodes=NODES, mode=mode)


@functools.cache
def table(epsilon: float, mode: str) -> np.ndarray[Any, Any]:
    """log Pr[report | graph] of every user, of all graphs and all reports: [graphs, reports, users]."""
    return tiny_graphs.log_table(build(epsilon, mode), tiny_graphs.all_graphs(mode), tiny_graphs.all_reports(mode))


@pytest.mark.parametrize("kind", [AdjacencyRR, DegreePreservingRR, NoisyDegree])
@pytest.mark.parametrize("mode", MODES)
def test_item_1_unit_and_relation_are_declared(kind: type[Any], mode: str) -> None:
    """Checklist item 1. An undirected relationship in two lists costs twice."""
    guarantee = kind(epsilon=1.5, nodes=NODES, mode=mode).guarantee
    assert guarantee.unit == (DIRECTED_LINK if mode == "directed" else RELATIONSHIP)
    assert (guarantee.relation, guarantee.model, guarantee.delta) == ("add/remove", "local", 0.0)
    assert guarantee.epsilon == 1.5 * PRICES[mode]
    assert guarantee.assumption("users-public")
    assert guarantee.assumption("reports-once")


@pytest.mark.parametrize("mode", MODES)
def test_audit_accepts_the_stated_epsilon_and_rejects_half_the_flips(mode: str) -> None:
    """All graphs that differ in one relationship, all reports; two reports at the price of one are found as well."""
    ratios = {epsilon: tiny_graphs.worst_ratio(table(epsilon, mode).sum(2)) for epsilon in (1.0, 2.0)}
    for epsilon, ratio in ratios.items():
        claimed = build(epsilon, mode).guarantee.epsilon
        assert claimed == PRICES[mode] * epsilon
        assert tiny_graphs.is_private(ratio, claimed) and ratio >= 0.999999 * claimed
    assert not tiny_graphs.is_private(ratios[2.0], build(1.0, mode).guarantee.epsilon)
    if mode == "both":
        assert not tiny_graphs.is_private(ratios[1.0], build(1.0, "lower").guarantee.epsilon)
    # No single user's report changes by more than one bit costs, whichever relationship comes or goes.
    logs, bit = table(1.0, mode), build(1.0, mode).bit_guarantee
    assert np.allclose(np.exp(logs.sum(2)).sum(1), 1.0, atol=1e-12) and (bit.epsilon, bit.unit) == (1.0, LIST_ENTRY)
    assert max(tiny_graphs.worst_ratio(logs[:, :, user]) for user in range(NODES)) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("mode", MODES)
def test_evidence_is_the_ratio_of_likelihoods(mode: str) -> None:
    """Of every pair in every output: with the pair against without it, whatever the rest of the graph is."""
    mechanism, units, law = build(1.0, mode), tiny_graphs.units(mode), table(1.0, mode).sum(2)
    for place, sent in enumerate(tiny_graphs.all_reports(mode)):
        evidence = mechanism.evidence(sent)
        named = list(zip(evidence.source.tolist(), evidence.target.tolist(), strict=True))
        assert named == sorted(set(named))
        ratios = dict(zip(named, evidence.log_ratio.tolist(), strict=True))
        for g, h in tiny_graphs.neighbouring(len(law)):
            pair = units[(g ^ h).bit_length() - 1]
            assert law[g, place] - law[h, place] == pytest.approx(ratios.get(pair, evidence.background), abs=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_estimate_is_unbiased_with_the_closed_form_variance(mode: str) -> None:
    """Exactly: summed over every output with its probability, for every graph."""
    mechanism, outputs = build(1.0, mode), tiny_graphs.all_reports(mode)
    off_diagonal = ~np.eye(NODES, dtype=bool)
    estimates = []
    for sent in outputs:
        estimate = mechanism.estimate(sent)
        estimates.append((estimate.centred.toarray() + estimate.background)[off_diagonal])
    for graph, chances in zip(tiny_graphs.all_graphs(mode), np.exp(table(1.0, mode).sum(2)), strict=True):
        truth = np.zeros((NODES, NODES))
        truth[graph[0], graph[1]] = 1.0
        mean = chances @ np.array(estimates)
        assert np.allclose(mean, truth[off_diagonal], atol=1e-12)
        assert np.allclose(chances @ (np.array(estimates) - mean) ** 2, mechanism.variance, rtol=1e-10)


def test_guarantees_say_who_reports_and_warnings_how_much_is_false() -> None:
    assert "the one with the lower id reports, which is public" in build(1.0, "lower").guarantee.sentence()
    assert "both ends of a relationship report it, at epsilon 1 each" in build(1.0, "both").guarantee.sentence()
    quiet, loud = (AdjacencyRR(epsilon=epsilon, nodes=100_000) for epsilon in (12.0, 2.0))
    assert quiet.expected_false == pytest.approx(100_000 * 99_999 / 2 / (math.exp(12) + 1))
    assert quiet.expected_bytes == pytest.approx(8 * 100_001 + 4 * quiet.expected_false)
    assert quiet.warning is None and "596,0" in str(loud.warning)


@pytest.mark.parametrize("mode", MODES)
def test_very_large_and_small_epsilon_and_graphs_with_hardly_any_pair(mode: str) -> None:
    graph = tiny_graphs.edge_index([(0, 1), (1, 2)], "both")
    for epsilon, evidence in ((1e-12, 1e-12), (50.0, 64 * math.log(2)), (1e300, 64 * math.log(2))):
        mechanism = build(epsilon, mode)
        sent = mechanism.randomize(graph, randomness=SecureRandomness())
        assert epsilon < 1 or torch.equal(mechanism.collected(sent), graph[:, torch.tensor([0, 1, 2, 3])])
        assert bool(torch.isfinite(mechanism.log_likelihood(sent, graph)).all())
        assert mechanism.evidence(sent).background == pytest.approx(-PRICES[mode] * evidence, rel=1e-5)
    for nodes in (1, 2):
        mechanism, empty = AdjacencyRR(epsilon=0.1, nodes=nodes, mode=mode), torch.zeros(2, 0, dtype=torch.int64)
        sent = mechanism.randomize(empty, randomness=SeededRandomness(1))
        assert len(sent) == len(mechanism.log_likelihood(sent, empty)) == nodes
        assert mechanism.evidence(sent).pairs == (nodes - 1) * (2 if mode == "directed" else 1)


@pytest.mark.parametrize("kind", [AdjacencyRR, DegreePreservingRR, NoisyDegree])
def test_what_is_no_epsilon_no_number_of_users_and_no_mode_is_refused(kind: type[Any]) -> None:
    for name, value in (*(("nodes", nodes) for nodes in (0, 2**31, 3.0)), ("mode", "upper"), ("epsilon", 0.0)):
        with pytest.raises(InputError, match=name):
            kind(**{"epsilon": 1.0, "nodes": 3, name: value})
