"""Who trained, told by confidence and by shadows; planted overfitting is caught."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import binom
from torch import Tensor

from graphveil.attacks import averaging, lira, membership
from graphveil.attacks.membership_inference import confidence
from graphveil.errors import InputError
from graphveil.graphs import Split, random_split
from graphveil.mechanisms import AnalyticGaussian, Laplace, MultiBit, RandomizedResponse
from graphveil.methods import GAP
from graphveil.methods.baselines.network import baseline
from graphveil.privacy import SeededRandomness
from tests.attacks import made


class Remembers:
    """Knows the labels that trained it a little better than all others, beside what makes nodes differ."""

    def __init__(self, split: Split, seed: int = 0, gain: float = 1.0) -> None:
        self.split, self.seed, self.gain = split, seed, gain

    def predict_proba(self, graph: Any) -> Tensor:
        hard = torch.randn(int(graph.num_nodes), generator=torch.Generator().manual_seed(5)) * 3
        luck = torch.randn(len(hard), generator=torch.Generator().manual_seed(100 + self.seed)) * 0.3
        right = torch.sigmoid(hard + luck + self.gain * self.split.train)
        found = ((1 - right) / 2)[:, None].repeat(1, 3)
        return found.scatter(1, graph.y[:, None], right[:, None])


SPLIT = random_split(made.graph(), 0)


def test_overfitting_is_seen_by_shadows_where_confidence_hardly_does() -> None:
    plain = membership(Remembers(SPLIT), made.graph(), split=SPLIT)
    found = lira(Remembers(SPLIT), made.graph(), split=SPLIT, train=Remembers, shadows=12)
    assert found.auc.low > 0.9 > plain.auc.mean
    assert found.figures["auc of confidence alone"] == pytest.approx(plain.auc.mean)
    assert found.baseline is not None and abs(found.baseline - 0.5) < 0.12


def test_who_remembers_nothing_is_not_accused() -> None:
    """One seed; a 95% interval misses 0.5 in one of twenty, this one does not."""

    def train(split: Split, seed: int) -> Remembers:
        return Remembers(split, seed, gain=0.0)

    found = lira(train(SPLIT, 0), made.graph(), split=SPLIT, train=train, shadows=8)
    assert found.auc.low <= 0.5 <= found.auc.high
    constant = membership(made.Constant(), made.graph(), split=SPLIT)
    assert constant.auc.low <= 0.5 <= constant.auc.high


@pytest.mark.slow  # 5 s: noise of node-level training; limits of nodes are in test_limits
def test_a_whole_node_has_a_limit() -> None:
    method = GAP(epsilon=8.0, unit="node", degree_bound=10, epochs=2, hidden=4, batch=100)
    method.fit(made.graph(), split=SPLIT, randomness=SeededRandomness(0))
    found = membership(method, made.graph(), split=SPLIT)
    assert found.limit is not None and found.epsilon == pytest.approx(8.0) and not found.beats_limit


def test_confidence_is_the_log_odds_of_the_true_class() -> None:
    chances = made.plain().predict_proba().double()
    right = chances.gather(1, made.graph().y[:, None]).flatten()
    exact = torch.log(right / (chances.sum(dim=1) - right).clamp_min(1e-12)).numpy()
    assert confidence(made.plain(), made.graph()) == pytest.approx(exact, abs=1e-5)


def test_too_few_shadows() -> None:
    with pytest.raises(InputError, match="shadows"):
        lira(made.Constant(), made.graph(), split=SPLIT, train=Remembers, shadows=3)


def test_a_plain_network_that_learned_by_heart_is_caught() -> None:
    method = baseline("mlp", epochs=300, dropout=0.0, weight_decay=0.0, selection="last")
    method.fit(made.graph(), split=SPLIT, randomness=SeededRandomness(0))
    found = membership(method, made.graph(), split=SPLIT)
    assert found.auc.low > 0.6 and "public" in found.limit_note and found.limit is None


# ---- fresh noise wears off; a permanent answer does not ----


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
