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

from graphveil.attacks.federation_features import solve_features, unmask_features
from graphveil.attacks.federation_labels import groups, matched, unit_rows
from graphveil.attacks.federation_views import Recorded, record
from graphveil.federation.core.guarantees import guarantee_of
from graphveil.federation.core.setting import Member, Setting
from graphveil.federation.modes.holder import Holding
from graphveil.federation.modes.labels import LabelHead
from graphveil.privacy import SeededRandomness

N, CLASSES, WIDTH, ROUNDS = 200, 3, 8, 16
OWN, THEIRS = 15, 20  # columns of the attacker "a" and of its victim "b": fewer than WIDTH * ROUNDS
MODES = ("individual", "paper", "shared-linear")
WORTH = 0.7310586  # of a feature that is not 0


def between(run: Recorded, sender: str, to: str, kind: str) -> list[Tensor]:
    """The bodies of one kind of message."""
    return [m.body for m in run.messages if (m.sender, m.to, m.kind) == (sender, to, kind)]


def features(columns: int, labels: Tensor, generator: torch.Generator) -> Tensor:
    """Words, 0 or WORTH, which depend a little on the class."""
    common = torch.rand(CLASSES, columns, generator=generator)[labels] * 0.6
    return (torch.rand(N, columns, generator=generator) < common).float() * WORTH


@cache
def spied(mode: str, epsilon: float = math.inf, epsilon_y: float = math.inf, momentum: float = 0.9) -> Recorded:
    generator = torch.Generator().manual_seed(11)
    labels = torch.randint(0, CLASSES, (N,), generator=generator)
    train, val = torch.arange(N) < 60, (torch.arange(N) >= 60) & (torch.arange(N) < 100)
    held, members = {}, []
    for name, columns in (("a", OWN), ("b", THEIRS)):
        pairs = torch.randint(0, N, (2, 300), generator=generator)
        pairs = pairs[:, pairs[0] < pairs[1]].unique(dim=1)
        head = LabelHead(labels, train, val, ~(train | val)) if name == "a" else None
        held[name] = Holding(features(columns, labels, generator), torch.cat([pairs, pairs.flip(0)], 1), 1.0, head)
        members.append(Member(name, columns, name == "a"))
    setting = Setting.of(
        tuple(members),
        CLASSES,
        mode=mode,
        width=WIDTH,
        hops=2,
        dropout=0.0,
        epochs=ROUNDS,
        opened=True,
        epsilon=epsilon,
        epsilon_y=epsilon_y,
        momentum=momentum,
        shared_rate=20.0 if mode == "shared-linear" else 200.0,
    )
    return record(setting, held, randomness=SeededRandomness(3), seed=5, states=True)


def named_right(rows: Tensor, labels: Tensor) -> float:
    """Share of rows whose group names their label, groups found by direction and named as well as can be."""
    return matched(groups(unit_rows([rows], len(rows)), CLASSES), labels.numpy())


def test_open_first_layers_and_known_weights_give_every_feature_of_the_other_holder() -> None:
    """X_B [W_1 .. W_T] = h0 - X_A W_A, stacked over rounds, has one solution once T h >= d_B."""
    run = spied("paper")
    found = solve_features(run.view("a", naive=True), "b")
    assert found is not None
    assert torch.allclose(found, run.holdings["b"].features.double(), atol=1e-4)
    assert solve_features(run.view("a"), "b") is None


def test_a_dealer_that_passes_messages_on_unmasks_every_feature_and_otherwise_none() -> None:
    run = spied("paper")
    found = unmask_features(run.view("server", naive=True), "b")
    assert found is not None
    assert torch.allclose(found, run.holdings["b"].features.double(), atol=1e-5)
    assert unmask_features(run.view("server"), "b") is None


@pytest.mark.parametrize("mode", ["individual", "paper"])
def test_rows_of_gradients_group_by_label_at_the_holder_without_labels(mode: str) -> None:
    run = spied(mode)
    for body in between(run, "server", "b", "embedding-gradient"):
        trained = body.abs().sum(dim=1) > 0
        assert named_right(body[trained], run.labels[trained]) > 0.99


@pytest.mark.slow  # whole rounds
@pytest.mark.parametrize("mode", MODES)
def test_the_server_reads_labels_from_gradients_unless_they_were_randomized_and_is_said_to(mode: str) -> None:
    labels = spied(mode).labels[:60]
    open_, hidden = spied(mode), spied(mode, epsilon_y=0.5)
    assert named_right(between(open_, "a", "server", "hidden-gradient")[5], labels) > 0.99
    assert guarantee_of(open_.setting).assumption("labels-in-gradients")
    for body in between(hidden, "a", "server", "hidden-gradient"):
        assert named_right(body, labels) < 0.65  # randomized response keeps 0.45
    assert not guarantee_of(hidden.setting).assumption("labels-in-gradients")
