"""Attention trained on edges: what one edge changes is bounded, what is added is the noise that was priced."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from graphveil.aggregation import GridRows, ReceiverRows, unit_rows
from graphveil.errors import BudgetError, InputError
from graphveil.models.networks.attention import PairAttention
from graphveil.privacy import SeededRandomness
from graphveil.training import attention as room
from graphveil.training.attention import AttentionDescent, train_attention
from graphveil.training.noisy_updates import PrivateSchedule

NODES, COLUMNS, CLASSES = 60, 4, 3
SCHEDULE = PrivateSchedule(steps=6, rate=0.5, expected_batch=20.0, noise_multiplier=1.0, clip=0.05)


def a_graph(seed: int = 0) -> tuple[Tensor, Tensor, set[tuple[int, int]]]:
    """Unit rows, labels and directed edges: node 0 is a hub on both sides, node 59 is alone."""
    generator = torch.Generator().manual_seed(seed)
    x = unit_rows(torch.randn(NODES, COLUMNS, generator=generator))
    labels = torch.randint(0, CLASSES, (NODES,), generator=generator)
    pairs = torch.randint(1, NODES - 1, (80, 2), generator=generator).tolist()
    edges = {(u, v) for u, v in [*pairs, *([0, v] for v in range(1, NODES - 1))] if u != v}
    return x, labels, edges | {(v, u) for u, v in edges}


def rows_of(edges: set[tuple[int, int]]) -> ReceiverRows:
    return ReceiverRows.of(torch.tensor(sorted(edges)).reshape(-1, 2).T, NODES)


def network_of(seed: int = 0) -> PairAttention:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return PairAttention(COLUMNS, CLASSES)


class Trace:
    """Every step's batch and exact sum; with `frozen` the steps go on from what was found there."""

    def __init__(self, patch: pytest.MonkeyPatch, frozen: Trace | None = None) -> None:
        self.batches: list[Tensor] = []
        self.sums: list[Tensor] = []
        real = AttentionDescent.clipped_sum

        def watched(me: AttentionDescent, chosen: Tensor) -> Tensor:
            self.batches.append(chosen)
            self.cap = me._schedule.grid.cap
            self.sums.append(real(me, chosen))
            original = self.sums if frozen is None else frozen.sums
            return original[len(self.sums) - 1].clone()

        patch.setattr(AttentionDescent, "clipped_sum", watched)


def replay(edges: set[tuple[int, int]], frozen: Trace | None = None) -> Trace:
    x, labels, _ = a_graph()
    how: dict[str, Any] = {"randomness": SeededRandomness(4), "soft": 2.0}
    with pytest.MonkeyPatch.context() as patch:
        trace = Trace(patch, frozen)
        train_attention(network_of(), x, rows_of(edges), torch.arange(NODES), labels, SCHEDULE, **how)
    return trace


TOGGLES: dict[str, tuple[list[tuple[int, int]], int]] = {
    "one entry at the hub": ([(59, 0)], 1),
    "one entry at a node that was alone": ([(0, 59)], 1),
    "one entry between two": ([(5, 6)], 1),
    "a friendship with the hub": ([(0, 59), (59, 0)], 2),
    "a friendship between two": ([(5, 6), (6, 5)], 2),
    "a friendship of the hub that goes": ([(0, 7), (7, 0)], 2),
}


def largest_move(toggle: list[tuple[int, int]]) -> tuple[float, Trace, Trace]:
    """The largest change of a step's exact sum in units of the clipping norm, other answers frozen."""
    _, _, edges = a_graph()
    first = replay(edges)
    second = replay(edges ^ set(toggle), first)
    moves = [float((a - b).norm()) / SCHEDULE.grid.cap for a, b in zip(first.sums, second.sums, strict=True)]
    return max(moves), first, second


@pytest.mark.parametrize(("toggle", "entries"), TOGGLES.values(), ids=TOGGLES.keys())
def test_an_edge_moves_a_sum_by_twice_the_norm_for_each_target(toggle: list[tuple[int, int]], entries: int) -> None:
    move, first, second = largest_move(toggle)
    assert move <= 2 * entries
    changed = {v for _, v in toggle}
    assert any(changed & set(batch.tolist()) for batch in first.batches)
    for a, b, batch, again in zip(first.sums, second.sums, first.batches, second.batches, strict=True):
        assert torch.equal(batch, again)
        inside = len(changed & set(batch.tolist()))
        assert float((a - b).norm()) <= 2 * inside * SCHEDULE.grid.cap
        if not inside:
            assert torch.equal(a, b)


def test_a_missing_clip_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same test with gradients that are put on the grid as they are must fail."""

    def unclipped(x: Tensor, *, cap: float, bits: int, normalise: bool) -> GridRows:
        return GridRows((x * 2.0**bits / cap).trunc(), cap, bits)

    monkeypatch.setattr(room, "quantise", unclipped)
    assert largest_move(TOGGLES["a friendship between two"][0])[0] > 4
    assert largest_move(TOGGLES["one entry between two"][0])[0] > 2


def released(schedule: PrivateSchedule, *, protect: bool = True) -> np.ndarray:
    """The noise of every step that had an empty batch, in units of the clipping norm."""
    x, labels, edges = a_graph()
    network, noise = network_of(), []
    descent = AttentionDescent(network, x, rows_of(edges), torch.arange(NODES), labels, schedule, protect=protect)
    source = SeededRandomness(11)
    for _ in range(schedule.steps):
        descent.step(source)
        flat = torch.cat([p.grad.flatten() for p in network.parameters() if p.grad is not None])
        noise.append(flat.double().numpy() * schedule.expected_batch / schedule.clip)
    return np.concatenate(noise)


EMPTY = PrivateSchedule(steps=30, rate=1e-12, expected_batch=20.0, noise_multiplier=3.0, clip=0.05)


def right_noise(noise: np.ndarray, multiplier: float) -> bool:
    """Whether the spread fits N(0, multiplier^2), at six standard errors: false alarms at 2e-9."""
    error = multiplier / np.sqrt(2 * len(noise))
    return bool(abs(noise.std() - multiplier) < 6 * error and abs(noise.mean()) < 6 * multiplier / np.sqrt(len(noise)))


@pytest.mark.slow  # seconds
def test_empty_batches_are_noised_and_counted_and_wrong_noise_is_found() -> None:
    noise = released(EMPTY)
    assert len(noise) == 30 * sum(p.numel() for p in network_of().parameters())
    assert right_noise(noise, 3.0)
    steps = noise * EMPTY.grid.cap
    assert np.allclose(steps, np.rint(steps), atol=2e-2)
    assert not right_noise(released(EMPTY, protect=False), 3.0)
    for multiplier in (0.05, 1.5, 2.0):
        assert not right_noise(released(replace(EMPTY, noise_multiplier=multiplier)), 3.0)


def test_targets_that_are_no_number_add_nothing() -> None:
    x, labels, edges = a_graph()
    x[9] = torch.nan
    hears = {v for u, v in edges if u == 9} | {9}
    network = network_of()
    descent = AttentionDescent(network, x, rows_of(edges), torch.arange(NODES), labels, SCHEDULE)
    for target in range(NODES):
        assert bool((descent.clipped_sum(torch.tensor([target])) == 0).all()) == (target in hears)
    source = SeededRandomness(1)
    for _ in range(SCHEDULE.steps):
        descent.step(source)
    assert all(bool(p.isfinite().all()) for p in network.parameters())


def test_no_more_steps_than_declared_and_what_does_not_match_is_refused() -> None:
    x, labels, edges = a_graph()
    descent = AttentionDescent(network_of(), x, rows_of(edges), torch.arange(NODES), labels, SCHEDULE)
    source = SeededRandomness(1)
    for step in range(SCHEDULE.steps):
        assert descent.steps_taken == step
        descent.step(source)
    with pytest.raises(BudgetError, match="all 6 private steps are taken"):
        descent.step(source)
    with pytest.raises(InputError, match="one row a node and one known label a target"):
        AttentionDescent(network_of(), x, rows_of(edges), torch.arange(3), labels, SCHEDULE)
    with pytest.raises(InputError, match="one row a node"):
        AttentionDescent(network_of(), x, rows_of(edges), torch.arange(NODES), labels - 1, SCHEDULE)
