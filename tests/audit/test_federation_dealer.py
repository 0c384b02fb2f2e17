"""A server with its dealt keys: what is shipped gives it the noisy sum alone; each weakened copy is found out."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch import Tensor

from graphveil.audit.federation_dealer import audit_dealer
from graphveil.federation.core.dither import Dither
from graphveil.federation.core.publication import Publisher
from graphveil.federation.core.setting import MODES
from graphveil.federation.crypto.masks import MaskKey
from graphveil.federation.crypto.zero_sum import ZeroSum
from graphveil.federation.effects import Roster
from graphveil.federation.modes import linear
from graphveil.federation.modes.guesses import GuessPublisher

_mask, _draw, _noise, _publish = ZeroSum.mask, Dither.draw, Publisher._noise, Publisher.publish
_guesses, _again = GuessPublisher.publish, itertools.count()


@pytest.mark.slow  # many runs
@pytest.mark.parametrize(("mode", "holders"), [*((mode, 2) for mode in MODES), ("paper", 3), ("shared-linear", 5)])
def test_the_server_learns_the_noisy_sum_alone(mode: str, holders: int) -> None:
    """False-alarm rate 1e-6 each, seeds fixed."""
    found = audit_dealer(mode, holders)
    assert found.holds, found.notes
    assert "server with dealt keys" in found.target and found.false_alarm == 1e-6


def without(which: str) -> Any:
    """Leave out masks whose label begins like this."""

    def mask(me: ZeroSum, label: str, shape: tuple[int, ...]) -> Tensor:
        return torch.zeros(shape, dtype=torch.int64) if label.startswith(which) else _mask(me, label, shape)

    return mask


def of_the_first_round(me: ZeroSum, label: str, shape: tuple[int, ...]) -> Tensor:
    me._used.clear()
    return _mask(me, "open" if label.startswith("open") else label, shape)


def on_keys_that_the_server_has(roster: Roster, **rest: Any) -> Any:
    yield from ()
    return ZeroSum(roster, {name: MaskKey(bytes(32)) for name in roster.others})


def by_own_shares_alone(roster: Roster, round: int, own: bytes) -> Any:
    """The name of noise: other data of somebody else repeat it."""
    yield from ()
    return own.hex()


def on_nothing(me: Publisher, label: str, shape: tuple[int, ...]) -> Tensor:
    """Noise that does not follow the rows."""
    return _noise(me, "always", shape)


def below_the_noise(me: Publisher, x: Tensor, round: int) -> Tensor:
    """Rows with bits below those of the noise."""
    return _publish(me, x, round) + 1e-4 * x.detach()


#: The mode and its holders; where it stands, its weakened copy, and what the audit says of it.
WEAK: tuple[tuple[str, int, Any, str, Any, str], ...] = (
    ("shared-linear", 5, ZeroSum, "mask", without("open"), "less what was dealt"),
    ("shared-linear", 2, ZeroSum, "mask", without("cut hop"), "the share of P that"),
    ("shared-linear", 2, ZeroSum, "mask", of_the_first_round, "from round to round"),
    ("shared-linear", 5, linear, "agree_on_masks", on_keys_that_the_server_has, "under other secrets of the holders"),
    ("shared-linear", 2, Dither, "draw", lambda me, *a: _draw(me, *a) >> me.step_bits << me.step_bits, "below the"),
    ("shared-linear", 5, Dither, "draw", lambda me, *a: _draw(me, *a) >> 1, "less noise than"),
    ("shared-linear", 5, linear, "name_publication", by_own_shares_alone, "again with other data"),
    ("individual", 2, Publisher, "_noise", on_nothing, "again with other data under the same noise"),
    ("paper", 2, Publisher, "_noise", on_nothing, "again with other data under the same noise"),
    ("individual", 2, Publisher, "publish", below_the_noise, "off the grid"),
    ("paper", 2, Publisher, "publish", below_the_noise, "off the grid"),
    ("guesses", 2, GuessPublisher, "publish", lambda me: (_guesses(me) + next(_again)) % 3, "published other guesses"),
)


@pytest.mark.slow  # many runs
@pytest.mark.parametrize(("mode", "holders", "owner", "name", "weak", "said"), WEAK)
def test_a_weakened_copy_is_found(
    mode: str, holders: int, owner: Any, name: str, weak: Any, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, weak)
    found = audit_dealer(mode, holders)
    assert not found.holds and any(said in note for note in found.notes), found.notes
