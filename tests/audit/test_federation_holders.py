"""All holders but one put together what they were dealt: what is shipped hides the one, weakened copies do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from graphveil.audit.federation.views import audit_holders
from graphveil.federation.crypto.masks import MaskKey

Patch = pytest.MonkeyPatch
CASES = [("shared-linear", 2, 0), ("shared-linear", 3, 1), ("shared-linear", 4, 2), ("paper", 2, 1), ("paper", 3, 0)]
CASES += [("all-shares", 2, 1), ("all-shares", 2, 0), ("all-shares", 3, 2)]


@pytest.mark.parametrize(("mode", "holders", "victim"), CASES)
def test_all_holders_but_one_can_unmask_nothing(mode: str, holders: int, victim: int) -> None:
    """False-alarm rate 1e-6 each, seeds fixed."""
    result = audit_holders(mode, holders, victim=victim)
    assert result.holds, result.notes
    assert result.false_alarm == 1e-6 and "together" in result.target


def expanded(patch: Patch, change: Callable[[str], str | None]) -> None:
    """Other labels of masks, or, with None, no mask."""
    real = MaskKey.expand

    def expand(key: MaskKey, label: str, shape: tuple[int, ...]) -> Tensor:
        changed = change(label)
        return torch.zeros(shape, dtype=torch.int64) if changed is None else real(key, changed, shape)

    patch.setattr(MaskKey, "expand", expand)


def features_sent_unmasked(patch: Patch) -> None:
    expanded(patch, lambda label: None if label == "P" else label)


def likenesses_masked_like_features(patch: Patch) -> None:
    expanded(patch, lambda label: "P" if label == "G" else label)


def weights_masked_like_columns(patch: Patch) -> None:
    expanded(patch, lambda label: "V hop 0" if label == "W" else label)


def pulls_shared_by_the_second_alone(patch: Patch) -> None:
    expanded(patch, lambda label: None if label.startswith("A ") else label)


def parts_sent_unmasked(patch: Patch) -> None:
    expanded(patch, lambda label: None if label.startswith("r' ") else label)


def one_mask_of_all_parts(patch: Patch) -> None:
    expanded(patch, lambda label: "r' always" if label.startswith("r' ") else label)


@pytest.mark.parametrize(
    ("weaken", "words"),
    [
        (features_sent_unmasked, "masked-left from holder2 to holder1 beside"),
        (likenesses_masked_like_features, "masked shares 1 and 3 from holder2 to holder1"),
        (weights_masked_like_columns, "masked shares 0 and 2 from holder2 to holder1"),
        (parts_sent_unmasked, "the server's parts"),
        (one_mask_of_all_parts, "parts from one to the next"),
    ],
)
@pytest.mark.parametrize("holders", [2, 3])
def test_a_weakened_copy_is_found(weaken: Callable[[Patch], Any], words: str, holders: int, monkeypatch: Patch) -> None:
    weaken(monkeypatch)
    result = audit_holders("shared-linear", holders, victim=1)
    assert not result.holds and any(words in note for note in result.notes), result.notes


def test_shares_of_pulls_that_others_can_add_up_are_found(monkeypatch: Patch) -> None:
    pulls_shared_by_the_second_alone(monkeypatch)
    result = audit_holders("shared-linear", 3, victim=2)
    assert not result.holds and any("gradient-share from server" in note for note in result.notes), result.notes
