"""The plaintext twin of a federation: seeds, noise, James-Stein rows, and the epoch that is kept."""

from __future__ import annotations

from dataclasses import replace

import torch

from graphveil.federation.simulation import vertical_partition
from graphveil.graphs import random_split, social_graph
from graphveil.reproduction import clear
from graphveil.reproduction.clear import Outcome, Part, Plan

GRAPH = social_graph(120, average_degree=8, dimension=20, classes=3, seed=6)
SPLIT = random_split(GRAPH, 1)
PLAN = Plan("paper", width=8, hops=1, epochs=6)


def parts(holders: int = 2) -> list[Part]:
    """What each of some holders with equal shares has."""
    return vertical_partition(GRAPH, (1,) * holders, seed=0)


def outcome(plan: Plan = PLAN, seed: int = 0, holders: int = 2) -> Outcome:
    """A run on the made graph."""
    return clear.run(plan, parts(holders), GRAPH.y, SPLIT, seed)


def test_the_seed_fixes_a_run_and_leaves_the_global_generator_alone() -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first, again = outcome(), outcome()
    assert first == again and torch.equal(torch.get_rng_state(), before)


def test_the_epoch_that_validates_best_is_kept() -> None:
    """A longer run sees the epochs of a shorter one first, so it never validates worse."""
    vals = [outcome(replace(PLAN, epochs=epochs, validate=1)).val for epochs in (1, 3, 6)]
    assert vals == sorted(vals)


def test_noise_beyond_measure_leaves_no_more_than_the_classes_shares() -> None:
    """Test accuracy of 30 nodes under noise of 1,000 C: above 0.8 would need features (false alarms below 1e-3)."""
    assert outcome(replace(PLAN, sigma=1000.0, shrink=False)).test < 0.8
    assert outcome(replace(PLAN, sigma=1e-9, shrink=False)).best >= 1


def test_tiny_noise_changes_next_to_nothing_and_shrinking_it_neither() -> None:
    plain = outcome(replace(PLAN, epochs=1))
    for shrink in (False, True):
        noisy = outcome(replace(PLAN, epochs=1, sigma=1e-7, shrink=shrink))
        assert abs(noisy.test - plain.test) <= 1 / int(SPLIT.test.sum())
