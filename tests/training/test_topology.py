"""Rows learned on connections, and a head on convolved rows: what one edge changes, and that steps are noised."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch
from torch import Tensor

from graphveil.aggregation import ReceiverRows
from graphveil.errors import BudgetError, InputError
from graphveil.privacy import SecureRandomness, SeededRandomness
from graphveil.training.attention import TopologyDescent, clipped_deltas, fixed_head
from graphveil.training.clipped_sum import GradientGrid
from graphveil.training.convolved import ConvolvedRegression
from graphveil.training.noisy_updates import PrivateSchedule

PEOPLE, COLUMNS, CLASSES = 40, 4, 3
#: So short a norm that every gradient is clipped.
SCHEDULE = PrivateSchedule(steps=6, rate=0.5, expected_batch=20.0, noise_multiplier=1.0, clip=0.05)
CAP = SCHEDULE.grid.cap


def edges_of(extra: tuple[tuple[int, int], ...] = ()) -> Tensor:
    """A hub that knows everybody but the last, a ring, and some more; both ways."""
    pairs = {(0, v) for v in range(1, PEOPLE - 1)} | {(v, v + 1) for v in range(1, PEOPLE - 2)} | set(extra)
    return torch.tensor(sorted({edge for u, v in pairs for edge in ((u, v), (v, u))})).T


def start_and_head() -> tuple[Tensor, Tensor, Tensor]:
    """First rows, labels and the head."""
    generator = torch.Generator().manual_seed(1)
    start = torch.randn(PEOPLE, COLUMNS, generator=generator)
    labels = torch.randint(0, CLASSES, (PEOPLE,), generator=generator)
    return start, labels, torch.randn(CLASSES, COLUMNS, generator=generator)


def descent_on(edges: Tensor, schedule: PrivateSchedule = SCHEDULE) -> TopologyDescent:
    start, labels, head = start_and_head()
    return TopologyDescent(start, head, ReceiverRows.of(edges, PEOPLE), torch.arange(PEOPLE), labels, schedule)


@pytest.mark.parametrize("pair", [(0, PEOPLE - 1), (3, 20)])
def test_an_edge_moves_a_step_by_at_most_four_caps(pair: tuple[int, int]) -> None:
    """Each end's gradient is of length at most cap with the edge and without it; nobody else's changes."""
    everybody = torch.arange(PEOPLE)
    plain, with_pair = (descent_on(edges_of(extra)) for extra in ((), (pair,)))
    for target in range(PEOPLE):
        alone = torch.tensor([target])
        first, second = plain.clipped_sum(alone), with_pair.clipped_sum(alone)
        assert float(first.norm()) <= CAP and float(second.norm()) <= CAP
        assert torch.equal(first, first.round())
        if target not in pair:
            assert torch.equal(first, second)
    moved = plain.clipped_sum(everybody) - with_pair.clipped_sum(everybody)
    assert 0.0 < float(moved.norm()) <= 4 * CAP


def test_the_gradient_is_that_of_the_loss() -> None:
    """Against autograd, where nothing is clipped."""
    wide = PrivateSchedule(steps=1, rate=1.0, expected_batch=1.0, noise_multiplier=1.0, clip=100.0)
    loose, places = descent_on(edges_of(), wide), torch.tensor([5, 9, 0])
    _, labels, head = start_and_head()
    rows = loose.current.clone().requires_grad_()
    matrix = torch.zeros(PEOPLE, PEOPLE)
    matrix[edges_of()[1], edges_of()[0]] = 1.0
    scores = torch.relu(matrix[places] @ rows) @ head.T
    torch.nn.functional.cross_entropy(scores, labels[places], reduction="sum").backward()  # type: ignore[no-untyped-call]
    gradient = loose.clipped_sum(places).view(PEOPLE, COLUMNS) * wide.grid.step
    assert rows.grad is not None and torch.allclose(gradient.float(), rows.grad, atol=40 * wide.grid.step)


def test_broken_targets_add_nothing() -> None:
    deltas = torch.tensor([[math.nan, 0.0], [math.inf, 1.0], [1e30, 1.0], [0.0, 0.0], [0.3, 0.4]])
    steps = clipped_deltas(deltas, torch.tensor([1, 1, 4, 1, 0]), GradientGrid(1.0, 1024))
    assert bool(steps.isfinite().all()) and torch.equal(steps[0], torch.zeros(2).double())
    assert float((steps.square().sum(dim=1) * torch.tensor([1, 1, 4, 1, 0])).max()) <= 1024**2


def test_every_step_is_noised_and_no_more_are_taken() -> None:
    """Nobody trains: all batches are empty, and every row still moves in every step."""
    start, _, head = start_and_head()
    nobody = torch.zeros(0, dtype=torch.int64)
    descent = TopologyDescent(start, head, ReceiverRows.of(edges_of(), PEOPLE), nobody, nobody, SCHEDULE)
    for step in range(SCHEDULE.steps):
        before = descent.current.clone()
        descent.step(SeededRandomness(step))
        assert bool((descent.current != before).any(dim=1).all())
    assert torch.allclose(descent.finish().norm(dim=1), torch.ones(PEOPLE), atol=1e-5)
    with pytest.raises(BudgetError):
        descent.step(SeededRandomness(1))
    rows = ReceiverRows.of(edges_of(), PEOPLE)
    with pytest.raises(InputError, match="one row a node"):
        TopologyDescent(torch.randn(3, 2), fixed_head(2, 2), rows, torch.arange(2), torch.zeros(2).long(), SCHEDULE)


# ---- a head on convolved rows: what one edge moves, and the noise of its release ----


FEW = 6
PUBLIC: dict[str, Any] = {"restart": 0.3, "depth": 4, "penalty": 0.1, "people": FEW, "columns": 2, "classes": 3}


def few_rows(pairs: Any, people: int = FEW) -> ReceiverRows:
    edges = torch.tensor([(u, v) for pair in sorted(pairs) for u, v in (pair, pair[::-1])]).reshape(-1, 2).T
    return ReceiverRows.of(edges, people)


def graphs() -> list[set[tuple[int, int]]]:
    """Nobody, a star, a ring, everybody, and drawn ones."""
    every = list(itertools.combinations(range(FEW), 2))
    drawn = [torch.rand(len(every), generator=torch.Generator().manual_seed(seed)) < 0.4 for seed in range(6)]
    chosen = [{pair for pair, selected in zip(every, mask.tolist(), strict=True) if selected} for mask in drawn]
    return [set(), {(0, v) for v in range(1, FEW)}, {(v, v + 1) for v in range(FEW - 1)}, set(every), *chosen]


def messages() -> list[Tensor]:
    """Rows on a line that agree, disagree with one, and take turns; and drawn ones."""
    signs = [torch.ones(FEW), torch.ones(FEW), (-1.0) ** torch.arange(FEW)]
    signs[1][1:] = -1.0
    drawn = torch.nn.functional.normalize(torch.randn(FEW, 2, generator=torch.Generator().manual_seed(1)), dim=1)
    return [torch.stack([sign, torch.zeros(FEW)], dim=1) for sign in signs] + [drawn]


@pytest.mark.parametrize(("restart", "depth"), [(0.1, 8), (0.5, 1), (0.9, 2), (0.1, 1)])
def test_one_edge_moves_all_rows_together_by_no_more_than_is_said(restart: float, depth: int) -> None:
    """Every edge of ten graphs toggled; the bound is reached where two strangers without others meet."""
    convex = ConvolvedRegression(**{**PUBLIC, "restart": restart, "depth": depth})
    worst = 0.0
    for pairs, x in itertools.product(graphs(), messages()):
        before = convex.convolved(few_rows(pairs), x)
        for pair in itertools.combinations(range(FEW), 2):
            after = convex.convolved(few_rows(pairs ^ {pair}), x)
            worst = max(worst, float((before - after).norm(dim=1).sum()))
    assert worst <= convex.displacement * (1 + 1e-9)
    if depth == 1:
        assert worst > 0.99 * convex.displacement


@pytest.mark.slow  # seconds
@pytest.mark.parametrize("penalty", [0.02, 0.3])
def test_minima_lie_no_further_apart_than_is_charged(penalty: float) -> None:
    """Every third edge of four graphs toggled, under weak and strong penalties."""
    convex = ConvolvedRegression(**{**PUBLIC, "penalty": penalty})
    classes, worst = torch.arange(FEW) % 3, 0.0
    for pairs, x in itertools.product(graphs()[:4], messages()):
        minimum = convex.minimum(convex.convolved(few_rows(pairs), x), classes)
        assert float(minimum.norm()) <= convex.weight_bound
        for pair in list(itertools.combinations(range(FEW), 2))[::3]:
            two = convex.minimum(convex.convolved(few_rows(pairs ^ {pair}), x), classes)
            worst = max(worst, float((minimum - two).norm()))
    assert 0.0 < worst <= convex.sensitivity


def test_the_minimum_is_one_and_without_a_walk_no_edge_matters() -> None:
    convex, x = ConvolvedRegression(**PUBLIC), messages()[3]
    z, classes = convex.convolved(few_rows(graphs()[1]), x), torch.arange(FEW) % 3
    weights = convex.minimum(z, classes).requires_grad_()
    loss = torch.nn.functional.cross_entropy(z @ weights, classes) + 0.05 * weights.square().sum()
    loss.backward()  # type: ignore[no-untyped-call]
    assert weights.grad is not None and float(weights.grad.norm()) <= 1e-3 * convex.gradient_change
    convex = ConvolvedRegression(**{**PUBLIC, "restart": 1.0})
    x = messages()[3]
    assert convex.displacement == 0.0
    assert torch.equal(convex.convolved(few_rows(set()), x), convex.convolved(few_rows(graphs()[3]), x))


def test_the_release_has_the_noise_that_was_priced() -> None:
    """Standard deviation multiplier times half of what an edge may move, on a public grid; none without protection."""
    convex = ConvolvedRegression(**{**PUBLIC, "columns": 40, "classes": 10})
    weights, noise = torch.rand(40, 10, dtype=torch.float64), SecureRandomness()
    draws = torch.stack([convex.released(weights, 3.0, noise).double() - weights for _ in range(50)])
    assert float(draws.std()) == pytest.approx(3.0 * convex.sensitivity / 2, rel=0.03)
    steps = convex.released(weights, 3.0, noise).double() / convex.schedule(3.0).grid.step
    assert torch.allclose(steps, steps.round(), atol=1e-2)
    assert torch.allclose(convex.released(weights, 0.0, noise).double(), weights, atol=1e-6)
