"""All holders but one put together what they were dealt: what is shipped hides the one, weakened copies do not."""

from __future__ import annotations

import re
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


def relabelled(pattern: str, instead: str | None) -> Callable[[Patch], None]:
    """Masks of labels that match have another label, or, with None, are no masks."""

    def weaken(patch: Patch) -> None:
        real = MaskKey.expand

        def expand(key: MaskKey, label: str, shape: tuple[int, ...]) -> Tensor:
            if not re.fullmatch(pattern, label):
                return real(key, label, shape)
            return torch.zeros(shape, dtype=torch.int64) if instead is None else real(key, instead, shape)

        patch.setattr(MaskKey, "expand", expand)

    return weaken


@pytest.mark.parametrize(
    ("weaken", "words"),
    [
        # Features that are sent bare; likenesses masked like features, and weights like columns.
        (relabelled("P", None), "masked-left from holder2 to holder1 beside"),
        (relabelled("G", "P"), "masked shares 1 and 3 from holder2 to holder1"),
        (relabelled("W", "V hop 0"), "masked shares 0 and 2 from holder2 to holder1"),
        # The server's parts, bare and all under one mask.
        (relabelled("r' .*", None), "the server's parts"),
        (relabelled("r' .*", "r' always"), "parts from one to the next"),
    ],
)
@pytest.mark.parametrize("holders", [2, 3])
def test_a_weakened_copy_is_found(weaken: Callable[[Patch], Any], words: str, holders: int, monkeypatch: Patch) -> None:
    weaken(monkeypatch)
    result = audit_holders("shared-linear", holders, victim=1)
    assert not result.holds and any(words in note for note in result.notes), result.notes


def test_shares_of_pulls_that_others_can_add_up_are_found(monkeypatch: Patch) -> None:
    relabelled("A .*", None)(monkeypatch)  # the second alone has a share
    result = audit_holders("shared-linear", 3, victim=2)
    assert not result.holds and any("gradient-share from server" in note for note in result.notes), result.notes
