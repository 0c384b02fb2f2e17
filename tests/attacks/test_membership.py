"""Who trained, told by confidence and by shadows; planted overfitting is caught."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from graphveil.attacks import lira, membership
from graphveil.attacks.membership_inference import confidence
from graphveil.errors import InputError
from graphveil.graphs import Split, random_split
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
