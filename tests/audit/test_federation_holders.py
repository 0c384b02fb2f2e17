"""All holders but one put together what they were dealt: what is shipped hides the one, weakened copies do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from graphveil.audit.federation.views import audit_holders
from graphveil.federation.crypto import products, sharing
from graphveil.federation.crypto.masks import MaskKey
from graphveil.federation.crypto.truncation import TruncationKeys

Patch = pytest.MonkeyPatch
CASES = [("shared-linear", 2, 0), ("shared-linear", 3, 1), ("shared-linear", 4, 3), ("paper", 2, 1), ("paper", 3, 0)]


@pytest.mark.parametrize(("mode", "holders", "victim"), CASES)
def test_all_holders_but_one_can_unmask_nothing(mode: str, holders: int, victim: int) -> None:
    """False-alarm rate 1e-6 each, seeds fixed."""
    found = audit_holders(mode, holders, victim=victim)
    assert found.holds, found.notes
    assert found.false_alarm == 1e-6 and "together" in found.target


def features_sent_unmasked(patch: Patch) -> None:
    def zeros(key: MaskKey, rows: int, columns: int) -> Tensor:
        return torch.zeros(rows, columns, dtype=torch.int64)

    patch.setattr(sharing, "left_mask", zeros)
    patch.setattr(products, "left_mask", zeros)


def masks_of_weights_used_in_every_round(patch: Patch) -> None:
    real = products.mask_label
    patch.setattr(products, "mask_label", lambda product, step: real(product, step.split()[0]))


def one_key_of_cuts_for_all(patch: Patch) -> None:
    """Each masked sum is uniform by itself, and whoever is shown all of them can take their masks away."""
    same = TruncationKeys(MaskKey(bytes(32)), MaskKey(bytes(31) + b"1"))
    patch.setattr(TruncationKeys, "fresh", staticmethod(lambda randomness: same))


@pytest.mark.parametrize(
    ("weaken", "said"),
    [
        (features_sent_unmasked, "masked-left from holder2 to holder1 beside"),
        (masks_of_weights_used_in_every_round, "from round to round"),
        (one_key_of_cuts_for_all, "masks of cuts under other keys"),
    ],
)
@pytest.mark.parametrize("holders", [2, 3])
def test_a_weakened_copy_is_found(weaken: Callable[[Patch], Any], said: str, holders: int, monkeypatch: Patch) -> None:
    weaken(monkeypatch)
    found = audit_holders("shared-linear", holders, victim=1)
    assert not found.holds and any(said in note for note in found.notes), found.notes
