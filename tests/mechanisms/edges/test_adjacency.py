"""Randomized response on neighbour lists: exhaustive audits on all graphs of three users, and what is concluded."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from graphveil.errors import InputError
from graphveil.mechanisms import AdjacencyRR
from graphveil.mechanisms.edges import bit_flips
from graphveil.mechanisms.samplers.bits import BitLaw, bit_law
from graphveil.privacy import SecureRandomness, SeededRandomness
from graphveil.privacy.unit import DIRECTED_LINK, LIST_ENTRY, RELATIONSHIP
from tests.mechanisms import conformance, tiny_graphs
from tests.mechanisms.tiny_graphs import MODES, NODES

PRICES = {"lower": 1, "both": 2, "directed": 1}


def build(epsilon: float, mode: str) -> AdjacencyRR:
    return AdjacencyRR(epsilon=epsilon, nodes=NODES, mode=mode)


def worst(mechanism: AdjacencyRR) -> float:
    graphs, outputs = tiny_graphs.all_graphs(mechanism.mode), tiny_graphs.all_reports(mechanism.mode)
    return tiny_graphs.worst_ratio(tiny_graphs.log_table(mechanism, graphs, outputs).sum(2))


def halve(monkeypatch: pytest.MonkeyPatch) -> None:
    """A weakened copy: bits are flipped half as often as they should be."""
    monkeypatch.setattr(bit_flips, "bit_law", lambda epsilon, bits: BitLaw(bit_law(epsilon, bits).low // 2))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 7.5])
def test_audit_accepts_the_stated_epsilon_and_it_is_tight(mode: str, epsilon: float) -> None:
    """All graphs that differ in one relationship, all reports."""
    mechanism = build(epsilon, mode)
    ratio = worst(mechanism)
    assert mechanism.guarantee.epsilon == PRICES[mode] * epsilon
    assert tiny_graphs.is_private(ratio, mechanism.guarantee.epsilon)
    assert ratio >= 0.999999 * mechanism.guarantee.epsilon


@pytest.mark.parametrize("mode", MODES)
def test_audit_rejects_half_the_flips(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    halve(monkeypatch)
    mechanism = build(1.0, mode)
    assert not tiny_graphs.is_private(worst(mechanism), mechanism.guarantee.epsilon)


def test_audit_rejects_two_reports_sold_at_the_price_of_one() -> None:
    claimed = build(1.0, "lower").guarantee.epsilon
    assert not tiny_graphs.is_private(worst(build(1.0, "both")), claimed)
    assert tiny_graphs.is_private(worst(build(0.5, "both")), claimed)


@pytest.mark.parametrize("mode", MODES)
def test_one_bit_costs_epsilon_in_every_mode(mode: str) -> None:
    """`bit_guarantee`: no single user's report changes by more, whichever relationship comes or goes."""
    mechanism = build(1.0, mode)
    table = tiny_graphs.log_table(mechanism, tiny_graphs.all_graphs(mode), tiny_graphs.all_reports(mode))
    ratios = [tiny_graphs.worst_ratio(table[:, :, user]) for user in range(NODES)]
    assert mechanism.bit_guarantee.epsilon == 1.0
    assert all(tiny_graphs.is_private(ratio, 1.0) for ratio in ratios)
    assert max(ratios) >= 0.999999


@pytest.mark.parametrize("mode", MODES)
def test_probabilities_sum_to_one(mode: str) -> None:
    table = tiny_graphs.log_table(build(1.0, mode), tiny_graphs.all_graphs(mode), tiny_graphs.all_reports(mode))
    assert np.allclose(np.exp(table.sum(2)).sum(1), 1.0, atol=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_sampler_follows_likelihood(mode: str) -> None:
    """Counts of 3,000 collections fit (chi-square, false-alarm rate 1e-6), and do not fit another epsilon's law."""
    mechanism, graph = build(1.0, mode), tiny_graphs.edge_index(tiny_graphs.units(mode)[:2], mode)
    outputs = tiny_graphs.all_reports(mode)
    place = {tuple(map(tuple, sent.to_edge_index().tolist())): k for k, sent in enumerate(outputs)}
    counts, randomness = np.zeros(len(outputs)), SeededRandomness(1)
    for _ in range(3000):
        sent = mechanism.randomize(graph, randomness=randomness)
        counts[place[tuple(map(tuple, sent.to_edge_index().tolist()))]] += 1

    def p_value(other: AdjacencyRR) -> float:
        return conformance.fits(counts, torch.from_numpy(tiny_graphs.log_table(other, [graph], outputs).sum(2)[0]))

    assert p_value(mechanism) > conformance.FALSE_ALARM
    assert p_value(build(1.3, mode)) < conformance.FALSE_ALARM


@pytest.mark.parametrize("mode", MODES)
def test_evidence_is_the_ratio_of_likelihoods(mode: str) -> None:
    """Of every pair in every output: with the pair against without it, whatever the rest of the graph is."""
    mechanism, found = build(0.7, mode), tiny_graphs.units(mode)
    outputs = tiny_graphs.all_reports(mode)
    table = tiny_graphs.log_table(mechanism, tiny_graphs.all_graphs(mode), outputs).sum(2)
    for place, sent in enumerate(outputs):
        evidence = mechanism.evidence(sent)
        named = list(zip(evidence.source.tolist(), evidence.target.tolist(), strict=True))
        assert named == sorted(set(named))
        said = dict(zip(named, evidence.log_ratio.tolist(), strict=True))
        for g, h in tiny_graphs.neighbouring(len(table)):
            pair = found[(g ^ h).bit_length() - 1]
            assert table[g, place] - table[h, place] == pytest.approx(said.get(pair, evidence.background), abs=1e-12)


def test_evidence_of_both_reports_is_their_sum() -> None:
    """(1, 1) 2 epsilon, (1, 0) nothing, (0, 0) -2 epsilon."""
    sent = tiny_graphs.reports_of([[1, 2], [0], []])
    evidence = build(2.0, "both").evidence(sent)
    assert [evidence.source.tolist(), evidence.target.tolist()] == [[0, 0], [1, 2]]
    assert evidence.log_ratio.tolist() == pytest.approx([4.0, 0.0])
    assert (evidence.background, evidence.pairs, evidence.directed) == (pytest.approx(-4.0), 3, False)
    assert evidence.to_edge_index().tolist() == [[0, 0, 1, 2], [1, 2, 0, 0]]
    assert build(2.0, "both").collected(sent).tolist() == [[0, 0, 1, 2], [1, 2, 0, 0]]


def test_evidence_of_directed_links_keeps_them_apart() -> None:
    evidence = build(2.0, "directed").evidence(tiny_graphs.reports_of([[1], [0], [0]]))
    assert evidence.to_edge_index().tolist() == [[0, 1, 2], [1, 0, 0]]
    assert evidence.log_ratio.tolist() == pytest.approx([2.0, 2.0, 2.0])
    assert (evidence.background, evidence.pairs) == (pytest.approx(-2.0), 6)


@pytest.mark.parametrize("mode", MODES)
def test_estimate_is_unbiased_with_the_closed_form_variance(mode: str) -> None:
    """Exactly: summed over every output with its probability, for every graph."""
    mechanism, outputs = build(0.8, mode), tiny_graphs.all_reports(mode)
    off_diagonal = ~np.eye(NODES, dtype=bool)
    estimates = []
    for sent in outputs:
        estimate = mechanism.estimate(sent)
        estimates.append((estimate.centred.toarray() + estimate.background)[off_diagonal])
    for graph in tiny_graphs.all_graphs(mode):
        chances = np.exp(tiny_graphs.log_table(mechanism, [graph], outputs).sum(2)[0])
        truth = np.zeros((NODES, NODES))
        truth[graph[0], graph[1]] = 1.0
        mean = chances @ np.array(estimates)
        assert np.allclose(mean, truth[off_diagonal], atol=1e-12)
        assert np.allclose(chances @ (np.array(estimates) - mean) ** 2, mechanism.variance, rtol=1e-10)


def test_guarantees_say_the_unit_and_who_reports() -> None:
    lower, both, directed = (build(1.0, mode).guarantee for mode in MODES)
    assert (lower.unit, both.unit, directed.unit) == (RELATIONSHIP, RELATIONSHIP, DIRECTED_LINK)
    assert {guarantee.relation for guarantee in (lower, both, directed)} == {"add/remove"}
    assert "the one with the lower id reports, which is public" in lower.sentence()
    assert "both ends of a relationship report it, at epsilon 1 each" in both.sentence()
    assert "e^2.00" in both.sentence()
    assert build(1.0, "both").bit_guarantee.unit == LIST_ENTRY


def test_public_figures_and_the_warning() -> None:
    quiet = AdjacencyRR(epsilon=12.0, nodes=100_000)
    assert quiet.expected_false == pytest.approx(100_000 * 99_999 / 2 / (math.exp(12) + 1))
    assert quiet.expected_bytes == pytest.approx(8 * 100_001 + 4 * quiet.expected_false)
    assert quiet.warning is None
    loud = AdjacencyRR(epsilon=2.0, nodes=100_000)
    assert loud.warning is not None
    assert "596,0" in loud.warning
    assert "20,000,000" in loud.warning


def test_very_large_and_small_epsilon() -> None:
    graph = tiny_graphs.edge_index([(0, 1), (1, 2)], "both")
    for mode in MODES:
        for epsilon in (50.0, 1e3, 1e300):
            mechanism = build(epsilon, mode)
            sent = mechanism.randomize(graph, randomness=SecureRandomness())
            assert torch.equal(mechanism.collected(sent), graph[:, torch.tensor([0, 1, 2, 3])])
            assert bool(torch.isfinite(mechanism.log_likelihood(sent, graph)).all())
            assert mechanism.evidence(sent).background == pytest.approx(-PRICES[mode] * 64 * math.log(2))
        tiny = build(1e-12, mode)
        sent = tiny.randomize(graph, randomness=SecureRandomness())
        assert tiny.evidence(sent).background == pytest.approx(-PRICES[mode] * 1e-12, rel=1e-5)


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("mode", MODES)
def test_graphs_with_hardly_any_pair(nodes: int, mode: str) -> None:
    mechanism = AdjacencyRR(epsilon=0.1, nodes=nodes, mode=mode)
    empty = torch.zeros(2, 0, dtype=torch.int64)
    sent = mechanism.randomize(empty, randomness=SeededRandomness(1))
    assert len(sent) == nodes
    assert len(mechanism.log_likelihood(sent, empty)) == nodes
    assert mechanism.evidence(sent).pairs == (nodes - 1) * (2 if mode == "directed" else 1)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, 1e-300, "1", None, True])
def test_bad_epsilon_is_refused(epsilon: float) -> None:
    with pytest.raises(InputError, match="epsilon"):
        AdjacencyRR(epsilon=epsilon, nodes=3)


@pytest.mark.parametrize("fields", [{"nodes": 0}, {"nodes": 2**31}, {"nodes": 3.0}, {"nodes": 3, "mode": "upper"}])
def test_bad_sizes_and_modes_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(InputError, match=r"nodes|mode"):
        AdjacencyRR(epsilon=1.0, **fields)  # type: ignore[arg-type]
