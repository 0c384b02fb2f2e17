"""The sparse sampler against one coin for each pair, and the waiting times it is made of."""

from __future__ import annotations

from decimal import Decimal, localcontext

import mpmath
import numpy as np
import pytest
from scipy import stats

from graphveil.mechanisms import AdjacencyRR
from graphveil.mechanisms.edges import edge_sampling
from graphveil.mechanisms.edges.edge_sampling import false_places, place_blocks
from graphveil.mechanisms.edges.neighbour_lists import NeighbourLists, owners
from graphveil.mechanisms.samplers.bits import WORD, bit_law
from graphveil.mechanisms.samplers.geometric import geometric_by_success
from graphveil.privacy import SeededRandomness
from tests.mechanisms import pair_cases, tiny_graphs
from tests.mechanisms.tiny_graphs import MODES

FALSE_ALARM = 1e-6


@pytest.mark.parametrize("mode", ["lower", *(pytest.param(mode, marks=pytest.mark.slow) for mode in MODES[1:])])
def test_sparse_sampler_has_the_law_of_one_coin_for_each_pair(mode: str) -> None:
    """Four chi-square tests with 600 collections of 50 users each way, false-alarm rate 1e-6 each."""
    units, lists, source = tiny_graphs.units(mode, 50), NeighbourLists(50, mode), SeededRandomness(3)
    chosen = np.random.default_rng(1).choice(len(units), 150, replace=False)
    graph = tiny_graphs.edge_index([units[k] for k in chosen], mode)
    mechanism = AdjacencyRR(epsilon=2.0, nodes=50, mode=mode)
    sparse = pair_cases.releases(lambda: lists.open_reports(mechanism.randomize(graph, randomness=source)), lists.total)
    pair_cases.check_coins(sparse, lists.open(graph), 2.0)


def test_blocks_of_places_follow_from_public_facts_and_cover_all() -> None:
    for places, low, people in ((0, WORD // 3, 1), (5, 1, 5), (10**12, WORD // 10**6, 10**6), (10**12, 1, 10**6)):
        blocks = place_blocks(places, places * (low / WORD), people)
        assert sum(block.stop - block.start for block in blocks) == places
        assert blocks.size * (low / WORD) <= edge_sampling.FALSE_PLACES
        assert not places or len(blocks) >= min(places, people / edge_sampling.PEOPLE)


def test_the_largest_domain_and_the_smallest_chance_do_not_overflow() -> None:
    total = (2**31 - 1) * (2**31 - 2)
    for low, expected in ((1, total / WORD), (1 << 12, total * 2.0**-52)):
        counts = [sum(p.size for *_, p in false_places(total, low, SeededRandomness(seed))) for seed in range(40)]
        assert stats.poisson.cdf(sum(counts), 40 * expected) > FALSE_ALARM
        assert stats.poisson.sf(sum(counts) - 1, 40 * expected) > FALSE_ALARM


@pytest.mark.parametrize("low", [1 << 63, bit_law(8.0, 1).low, 1])
def test_every_waiting_time_has_its_probability_to_230_bits(low: int) -> None:
    """In 120-digit arithmetic from the very integers that decide the draws."""
    law = geometric_by_success(low, (1 << 62) - 1)
    with localcontext() as context:
        context.prec = 150
        whole, ratio = Decimal(2**256), Decimal(WORD - low) / WORD
        coins = [Decimal((first << 192) + rest) / whole for first, rest in (*law.digits, law.overflow)]
        step = 1 << len(law.digits)
        for gap in (0, 1, 2, 5, step - 1, step, 3 * step + step // 2):
            high, chance = divmod(gap, step)[0], Decimal(1)
            for digit, coin in enumerate(coins[:-1]):
                chance *= coin if gap >> digit & 1 else 1 - coin
            chance *= coins[-1] ** high * (1 - coins[-1])
            assert abs(chance / (ratio**gap * (1 - ratio)) - 1) < Decimal(2) ** -230


def test_rounding_pays_for_the_finite_coins() -> None:
    """For 100 random epsilons: the flip probability is rounded up by more than 256-bit coins can be off by."""
    draw = np.random.default_rng(1)
    with mpmath.workdps(90):
        for epsilon in 10 ** draw.uniform(-6, 1.6, 100):
            low = bit_law(float(epsilon), 1).low
            spare = mpmath.exp(mpmath.mpf(float(epsilon))) * low / (WORD - low) - 1
            coins = len(geometric_by_success(low, 1 << 62).digits) + 2 + (1 << 62) * low / WORD
            assert spare > coins * mpmath.mpf(2) ** -230


@pytest.mark.parametrize("mode", MODES)
def test_places_number_every_pair_once(mode: str) -> None:
    lists = NeighbourLists(9, mode)
    assert (lists.total, lists.starts[-1], lists.lengths.sum()) == (lists.total,) * 3
    places = np.arange(lists.total)
    users = owners(places, lists.starts)
    named = lists.named(places, users)
    assert np.array_equal(lists.places(users, named), places)
    both = [pair for unit in tiny_graphs.units("lower", 9) for pair in (unit, unit[::-1])]
    expected = tiny_graphs.units("lower", 9) if mode == "lower" else sorted(both)
    assert list(zip(users.tolist(), named.tolist(), strict=True)) == expected


@pytest.mark.parametrize("mode", MODES)
def test_places_of_the_largest_graph_do_not_overflow(mode: str) -> None:
    nodes = 2**31 - 1
    lists = NeighbourLists(nodes, mode)
    users, named = np.array([0, 0, 5, nodes - 2]), np.array([1, nodes - 1, 6, nodes - 1])
    places = lists.places(users, named)
    assert places[0] == 0
    assert places[-1] == (lists.total - 1 if mode == "lower" else lists.total - nodes)
    assert np.array_equal(lists.named(places, users), named)


@pytest.mark.parametrize("mode", MODES)
def test_what_one_block_sends_depends_on_no_other_block(mode: str) -> None:
    """Its own key and its own true places make the bits of a block, whatever is true elsewhere."""
    lists, low = NeighbourLists(3 * edge_sampling.PEOPLE, mode), bit_law(9.0, 1).low
    blocks = list(place_blocks(lists.total, lists.total * (low / WORD), lists.nodes))
    assert len(blocks) > 2
    rng = np.random.default_rng(5)
    true = np.unique(rng.integers(0, lists.total, 30_000))
    changed = blocks[1]
    elsewhere = true[(true < changed.start) | (true >= changed.stop)]
    first, second = (
        lists.open_reports(edge_sampling.sample_lists(lists, places, low, SeededRandomness(6)))
        for places in (true, elsewhere)
    )
    for block in blocks:
        inside = [places[(places >= block.start) & (places < block.stop)] for places in (first, second)]
        assert np.array_equal(*inside) == (block != changed)
