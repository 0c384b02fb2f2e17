"""What the server sees in mode "shared-linear", with everything that it dealt: the noisy sum, and nothing else.

Exactly, on a small ring: all masks are enumerated. On the real one: chi-square of high and low bits.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor

from graphveil.federation.crypto import masks
from graphveil.federation.crypto.masks import MaskKey, ZeroSum, unpack_keys
from graphveil.federation.effects import Roster
from graphveil.federation.modes import linear
from tests.federation.views import Views, holdings, is_uniform, setting_of, watched

Patch = pytest.MonkeyPatch


def without_masks(me: ZeroSum, label: str, shape: tuple[int, ...]) -> Tensor:
    """The weakened copy: masks that are no masks."""
    return torch.zeros(shape, dtype=torch.int64)


class Enumerated(MaskKey):
    """A pairwise key whose mask of what is opened is one number of a small ring."""

    value: int = 0

    def expand(self, label: str, shape: tuple[int, ...]) -> Tensor:
        if label.startswith("open"):
            return torch.full(shape, self.value, dtype=torch.int64)
        return super().expand(label, shape)


def law_of_the_view(
    holders: int, bits: int, change: Callable[[Patch], Any], patch: Patch
) -> tuple[Counter[tuple[int, ...]], ...]:
    """How often the server receives which shares of each entry of z, modulo 2^bits, over all masks of what is opened.

    Everything else (what the server deals, and all that holders draw) is the same in all runs.
    """
    real = masks._pair_key
    laws: tuple[Counter[tuple[int, ...]], ...] = tuple(Counter() for _ in range(8))
    pairs = holders * (holders - 1) // 2
    for values in itertools.product(range(1 << bits), repeat=pairs):
        drawn: dict[frozenset[str], int] = {}

        def pairwise(shared: bytes, publics: dict[str, bytes], names: Sequence[str]) -> MaskKey:
            pair = frozenset(publics)
            key = Enumerated(real(shared, publics, names).secret)
            object.__setattr__(key, "value", values[drawn.setdefault(pair, len(drawn))])  # noqa: B023
            return key

        with patch.context() as here:
            here.setattr(masks, "_pair_key", pairwise)
            by_holder = change(here)
            seen = watched(setting_of(by_holder, epochs=1, hops=1, width=2), by_holder, here)
        shares = [torch.cat(seen.bodies("noisy-share", name)) for name in by_holder]
        received = [(words & ((1 << bits) - 1)).flatten().tolist() for words in shares]
        for law, entry in zip(laws, zip(*received, strict=True), strict=True):
            law[entry] += 1
    return laws


def no_features(holders: int) -> Callable[[Patch], Any]:
    """Features of zeros, any weights: z = 0."""

    def change(patch: Patch) -> Any:
        by_holder = holdings(holders, 4, 2)
        for holding in by_holder.values():
            holding.features.zero_()
        return by_holder

    return change


def no_weights(holders: int) -> Callable[[Patch], Any]:
    """Weights of zeros, any features: z = 0."""

    def change(patch: Patch) -> Any:
        patch.setattr(linear, "secret_numbers", lambda shape, **given: torch.zeros(shape, dtype=torch.float64))
        return holdings(holders, 4, 2)

    return change


@pytest.mark.parametrize(("holders", "bits"), [(2, 5), (3, 2)])
def test_the_servers_view_has_one_law_for_two_inputs_with_the_same_sum(
    holders: int, bits: int, monkeypatch: Patch
) -> None:
    """Two whole runs that share neither features nor weights, and open z = 0: all that the server receives.

    Each view comes up equally often: it is uniform among those with that sum. Without masks there is one for an input.
    """
    laws = [law_of_the_view(holders, bits, change(holders), monkeypatch) for change in (no_features, no_weights)]
    assert laws[0] == laws[1]
    for law in laws[0]:
        assert set(law.values()) == {(1 << bits) ** ((holders - 1) * (holders - 2) // 2)}
        # What the shares add up to is what is opened less the server's part, which only its own keys move.
        assert len(law) == (1 << bits) ** (holders - 1) and len({sum(shares) % (1 << bits) for shares in law}) == 1
    monkeypatch.setattr(ZeroSum, "mask", without_masks)
    bare = [law_of_the_view(holders, 1, change(holders), monkeypatch) for change in (no_features, no_weights)]
    assert bare[0] != bare[1] and {len(law) for laws in bare for law in laws} == {1}


@cache
def run(holders: int, masks: bool = True, epsilon: float = float("inf")) -> Views:
    with pytest.MonkeyPatch.context() as patch:
        if not masks:
            patch.setattr(ZeroSum, "mask", without_masks)
        by_holder = holdings(holders, 64, 6)
        return watched(setting_of(by_holder, epsilon=epsilon), by_holder, patch)


@pytest.mark.parametrize("masks", [True, False])
@pytest.mark.parametrize("holders", [2, 3, 5])
def test_no_share_that_a_holder_keeps_is_a_number_that_the_server_drew(holders: int, masks: bool) -> None:
    """Shares of P, and of the likenesses of those who train; without masks every holder's but the first's are."""
    seen = run(holders, masks)
    drawn = {word for words in seen.dealt() for word in words.flatten().tolist()}
    dealt = drawn | {-word for word in drawn}
    for name in seen.setting.names:
        for part in ("p", "gram"):
            share = set(seen.checkpoints[name][0][part].flatten().tolist())
            assert not share & dealt if masks or name == "h1" else share <= dealt


@pytest.mark.parametrize("mode", ["shared-linear", "paper"])
def test_no_mask_hides_two_messages(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key and a label are expanded as often as the dealer and who sends need them, and so by no second message.

    Of three holders' masks V the dealer needs one for each other matrix, and the features' once more for X W; who sends
    needs it twice, like U of P.  In paper mode whoever takes a mask off again needs it too, and U hides one matrix that
    stays the same.
    """
    by_holder = holdings(3, 40, 5)
    seen = watched(setting_of(by_holder, mode=mode, epsilon=8.0, epochs=3, opened=True), by_holder, monkeypatch)
    dealt = {key.secret for body in seen.bodies("mask-keys") for key in unpack_keys(body)}
    times = Counter((key, label) for key, label, _ in seen.expanded if key in dealt)
    assert len(times) > 40
    if mode == "paper":
        assert max(count for (_, label), count in times.items() if not label.startswith("U")) <= 3
    else:
        often = {"V hop 0": 5, "V hop 1": 4, "V last hop 0": 4, "V last hop 1": 4, "P": 3}
        assert all(count == often.get(label, 2) for (_, label), count in times.items())


def test_masks_add_up_to_nothing_and_a_label_is_used_once() -> None:
    names = ("a", "b", "c", "d")
    keys = {frozenset(p): MaskKey(bytes([i]) * 32) for i, p in enumerate(itertools.combinations(names, 2))}
    each = [ZeroSum(Roster(me, names), {o: keys[frozenset((me, o))] for o in names if o != me}) for me in names]
    masks = [dealt.mask("x", (40, 9)) for dealt in each]
    assert not bool(torch.stack(masks).sum(dim=0).any())
    assert all(is_uniform(torch.stack(masks[:size]).sum(dim=0)) for size in (1, 2, 3))
    with pytest.raises(RuntimeError, match="used before"):
        each[0].mask("x", (1,))
    assert keys[frozenset("ab")].secret.hex() not in repr(each[0])
