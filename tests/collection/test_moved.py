"""Printed bounds lie above every influence that is measured, and a bound of another scale does not.

Attacks are those that reach furthest; assigned coordinates are drawn, and their bound fails once in 10^6.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from graphveil.aggregation.propagation import Adjacency
from graphveil.collection import moved
from graphveil.collection.law import class_chances, flip_chance
from graphveil.collection.moved import (
    Bound,
    bounds,
    may_change,
    of_class,
    of_mean,
    of_targets,
    on_average,
    sentence_of,
    worth,
)
from graphveil.device.features import Features
from graphveil.device.label import Label
from graphveil.graphs import social_graph
from tests.on_device.signing import features, label, links, task_of
from tests.pages import ROOT

PEOPLE = 2000
SHARES = [0.01, 0.05, 0.1]


def class_moves(forged: int, seed: int) -> float:
    """By how much the share of a class moves that all forgers name, none of whom had."""
    rng, field = np.random.default_rng(seed), Label.of(label("1"))
    other, true = class_chances(field)
    reports = rng.integers(0, 3, PEOPLE)
    who = np.flatnonzero(reports != 2)[:forged]
    after = reports.copy()
    after[who] = 2
    return float((np.mean(after == 2) - np.mean(reports == 2)) / (true - other))


@pytest.mark.parametrize("share", SHARES)
def test_the_share_of_a_class_moves_to_its_bound_and_not_beyond(share: float) -> None:
    forged = math.ceil(share * PEOPLE)
    bound = of_class(Label.of(label("1")), PEOPLE, forged)
    for seed in range(5):
        measured = class_moves(forged, seed)
        assert measured <= bound + 1e-12
        # Met, so that nine tenths of it would be no bound.
        assert measured > 0.9 * bound


def mean_moves(field: Features, forged: int, seed: int, *, chosen: bool) -> np.ndarray:
    """By how much each coordinate's mean moves where forgers send ones at it, and would have sent zeros."""
    rng, width = np.random.default_rng(seed), len(field.names)
    columns = np.zeros(forged, np.int64) if chosen else rng.integers(0, width, forged)
    return 2 * worth(field) * np.bincount(columns, minlength=width) / PEOPLE


@pytest.mark.parametrize("share", SHARES)
def test_the_mean_of_a_feature_moves_by_less_than_its_bound(share: float) -> None:
    field, forged = Features.of(features("1", 200)), math.ceil(share * PEOPLE)
    bound = of_mean(field, PEOPLE, forged)
    found = np.array([mean_moves(field, forged, seed, chosen=False) for seed in range(50)])
    assert found.max() <= bound
    # A tenth of it does not hold, and neither does the bound of the average.
    assert found.max() > 0.1 * bound and found.max() > on_average(field, PEOPLE, forged)
    # Over coordinates and placings together the average is met.
    assert found.mean() == pytest.approx(on_average(field, PEOPLE, forged))


def people() -> tuple[Adjacency, np.ndarray, np.ndarray]:
    """A graph, and noisy labels of half of its people."""
    graph = social_graph(400, average_degree=8, dimension=4, classes=3, apps=2, seed=2)
    rng = np.random.default_rng(1)
    noisy = np.where(rng.random(400) < 0.7, graph.y.numpy(), rng.integers(0, 3, 400))
    return Adjacency.of(graph.edge_index, 400), np.where(rng.random(400) < 0.5, noisy, -1), graph.y.numpy()


def targets(adjacency: Adjacency, labels: np.ndarray) -> np.ndarray:
    told = np.eye(3)[labels.clip(0)] * (labels >= 0)[:, None]
    for _ in range(4):
        told = adjacency.to_scipy() @ told
    return told.argmax(axis=1)


def flipped(labels: np.ndarray, who: np.ndarray, seed: int) -> np.ndarray:
    """Labels of which those of forgers are another class: one for all, the next one, or any."""
    after, rng = labels.copy(), np.random.default_rng(seed)
    sent = who & (labels >= 0)
    ways = (np.full(len(labels), seed % 3), (labels + 1) % 3, rng.integers(0, 3, len(labels)))
    after[sent] = ways[seed % len(ways)][sent]
    return after


@pytest.mark.parametrize("share", SHARES)
def test_targets_that_cannot_change_do_not(share: float) -> None:
    adjacency, labels, _ = people()
    before, spread, broken = targets(adjacency, labels), adjacency.to_scipy(), 0
    bound = of_targets(spread, labels, 3, 4, share).most / 100
    for seed in range(30):
        who = np.random.default_rng([seed, 9]).random(400) < share
        changed = targets(adjacency, flipped(labels, who, seed)) != before
        able = may_change(spread, labels, 3, 4, who[:, None])[:, 0]
        assert not (changed & ~able).any()
        # Of another scale, a quarter of a vote a report, it calls some safe that change.
        quarter = may_change(spread, labels, 3, 4, 0.25 * who[:, None])[:, 0]
        broken += int((changed & ~quarter).any())
        if abs(who.mean() - share) < 0.2 * share:
            assert changed[labels >= 0].mean() <= bound
    assert broken > 5


def test_a_collections_bounds_are_told_rounded_up() -> None:
    task = task_of(features("1", 20), label("1"), links(50, "2"), people=50)
    found = bounds(task, 40)
    assert [one.what.split()[-1] for one in found] == ["features", "feature", "class", "links"]
    field = task.fields[2]
    assert found[3].most == pytest.approx(2 / (1 - 2 * flip_chance(field)))  # type: ignore[arg-type]
    sentence = sentence_of(found)
    assert sentence.startswith("5% forged reports move averaged features by at most") and sentence.endswith(
        "accuracy has no bound, and was measured: docs/how-to/forged-reports.md"
    )
    assert (ROOT / moved.MEASURED).is_file()
    assert Bound("x", 0.12345, "points").sentence == "x by at most 0.124 points"
    assert Bound("x", 0.0, "").sentence == "x by at most 0"
    assert replace(found[0], most=1.0).sentence == "averaged features by at most 1 on average"
    assert moved.PRINTED == 0.05
    assert {one.most for one in bounds(task, 10, 0.0)} == {0.0}
