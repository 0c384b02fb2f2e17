"""Unit k-edges in whole methods: with noisy answers frozen, any k relationships of one person move what is charged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from graphveil.methods.curator.controls import curator_ceiling, curator_controls_of
from graphveil.privacy import SeededRandomness
from tests.methods import curator_audits as audits
from tests.methods import curator_made as cm

K = 4
UNIT: dict[str, Any] = {"unit": "k-edges", "relationships": K, "epsilon": 2.0}


def pairs_of(start: Any) -> set[tuple[int, int]]:
    return {tuple(pair) for pair in start.edge_index[:, start.edge_index[0] < start.edge_index[1]].T.tolist()}


def toggled(start: Any, person: int, others: list[int]) -> Any:
    """The graph in which one person is related to exactly those of `others` whom it was not related to."""
    changed = pairs_of(start) ^ {(min(person, other), max(person, other)) for other in others}
    return cm.with_edges(start, torch.tensor(sorted(changed)).T)


def others_of(person: int, seed: int) -> list[int]:
    """k other people: some are contacts, who go, and some are not, who come."""
    drawn = np.random.default_rng(seed).permutation([other for other in range(60) if other != person])
    return [int(other) for other in drawn[:K]]


@pytest.mark.slow  # trainings
@pytest.mark.parametrize(
    ("name", "weights"), [("class-sums", None), ("gap", "uniform"), ("gap", "kernel"), ("progap", "similarity")]
)
def test_any_k_of_one_person_move_every_sum_by_no_more_than_is_charged(
    name: str, weights: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten people, k relationships each, added and removed as it comes; nothing but exact sums differs."""
    settings = UNIT if weights is None else {**UNIT, "weights": weights, "bits": 6}
    replay, start = cm.Replay(monkeypatch), cm.graph()
    first = audits.fit(name, start, **settings)
    before, worst = replay.again(), 0.0
    for person in range(0, 60, 6):
        second = audits.fit(name, toggled(start, person, others_of(person, person)), **settings)
        assert torch.equal(first.predict_proba(), second.predict_proba())
        assert (first.history, first.ledger, first.guarantee) == (second.history, second.ledger, second.guarantee)
        for one, other in zip(before, replay.calls, strict=True):
            assert one[0] == other[0] and torch.equal(one[2], other[2])
            share = _moved(one, other) / one[0].sensitivity
            assert share <= 1.0
            worst = max(worst, share)
        replay.calls.clear()
    assert worst > 0.4


def _moved(one: Any, other: Any) -> float:
    first, second = (audits.exact(call) for call in (one, other))
    change: Tensor = first - second
    return float(change.norm())


# ---- controls and ceiling of the curator's methods ----


@pytest.mark.slow  # trainings
@pytest.mark.parametrize("name", cm.KINDS)
def test_a_method_for_nodes_has_a_ceiling_and_a_control_at_its_own_price(name: str) -> None:
    start = cm.graph()
    split = cm.split_of(start)
    method = cm.fit(name, start, unit="node", epsilon=8.0)
    ceiling = curator_ceiling(method, start, split, randomness=SeededRandomness(1))
    controls = curator_controls_of(method, start, split, randomness=SeededRandomness(2))
    assert list(controls) == ["no-edges"]
    for found in (ceiling, controls["no-edges"]()):
        assert found.shape == (int(split.test.sum()),)
        assert set(found.tolist()) <= {0.0, 1.0}
