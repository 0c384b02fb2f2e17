"""What curious parties can find out: attacks that succeed against the paper's open first layer, and where they fail.

Attackers see exactly what the protocol sends them, and nothing else: every message is recorded with its content.
Source of the attacks: linear algebra over rounds; a holder knows its own features and what was opened to it.
"""

from __future__ import annotations

import math
from functools import cache

import pytest
import torch
from torch import Tensor

from graphveil.attacks.federation.features import solve_features, unmask_features
from graphveil.attacks.federation.labels import groups, matched, unit_rows
from graphveil.attacks.federation.views import Recorded, record
from graphveil.federation.core.guarantees import guarantee_of
from graphveil.privacy import SeededRandomness
from tests.federation.views import CLASSES, holdings, setting_of

MODES = ("individual", "paper", "shared-linear")


def between(run: Recorded, sender: str, to: str, kind: str) -> list[Tensor]:
    """The bodies of one kind of message."""
    return [m.body for m in run.messages if (m.sender, m.to, m.kind) == (sender, to, kind)]


@cache
def spied(mode: str, epsilon_y: float = math.inf) -> Recorded:
    """Two holders of 20 columns each: fewer than 16 rounds of width 8 open."""
    by_holder, rate = holdings(2, 200, 20), 20.0 if mode == "shared-linear" else 200.0
    setting = setting_of(by_holder, mode=mode, epochs=16, opened=True, epsilon_y=epsilon_y, shared_rate=rate)
    return record(setting, by_holder, randomness=SeededRandomness(3), seed=5, states=True)


def named_right(rows: Tensor, labels: Tensor) -> float:
    """Share of rows whose group names their label, groups found by direction and named as well as can be."""
    return matched(groups(unit_rows([rows], len(rows)), CLASSES), labels.numpy())


def test_open_first_layers_and_known_weights_give_every_feature_of_the_other_holder() -> None:
    """X_B [W_1 .. W_T] = h0 - X_A W_A, stacked over rounds, has one solution once T h >= d_B."""
    run = spied("paper")
    features = solve_features(run.view("h1", naive=True), "h2")
    assert features is not None
    assert torch.allclose(features, run.holdings["h2"].features.double(), atol=1e-4)
    assert solve_features(run.view("h1"), "h2") is None


def test_a_dealer_that_passes_messages_on_unmasks_every_feature_and_otherwise_none() -> None:
    run = spied("paper")
    features = unmask_features(run.view("server", naive=True), "h2")
    assert features is not None
    assert torch.allclose(features, run.holdings["h2"].features.double(), atol=1e-5)
    assert unmask_features(run.view("server"), "h2") is None


@pytest.mark.parametrize("mode", ["individual", "paper"])
def test_rows_of_gradients_group_by_label_at_the_holder_without_labels(mode: str) -> None:
    run = spied(mode)
    for body in between(run, "server", "h2", "embedding-gradient"):
        assert named_right(body, run.labels[:100]) > 0.99


@pytest.mark.slow  # whole rounds
@pytest.mark.parametrize("mode", MODES)
def test_the_server_reads_labels_from_gradients_unless_they_were_randomized_and_is_said_to(mode: str) -> None:
    labels = spied(mode).labels[:100]
    open_, hidden = spied(mode), spied(mode, epsilon_y=0.5)
    assert named_right(between(open_, "h1", "server", "hidden-gradient")[5], labels) > 0.99
    assert guarantee_of(open_.setting).assumption("labels-in-gradients")
    for body in between(hidden, "h1", "server", "hidden-gradient"):
        assert named_right(body, labels) < 0.65  # randomized response keeps 0.45
    assert not guarantee_of(hidden.setting).assumption("labels-in-gradients")
