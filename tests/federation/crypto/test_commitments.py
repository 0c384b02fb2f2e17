"""Commitments: one for one state of one holder, and none that can be compared with a guess."""

from __future__ import annotations

import torch

from graphveil.federation.crypto.commitments import Commitment
from graphveil.privacy import SeededRandomness

FIXED, SHARE = torch.arange(6), torch.arange(4)


def committed(seed: int, fixed: torch.Tensor = FIXED) -> Commitment:
    return Commitment.of(fixed, randomness=SeededRandomness(seed))


def test_another_salt_share_or_state_has_another_commitment_and_a_restart_the_same() -> None:
    commitments = [
        committed(1).to(SHARE),
        committed(2).to(SHARE),
        committed(1).to(SHARE + 1),
        committed(1, FIXED + 1).to(SHARE),
    ]
    assert len(set(commitments)) == 4
    salt = committed(1).state()["seal/salt"]
    assert Commitment.of(FIXED, salt=salt).to(SHARE) == commitments[0]
