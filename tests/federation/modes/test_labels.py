"""The label holder's head: labels are randomized once, those that validate too, and a restart goes on with them."""

from __future__ import annotations

from typing import Any

import torch

from graphveil.federation.core.setting import Member, Setting
from graphveil.federation.modes.labels import LabelHead
from graphveil.privacy import SeededRandomness

N, CLASSES = 600, 3
LABELS = torch.arange(N) % CLASSES
TRAIN, VAL = torch.arange(N) < 200, (torch.arange(N) >= 200) & (torch.arange(N) < 400)


def opened(seed: int, **changes: Any) -> LabelHead:
    setting = Setting.of((Member("h1", 4, True), Member("h2", 4, False)), CLASSES, **{"epsilon_y": 0.5, **changes})
    head = LabelHead(LABELS, TRAIN, VAL, ~(TRAIN | VAL))
    head.open(setting, randomness=SeededRandomness(seed), generator=torch.Generator().manual_seed(0))
    return head


def test_labels_that_train_and_that_validate_are_randomized_and_no_other_is_heard() -> None:
    """At epsilon 0.5 of 3 classes a label stays with probability 0.452: of 200 by chance 120 or more in 1e-5 cases."""
    heard = opened(1).reported
    for mask in (TRAIN, VAL):
        assert 61 < int((heard[mask] == LABELS[mask]).sum()) < 120
    assert bool((heard[~(TRAIN | VAL)] == -1).all())


def test_a_restart_goes_on_with_the_labels_as_they_were_randomized() -> None:
    """True ones would be a second answer without noise, ones that are randomized again a second report."""
    first, again = opened(1), opened(2)
    assert not torch.equal(first.reported, again.reported)
    again.load(first.state())
    assert torch.equal(first.reported, again.reported)
