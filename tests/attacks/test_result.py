"""Scores, their intervals and the limits of epsilon."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from graphveil.attacks import AttackResult, Limit, judge
from graphveil.attacks.limits import nothing
from graphveil.attacks.result import auc_of
from graphveil.errors import InputError

OPEN = nothing("nothing is protected")


def judged(members: np.ndarray, others: np.ndarray, limit: Limit = OPEN) -> AttackResult:
    return judge("toy", "a toy", members, others, limit=limit)


def test_auc_is_the_chance_of_a_pair_in_order() -> None:
    rng = np.random.default_rng(0)
    members, others = rng.integers(0, 6, 40), rng.integers(0, 5, 70)
    pairs = (members[:, None] > others).mean() + 0.5 * (members[:, None] == others).mean()
    assert auc_of(members, others) == pytest.approx(pairs)
    assert judged(members, others).auc.mean == pytest.approx(pairs)


def test_constant_scores_find_nothing() -> None:
    found = judged(np.ones(50), np.ones(400))
    assert found.auc.mean == found.auc.low == found.auc.high == 0.5
    assert found.advantage.low <= 0 <= found.advantage.high
    assert found.tpr_at_1_fpr.mean == pytest.approx(0.01)


def test_intervals_cover_and_reject() -> None:
    """Normal scores a shift of 1 apart: AUC Phi(1/sqrt 2).  20 seeds; false alarm if more than 4 miss (p < 0.003)."""
    from scipy.stats import norm

    truth, advantage = norm.cdf(1 / math.sqrt(2)), 2 * norm.cdf(0.5) - 1
    rng = np.random.default_rng(1)
    missed, wrong, lucky = 0, 0, 0
    for _ in range(20):
        found = judged(rng.normal(1, 1, 120), rng.normal(0, 1, 240))
        missed += not found.auc.low <= truth <= found.auc.high
        wrong += found.auc.low <= truth + 0.12 <= found.auc.high  # a wrong truth is turned down
        lucky += found.advantage.low > advantage
    assert missed <= 4 and wrong <= 4 and lucky <= 4


def test_a_response_at_the_limit_is_let_through_and_one_beyond_it_is_caught() -> None:
    """Randomized response at epsilon 1; claimed at 1 and, wrongly, at 0.5."""
    rng = np.random.default_rng(2)
    keep = math.e / (1 + math.e)
    members, others = (rng.random(4000) < keep).astype(float), (rng.random(4000) < 1 - keep).astype(float)
    assert not judged(members, others, Limit(1.0, 0.0, "")).beats_limit
    assert judged(members, others, Limit(0.5, 0.0, "")).beats_limit


def test_round_trip_as_json() -> None:
    found = judged(np.arange(5.0), np.arange(9.0) - 2)
    again = AttackResult.from_dict(json.loads(json.dumps(found.to_dict())))
    assert again == replace(found)
    assert "too few" in " ".join(found.notes)


def test_refusals() -> None:
    with pytest.raises(InputError, match="at least two"):
        judged(np.ones(1), np.ones(5))
    with pytest.raises(InputError, match="finite"):
        judged(np.array([1.0, np.nan]), np.ones(5))


@pytest.mark.parametrize(
    "changed",
    [
        *({"limit": "x"}, {"baseline": []}, {"positives": None}, {"delta": True}, {"name": 3}, {"notes": [1]}),
        *({"figures": {"a": "b"}}, {"baseline_note": ["x"]}, {"samples": 1}, {"limit_note": None}),
    ],
    ids=str,
)
def test_a_file_whose_fields_are_of_another_kind_is_refused(changed: dict[str, Any]) -> None:
    said = {**judged(np.arange(5.0), np.arange(9.0) - 2).to_dict(), **changed}
    with pytest.raises(TypeError):
        AttackResult.from_dict(said)
