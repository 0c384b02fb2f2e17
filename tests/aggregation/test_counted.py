"""Sums with geometric noise: how far one unit moves them, the exact law, the price, and weakened copies."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch
from torch import Tensor

from graphveil.aggregation import CountedSum, ReceiverRows
from graphveil.aggregation.counted import on_l1_grid
from graphveil.errors import InputError
from graphveil.mechanisms import NoisyCounts
from graphveil.privacy import BlockNoise, SeededRandomness
from tests.aggregation.replay import undirected

PEOPLE, CLASSES = 6, 3


def rows_of(pairs: Any) -> ReceiverRows:
    return ReceiverRows.of(undirected(pairs), PEOPLE)


def exact(hidden: CountedSum, rows: ReceiverRows, x: Tensor) -> Tensor:
    plain = CountedSum(unit=hidden.unit, epsilon=math.inf, relationships=hidden.relationships, bits=hidden.bits)
    return plain.perturb(rows, x, SeededRandomness(0))


def messages() -> list[Tensor]:
    """All of one class; classes in turn; shares of classes, and rows that are too long or broken."""
    same = torch.eye(CLASSES)[[0] * PEOPLE]
    turns = torch.eye(CLASSES)[torch.arange(PEOPLE) % CLASSES]
    shares = torch.softmax(torch.randn(PEOPLE, CLASSES, generator=torch.Generator().manual_seed(1)), dim=1)
    wrong = torch.cat([10 * turns[:3], torch.full((1, CLASSES), math.nan), torch.full((2, CLASSES), math.inf)])
    return [same, turns, shares, wrong]


@pytest.mark.parametrize("bits", [0, 6])
@pytest.mark.parametrize(("unit", "k"), [("edge", None), ("k-edges", 1), ("k-edges", 3)])
def test_no_set_of_relationships_moves_more_than_is_charged(unit: Any, k: int | None, bits: int) -> None:
    """Every person, every set of at most k relationships, from nobody and from everybody; and the bound is reached."""
    hidden, largest = CountedSum(unit=unit, epsilon=1.0, relationships=k, bits=bits), 0.0
    every = {(u, v) for u in range(PEOPLE) for v in range(u + 1, PEOPLE)}
    for start, x, person in itertools.product((set(), every), messages(), range(PEOPLE)):
        own = [(min(person, other), max(person, other)) for other in range(PEOPLE) if other != person]
        before = exact(hidden, rows_of(start), x)
        for changed in itertools.combinations(own, k or 1):
            moved = exact(hidden, rows_of(start ^ set(changed)), x) - before
            largest = max(largest, float(moved.abs().sum()))
    assert largest == hidden.change == 2 * (k or 1)


def test_rows_on_the_grid_are_never_longer_than_one() -> None:
    for bits in (0, 3, 6, 12):
        for x in (*messages(), 1e30 * torch.randn(50, 7), torch.randn(50, 7)):
            steps = on_l1_grid(x, bits)
            assert bool(steps.isfinite().all()) and float(steps.abs().sum(dim=1).max()) <= 2**bits
            assert torch.equal(steps, steps.round())
    assert torch.equal(on_l1_grid(torch.eye(4), 0), torch.eye(4))
    # A sum below 0 would be refused, and the refusal would tell of an edge.
    assert on_l1_grid(torch.tensor([[-1.0, 0.0, 1.0]]), 3).tolist() == [[0.0, 0.0, 8.0]]


@pytest.mark.parametrize(("unit", "cost"), [("edge", 2.0), ("directed-edge", 4.0)])
@pytest.mark.parametrize(("bits", "hops"), [(0, 1), (0, 3), (2, 1)])
def test_no_answer_is_likelier_than_epsilon_allows(bits: int, hops: int, unit: Any, cost: float) -> None:
    """The exact law of an edge's two sums: the largest log ratio of all hops together is epsilon, reached and kept.

    A weakened copy that charges an undirected edge at one end costs twice as much.
    """
    hidden = CountedSum(unit=unit, epsilon=2.0, hops=hops, bits=bits)
    x = torch.eye(CLASSES)[torch.arange(PEOPLE) % CLASSES]
    with_edge, without_edge = rows_of({(0, 1), (2, 3)}), rows_of({(2, 3)})
    worst = 0.0
    for shift in (-9.0, -1.0, 0.0, 1.0, 9.0):
        noisy = exact(hidden, with_edge, x) + shift
        ratio = hidden.log_likelihood(noisy, with_edge, x) - hidden.log_likelihood(noisy, without_edge, x)
        worst = max(worst, abs(float(ratio.sum())))
    assert cost * (1 - 1e-9) < hops * worst <= cost


@pytest.mark.parametrize(("bits", "hops"), [(0, 1), (2, 3)])
def test_noise_is_that_of_counts_at_the_price_of_one_step(bits: int, hops: int) -> None:
    """The same draws and the same likelihood as the mechanism's, whose law has its own test."""
    hidden, counts = CountedSum(epsilon=1.5, hops=hops, bits=bits), NoisyCounts(epsilon=1.5 / (2 * hops * 2**bits))
    x, rows = torch.eye(CLASSES)[torch.arange(PEOPLE) % CLASSES], rows_of({(0, 1), (2, 3), (1, 3)})
    steps = (exact(hidden, rows, x) * 2**bits).long().ravel()
    noisy = hidden.perturb(rows, x, SeededRandomness(5))
    drawn = counts.randomize(steps, randomness=next(BlockNoise(SeededRandomness(5)).keys(1)).stream())
    assert torch.equal((noisy * 2**bits).long().ravel(), drawn)
    assert torch.equal(hidden.log_likelihood(noisy, rows, x).ravel(), counts.log_likelihood(drawn, steps))
    assert hidden.sigma == pytest.approx(math.sqrt(counts.variance) * 2.0**-bits)


def test_what_is_no_sum_is_refused() -> None:
    wrong = {"unit": ("node", "k-edges"), "epsilon": (0.0, math.nan), "hops": (0,), "bits": (13, True)}
    for name, value in ((name, value) for name, values in wrong.items() for value in values):
        with pytest.raises(InputError):
            CountedSum(**{"epsilon": 1.0, name: value})
    weighted = ReceiverRows.of(torch.tensor([[0, 1], [1, 0]]), 2, weights=torch.tensor([0.5, 0.5]))
    with pytest.raises(InputError, match="edges without weights"):
        CountedSum(epsilon=1.0).perturb(weighted, torch.eye(2), SeededRandomness(0))
