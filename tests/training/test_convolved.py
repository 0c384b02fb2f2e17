"""A head on convolved rows: what one edge moves, by brute force, the noise of its release, and weakened copies."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch import Tensor

from graphveil.aggregation import ReceiverRows
from graphveil.privacy import SecureRandomness
from graphveil.training.convolved import ConvolvedRegression

PEOPLE = 6
PUBLIC: dict[str, Any] = {"restart": 0.3, "depth": 4, "penalty": 0.1, "people": PEOPLE, "columns": 2, "classes": 3}


def rows_of(pairs: Any, people: int = PEOPLE) -> ReceiverRows:
    edges = torch.tensor([(u, v) for pair in sorted(pairs) for u, v in (pair, pair[::-1])]).reshape(-1, 2).T
    return ReceiverRows.of(edges, people)


def graphs() -> list[set[tuple[int, int]]]:
    """Nobody, a star, a ring, everybody, and drawn ones."""
    every = list(itertools.combinations(range(PEOPLE), 2))
    drawn = [torch.rand(len(every), generator=torch.Generator().manual_seed(seed)) < 0.4 for seed in range(6)]
    chosen = [{pair for pair, kept in zip(every, mask.tolist(), strict=True) if kept} for mask in drawn]
    return [set(), {(0, v) for v in range(1, PEOPLE)}, {(v, v + 1) for v in range(PEOPLE - 1)}, set(every), *chosen]


def messages() -> list[Tensor]:
    """Rows on a line that agree, disagree with one, and take turns; and drawn ones."""
    signs = [torch.ones(PEOPLE), torch.ones(PEOPLE), (-1.0) ** torch.arange(PEOPLE)]
    signs[1][1:] = -1.0
    drawn = torch.nn.functional.normalize(torch.randn(PEOPLE, 2, generator=torch.Generator().manual_seed(1)), dim=1)
    return [torch.stack([sign, torch.zeros(PEOPLE)], dim=1) for sign in signs] + [drawn]


@pytest.mark.parametrize(("restart", "depth"), [(0.1, 8), (0.5, 1), (0.9, 2), (0.1, 1)])
def test_one_edge_moves_all_rows_together_by_no_more_than_is_said(restart: float, depth: int) -> None:
    """Every edge of ten graphs toggled; the bound is reached where two strangers without others meet."""
    convex = ConvolvedRegression(**{**PUBLIC, "restart": restart, "depth": depth})
    worst = 0.0
    for pairs, x in itertools.product(graphs(), messages()):
        before = convex.convolved(rows_of(pairs), x)
        for pair in itertools.combinations(range(PEOPLE), 2):
            after = convex.convolved(rows_of(pairs ^ {pair}), x)
            worst = max(worst, float((before - after).norm(dim=1).sum()))
    assert worst <= convex.moved * (1 + 1e-9)
    if depth == 1:
        assert worst > 0.99 * convex.moved


@pytest.mark.slow  # seconds
@pytest.mark.parametrize("penalty", [0.02, 0.3])
def test_minima_lie_no_further_apart_than_is_charged(penalty: float) -> None:
    """Every third edge of four graphs toggled, under weak and strong penalties."""
    convex = ConvolvedRegression(**{**PUBLIC, "penalty": penalty})
    classes, worst = torch.arange(PEOPLE) % 3, 0.0
    for pairs, x in itertools.product(graphs()[:4], messages()):
        one = convex.minimum(convex.convolved(rows_of(pairs), x), classes)
        assert float(one.norm()) <= convex.longest
        for pair in list(itertools.combinations(range(PEOPLE), 2))[::3]:
            two = convex.minimum(convex.convolved(rows_of(pairs ^ {pair}), x), classes)
            worst = max(worst, float((one - two).norm()))
    assert 0.0 < worst <= convex.sensitivity


def test_the_minimum_is_one_and_without_a_walk_no_edge_matters() -> None:
    convex, x = ConvolvedRegression(**PUBLIC), messages()[3]
    z, classes = convex.convolved(rows_of(graphs()[1]), x), torch.arange(PEOPLE) % 3
    weights = convex.minimum(z, classes).requires_grad_()
    loss = torch.nn.functional.cross_entropy(z @ weights, classes) + 0.05 * weights.square().sum()
    loss.backward()  # type: ignore[no-untyped-call]
    assert weights.grad is not None and float(weights.grad.norm()) <= 1e-3 * convex.pull
    convex = ConvolvedRegression(**{**PUBLIC, "restart": 1.0})
    x = messages()[3]
    assert convex.moved == 0.0
    assert torch.equal(convex.convolved(rows_of(set()), x), convex.convolved(rows_of(graphs()[3]), x))


def test_the_release_has_the_noise_that_was_priced() -> None:
    """Standard deviation multiplier times half of what an edge may move, on a public grid; none without protection."""
    convex = ConvolvedRegression(**{**PUBLIC, "columns": 40, "classes": 10})
    weights, noise = torch.rand(40, 10, dtype=torch.float64), SecureRandomness()
    draws = torch.stack([convex.released(weights, 3.0, noise).double() - weights for _ in range(50)])
    assert float(draws.std()) == pytest.approx(3.0 * convex.sensitivity / 2, rel=0.03)
    steps = convex.released(weights, 3.0, noise).double() / convex.schedule(3.0).grid.step
    assert torch.allclose(steps, steps.round(), atol=1e-2)
    assert torch.allclose(convex.released(weights, 0.0, noise).double(), weights, atol=1e-6)
