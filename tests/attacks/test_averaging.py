"""Fresh noise wears off; a permanent answer does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import binom
from torch import Tensor

from graphveil.attacks import averaging
from graphveil.errors import InputError
from graphveil.mechanisms import AnalyticGaussian, Laplace, MultiBit, RandomizedResponse
from graphveil.privacy import SeededRandomness

RANGE = {"dimension": 4, "low": 0.0, "high": 1.0}
LOCAL = {
    "labels": RandomizedResponse(epsilon=1.0, classes=2),
    "multi-bit": MultiBit(epsilon=1.0, **RANGE),  # type: ignore[arg-type]
    "laplace": Laplace(epsilon=1.0, **RANGE),  # type: ignore[arg-type]
    "gaussian": AnalyticGaussian(epsilon=1.0, delta=1e-6, **RANGE),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", LOCAL)
def test_fresh_reports_go_beyond_the_promise_and_one_does_not(name: str) -> None:
    once = averaging(LOCAL[name], randomness=SeededRandomness(1), rounds=1)
    assert not once.beats_limit
    often = averaging(LOCAL[name], randomness=SeededRandomness(2), rounds=21)
    assert often.beats_limit and often.auc.low > 0.7
    assert often.figures["auc after 1"] < often.figures["auc after 5"] < often.figures["auc after 21"]


@pytest.mark.slow  # attacks on trained networks
@pytest.mark.parametrize("name", LOCAL)
def test_permanent_reports_lose_nothing(name: str) -> None:
    """Checklist item 19: after any number of rounds the attack knows what it knew after one."""
    found = averaging(LOCAL[name], randomness=SeededRandomness(3), rounds=21, people=12, permanent=True)
    assert not found.beats_limit
    assert found.figures["auc after 21"] == pytest.approx(found.figures["auc after 1"])
    assert "no more" in found.limit_note


def test_a_device_may_be_given_and_not_two() -> None:
    mechanism, noise = LOCAL["labels"], SeededRandomness(3)
    kept = {label: mechanism.randomize(torch.full((500,), label), randomness=noise) for label in (0, 1)}

    def device(held: Tensor, _: int) -> Any:
        return kept[int(held[0])]

    found = averaging(mechanism, randomness=noise, rounds=101, device=device)
    assert not found.beats_limit
    assert found.figures["auc after 101"] == pytest.approx(found.figures["auc after 1"])
    with pytest.raises(InputError, match="one of the two"):
        averaging(mechanism, randomness=noise, device=device, permanent=True)


def test_the_majority_of_five_bits_at_epsilon_one() -> None:
    """0.876 of the people are found (exact: binomial); 2,000 of each, six standard errors."""
    found = averaging(LOCAL["labels"], randomness=SeededRandomness(4), rounds=5, people=2000)
    keep = np.e / (1 + np.e)
    right = 1 - binom.cdf(2, 5, keep)
    assert (found.advantage.mean + 1) / 2 == pytest.approx(right, abs=6 * np.sqrt(right * (1 - right) / 4000))
    assert right == pytest.approx(0.876, abs=1e-3)
