"""DPDGC: learning the rows and summing them are charged together; what is refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from graphveil.errors import InputError
from graphveil.methods import DPDGC, load_method
from graphveil.methods.curator.dpdgc import TOPOLOGY
from graphveil.privacy import ChangedSamples, Hops, SeededRandomness, pipeline_epsilon
from tests.methods import curator_made as cm

FAST: dict[str, Any] = {"epochs": 4, "hidden": 4, "epsilon": 4.0, "batch": 1000, "passes": 4}


def fit(**settings: Any) -> Any:
    start = cm.graph()
    return DPDGC(**{**FAST, **settings}).fit(start, split=cm.split_of(start), randomness=SeededRandomness(1))


def price_of(row: Any, entries: int) -> float:
    """What the noise that a ledger row names costs one unit, computed afresh."""
    said = row.parameters
    parts = (
        Hops(count=1, sensitivity=math.sqrt(entries)),
        ChangedSamples(steps=int(said["steps"]), rate=float(said["rate"]), samples=entries),
    )
    noise = {"hops": (float(said["sigma_1"]),), "training": (float(said[f"multiplier_{TOPOLOGY}"]),)}
    return pipeline_epsilon(parts, noise, 1e-5)


@pytest.mark.parametrize(("unit", "entries"), [("edge", 2), ("directed-edge", 1)])
def test_the_ledger_says_what_was_charged_and_it_was_enough(unit: str, entries: int, tmp_path: Path) -> None:
    method = fit(unit=unit)
    (row,) = method.ledger.spends
    assert row.mechanism == "noisy sums and dp-sgd on edges"
    assert 0.99 * 4.0 <= price_of(row, entries) <= 4.0
    assert method.guarantee.epsilon == 4.0 and "features and labels are NOT protected" in method.guarantee.sentence()
    if unit == "directed-edge":
        assert method.epsilon_relationship == pytest.approx(price_of(row, 2))
    method.save(tmp_path)
    loaded = load_method(tmp_path)
    assert loaded.guarantee == method.guarantee
    assert torch.equal(loaded.predict_proba(), method.predict_proba())


@pytest.mark.parametrize(
    "wrong",
    [
        {"unit": "node"},
        {"unit": "k-edges", "relationships": 3},
        {"queries": 1},
        {"hops": 2},
        {"weights": "kernel"},
    ],
)
def test_what_is_not_priced_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        DPDGC(epsilon=1.0, **wrong)


def test_without_protection_nothing_is_charged() -> None:
    method = fit(epsilon=math.inf)
    assert method.ledger.spends == () and method.published.noise.sigmas == (0.0,)
    assert method.score(cm.graph()) > 0.2
