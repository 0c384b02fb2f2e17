"""Seals: one for one state of one holder, and none that can be compared with a guess."""

from __future__ import annotations

import torch

from graphveil.federation.crypto.seals import Sealer
from graphveil.privacy import SeededRandomness

FIXED, SHARE = torch.arange(6), torch.arange(4)


def sealer(seed: int, fixed: torch.Tensor = FIXED) -> Sealer:
    return Sealer.of(fixed, randomness=SeededRandomness(seed))


def test_another_salt_share_or_state_has_another_seal_and_a_restart_the_same() -> None:
    seals = [
        sealer(1).seal(SHARE),
        sealer(2).seal(SHARE),
        sealer(1).seal(SHARE + 1),
        sealer(1, FIXED + 1).seal(SHARE),
    ]
    assert len(set(seals)) == 4
    salt = sealer(1).state()["seal/salt"]
    assert Sealer.of(FIXED, salt=salt).seal(SHARE) == seals[0]
