"""Several relationships of one person: how far they move a sum, exactly, and what that costs."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor

from graphveil.aggregation import PerturbedSum, perturbed, sensitivity_of
from graphveil.aggregation.exact_sum import ReceiverRows
from graphveil.aggregation.grid import quantise
from graphveil.privacy import gaussian_epsilon
from tests.aggregation.replay import undirected

PEOPLE, COLUMNS, BITS = 6, 3, 7


def sums_of(pairs: set[tuple[int, int]], x: Tensor) -> Tensor:
    """Exact sums of an undirected graph, in units of the rows' cap."""
    return ReceiverRows.of(undirected(pairs), PEOPLE).sums(quantise(x, bits=BITS)).values / 2**BITS


EVERY = list(itertools.combinations(range(PEOPLE), 2))
OF_ONE = [[pair for pair in EVERY if person in pair] for person in range(PEOPLE)]


def worst(start: set[tuple[int, int]], x: Tensor, most: int, sets: list[list[tuple[int, int]]]) -> float:
    """The largest move of the sums when relationships of any one set come or go, `most` at a time."""
    largest, before = 0.0, sums_of(start, x)
    for pairs in sets:
        for count in range(1, most + 1):
            for changed in itertools.combinations(pairs, count):
                moved = sums_of(start ^ set(changed), x) - before
                largest = max(largest, float(moved.norm()))
    return largest


def graphs() -> list[tuple[set[tuple[int, int]], Tensor]]:
    """Nobody, everybody, a ring; messages that all agree, and drawn ones."""
    ring = {(u, u + 1) for u in range(PEOPLE - 1)} | {(0, PEOPLE - 1)}
    same = torch.zeros(PEOPLE, COLUMNS)
    same[:, 0] = 1.0
    drawn = torch.randn(PEOPLE, COLUMNS, generator=torch.Generator().manual_seed(3))
    return [(pairs, x) for pairs in (set(), set(EVERY), ring) for x in (same, drawn)]


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_the_bound_is_reached(k: int) -> None:
    """Every person, every set of at most k relationships, added and removed in every mixture: never above, and met."""
    moves = [worst(start, x, k, OF_ONE) for start, x in graphs()]
    bound = sensitivity_of("k-edges", relationships=k)
    assert max(moves) <= bound == pytest.approx(math.sqrt(k * (k + 1)))
    assert max(moves) > 0.99 * bound


@pytest.mark.parametrize("k", [1, 2, 3])
def test_any_k_relationships_of_anybody_move_a_sum_no_further(k: int) -> None:
    assert max(worst(start, x, k, [EVERY]) for start, x in graphs()) <= sensitivity_of("k-edges", relationships=k)


def test_k_cost_less_than_naive_groups_and_the_price_is_that_of_the_moved_sums() -> None:
    assert sensitivity_of("k-edges", relationships=1) == sensitivity_of("edge")
    for k in (2, 5, 20):
        exact = sensitivity_of("k-edges", 0.5, relationships=k)
        assert exact == pytest.approx(0.5 * math.sqrt(k * (k + 1)))
        assert exact < k * sensitivity_of("edge", 0.5)
    # Two hops at noise 8 and 10 for four relationships: one Gaussian of mu^2 = 20 (1/64 + 1/100).
    hidden = PerturbedSum(unit="k-edges", sigmas=(8.0, 10.0), relationships=4)
    mu = math.sqrt(20 * (1 / 64 + 1 / 100))
    assert hidden.epsilon(1e-6, columns=3) == pytest.approx(gaussian_epsilon(1 / mu, 1e-6), rel=1e-5)
    assert perturbed.entries_of("k-edges", relationships=4) == 5
