"""The reviewer's checklist, as far as reports about relationships go."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
import torch
from scipy import stats

from graphveil.errors import BudgetError, InputError
from graphveil.mechanisms import AdjacencyRR, DegreePreservingRR, DegreeReports, NoisyDegree
from graphveil.mechanisms.edges.neighbour_lists import NeighbourLists
from graphveil.mechanisms.samplers.bits import WORD, bit_law
from graphveil.mechanisms.samplers.unbounded_geometric import geometric_by_success
from graphveil.privacy import Guarantee, Ledger, SecureRandomness, SeededRandomness, Spend, compose
from tests.mechanisms import tiny_graphs
from tests.mechanisms.edges import test_degree_preserving
from tests.mechanisms.tiny_graphs import MODES, NODES

FALSE_ALARM = 1e-6
KINDS = (AdjacencyRR, DegreePreservingRR, NoisyDegree)
EVERY = [(kind, mode) for kind in KINDS for mode in MODES]
GRAPH = [(0, 1), (1, 2)]


def randomized(mechanism: Any, graph: torch.Tensor, seed: int = 1) -> Any:
    given = mechanism.count(graph) if isinstance(mechanism, NoisyDegree) else graph
    return mechanism.randomize(given, randomness=SeededRandomness(seed))


@pytest.mark.parametrize(("kind", "mode"), EVERY)
def test_item_1_unit_and_relation_are_declared(kind: Any, mode: str) -> None:
    """The certificate has every field, survives being stored, and is refused when any field is deleted."""
    guarantee = kind(epsilon=1.5, nodes=NODES, mode=mode).guarantee
    fields = guarantee.to_dict()
    assert Guarantee.from_dict(fields) == guarantee
    assert fields["unit"] == ("one directed link" if mode == "directed" else "one relationship")
    assert (fields["relation"], fields["model"], fields["delta"]) == ("add/remove", "local", 0.0)
    assert guarantee.assumption("users-public")
    assert guarantee.assumption("reports-once")
    for name in fields:
        with pytest.raises(InputError, match=name):
            Guarantee.from_dict({key: value for key, value in fields.items() if key != name})


@pytest.mark.parametrize("kind", KINDS)
def test_item_1_an_undirected_relationship_in_two_lists_costs_twice(kind: Any) -> None:
    prices = {mode: kind(epsilon=1.5, nodes=NODES, mode=mode).guarantee.epsilon for mode in MODES}
    assert prices == {"lower": 1.5, "both": 3.0, "directed": 1.5}


@pytest.mark.parametrize("mode", MODES)
def test_item_4_one_relationship_moves_as_many_bits_as_are_paid_for(mode: str) -> None:
    """Toggling any relationship of any graph moves 1 bit ("both": 2, one a list) and as many degrees, by 1 each."""
    graphs, lists = tiny_graphs.all_graphs(mode), NeighbourLists(NODES, mode)
    paid = 2 if mode == "both" else 1
    degrees = NoisyDegree(epsilon=1.0, nodes=NODES, mode=mode)
    for g, h in tiny_graphs.neighbouring(len(graphs)):
        places = set(lists.open(graphs[g]).tolist()) ^ set(lists.open(graphs[h]).tolist())
        moved = (degrees.count(graphs[g]) - degrees.count(graphs[h])).abs()
        assert len(places) == paid == int(moved.sum())
        assert int(moved.max()) == 1
    for kind in KINDS:
        assert kind(epsilon=1.0, nodes=NODES, mode=mode).guarantee.epsilon == paid


@pytest.mark.parametrize("kind", KINDS)
def test_item_4_the_ledger_charges_a_pair_once_and_two_ends_twice(kind: Any) -> None:
    """A budget of one epsilon for a relationship pays for "lower" and refuses "both"."""

    def spend(mode: str) -> Spend:
        guarantee = kind(epsilon=1.0, nodes=NODES, mode=mode).guarantee
        return Spend("lists", "edges", kind.__name__, {"mode": mode}, guarantee.epsilon)

    ledger = Ledger.open({"edges": (1.0, 0.0)})
    assert ledger.spend(spend("lower")).total("edges") == (1.0, 0.0)
    with pytest.raises(BudgetError):
        ledger.spend(spend("both"))


def test_item_8_thinning_depends_on_the_published_degree_only() -> None:
    """Graphs that differ in everything: with the same degree reports the probabilities are byte-identical."""
    mechanism = DegreePreservingRR(epsilon=4.0, nodes=NODES, mode="both")
    levels = DegreeReports(torch.tensor([2, -1, 1], dtype=torch.int32))
    found = set()
    for graph in tiny_graphs.all_graphs("both"):
        randomized(mechanism, graph)
        found.add(mechanism._thinning(levels).tobytes())
    assert len(found) == 1
    assert mechanism.degree.guarantee.epsilon + mechanism._flips.guarantee.epsilon == pytest.approx(8.0)


@pytest.mark.parametrize("mode", MODES)
def test_item_8_what_the_server_computes_needs_no_true_degree(mode: str) -> None:
    """Background, scale, variance and public figures are constants; the rest follows from the reports alone."""
    mechanism = AdjacencyRR(epsilon=1.0, nodes=NODES, mode=mode)
    sent = randomized(mechanism, tiny_graphs.edge_index(GRAPH, mode))
    constants = set()
    for graph in tiny_graphs.all_graphs(mode):
        other = randomized(mechanism, graph, seed=2)
        constants.add((mechanism.evidence(other).background, mechanism.estimate(other).background))
        constants.add((mechanism.evidence(sent).background, mechanism.estimate(sent).background))
        assert set(mechanism.estimate(other).centred.data) <= set(_weights(mechanism))
    assert len(constants) == 1


def _weights(mechanism: AdjacencyRR) -> list[float]:
    gap = bit_law(mechanism.epsilon, 1).span / WORD
    return [count / (gap * (2 if mechanism.mode == "both" else 1)) for count in (1, 2)]


@pytest.mark.parametrize("epsilon", [4.0, 8.0])
def test_item_18_gaps_between_false_edges_on_four_million_draws(epsilon: float) -> None:
    """Chi-square at 1e-6 against the exact law, a 1% scale error is found, and the tail is there."""
    low = bit_law(epsilon, 1).low
    drawn = geometric_by_success(low, 1 << 40).draw(4_000_000, SeededRandomness(1))
    assert drawn.max() > 13 * WORD / low

    def p_value(chance: float) -> float:
        cuts = np.unique(stats.geom.ppf(np.linspace(0.01, 0.99, 99), chance) - 1)
        expected = np.diff(np.concatenate([[0.0], stats.geom.cdf(cuts + 1, chance), [1.0]])) * len(drawn)
        counts = np.bincount(np.searchsorted(cuts, drawn), minlength=len(expected))
        return float(stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue)

    assert p_value(low / WORD) > FALSE_ALARM
    assert p_value(1.01 * low / WORD) < FALSE_ALARM


def test_item_18_degree_noise_on_four_million_draws() -> None:
    """Chi-square at 1e-6 against the exact law, a 1% scale error is found; whole numbers, and the tail is there."""
    users, epsilon = 1_000_000, 1.0
    mechanism = NoisyDegree(epsilon=epsilon, nodes=users, mode="directed")
    randomness, degrees, counts = SeededRandomness(3), torch.full((users,), 50), np.zeros(101)
    for _ in range(4):
        levels = mechanism.randomize(degrees, randomness=randomness).levels
        assert levels.dtype == torch.int32
        counts += np.bincount(levels.clamp(0, 100).numpy(), minlength=101)
    z = np.arange(-50, 51)
    assert counts[np.abs(z) >= 13].sum() > 0

    def p_value(rate: float) -> float:
        expected = 4 * users * math.tanh(rate / 2) * np.exp(-rate * np.abs(z))
        often = expected > 20
        seen, hoped = np.append(counts[often], 0.0), np.append(expected[often], 0.0)
        seen[-1], hoped[-1] = counts[~often].sum(), expected[~often].sum()
        return float(stats.chisquare(seen, hoped * seen.sum() / hoped.sum()).pvalue)

    assert p_value(epsilon) > FALSE_ALARM
    assert p_value(1.01 * epsilon) < FALSE_ALARM


@pytest.mark.parametrize("mode", MODES)
def test_item_18_the_possible_reports_are_the_same_for_all_graphs(mode: str) -> None:
    """No output tells for certain: it is possible under every graph, or under none."""
    graphs = tiny_graphs.all_graphs(mode)[::-5]
    flips = AdjacencyRR(epsilon=30.0, nodes=NODES, mode=mode)
    assert np.isfinite(tiny_graphs.log_table(flips, graphs, tiny_graphs.all_reports(mode))).all()
    degrees = NoisyDegree(epsilon=30.0, nodes=NODES, mode=mode)
    lowest, highest = degrees.ends
    levels = [DegreeReports(torch.full((NODES,), level, dtype=torch.int32)) for level in range(lowest, highest + 1)]
    assert np.isfinite(tiny_graphs.log_table(degrees, [degrees.count(graph) for graph in graphs], levels)).all()
    kept = DegreePreservingRR(epsilon=8.0, nodes=NODES, mode=mode, degree_share=0.5)
    possible = np.isfinite(tiny_graphs.log_table(kept, graphs, test_degree_preserving.outputs(kept)))
    assert (possible == possible[0]).all()


def test_item_18_rounding_pays_for_the_finite_coins() -> None:
    """For 300 random epsilons: the flip probability is rounded up by more than 256-bit coins can be off by."""
    draw = np.random.default_rng(1)
    with mpmath.workdps(90):
        for epsilon in 10 ** draw.uniform(-6, 1.6, 300):
            low = bit_law(float(epsilon), 1).low
            spare = mpmath.exp(mpmath.mpf(float(epsilon))) * low / (WORD - low) - 1
            coins = len(geometric_by_success(low, 1 << 62).digits) + 2 + (1 << 62) * low / WORD
            assert spare > coins * mpmath.mpf(2) ** -230


@pytest.mark.parametrize(("kind", "mode"), EVERY)
def test_item_19_a_second_collection_is_a_second_charge(kind: Any, mode: str) -> None:
    """Each call of randomize is a collection: a ledger opened for one refuses another, and prices add up."""
    guarantee = kind(epsilon=1.0, nodes=NODES, mode=mode).guarantee
    spend = Spend("lists", "edges", kind.__name__, {}, guarantee.epsilon)
    once = Ledger.open({"edges": (guarantee.epsilon, 0.0)}).spend(spend)
    with pytest.raises(BudgetError):
        once.spend(spend)
    assert compose([guarantee] * 3).epsilon == 3 * guarantee.epsilon


def test_item_19_an_average_of_many_collections_would_tell() -> None:
    """Why reports are stored and never drawn again: 1,000 collections at epsilon 0.5 reveal every pair of a graph."""
    graph = tiny_graphs.edge_index([(0, 3), (2, 5), (3, 5)], "lower")
    mechanism, randomness = AdjacencyRR(epsilon=0.5, nodes=6), SecureRandomness()
    total = np.zeros((6, 6))
    for _ in range(1000):
        estimate = mechanism.estimate(mechanism.randomize(graph, randomness=randomness))
        total += estimate.centred.toarray() + estimate.background
    guessed = {(i, j) for i, j in np.argwhere(total / 1000 > 0.5).tolist() if i < j}
    # Every entry has a standard deviation of 0.062: one of 15 is misread with probability below 1e-13.
    assert guessed == {(0, 3), (2, 5), (3, 5)}


def test_item_19_stored_reports_tell_the_same_however_often_they_are_read() -> None:
    mechanism = AdjacencyRR(epsilon=0.5, nodes=6)
    sent = randomized(mechanism, tiny_graphs.edge_index(GRAPH, "lower"))
    stored = type(sent).from_tensors(sent.to_tensors())
    for _ in range(3):
        assert torch.equal(mechanism.evidence(stored).log_ratio, mechanism.evidence(sent).log_ratio)
        assert torch.equal(mechanism.collected(stored), mechanism.collected(sent))
