"""What parties see in mode "paper" beside what is opened: nothing that tells one holder's share from the sum of all.

No zero-sum masks are needed here: the blinds of the products between two holders, which the server deals them, hide
each one's share of h0 from the others, and no share ever goes to the server.
"""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor

from graphveil.federation.crypto import ring, sharing
from graphveil.federation.crypto.masks import unpack_keys
from tests.federation.views import Views, holdings, is_uniform, setting_of, watched


@cache
def run(holders: int, weak: bool = False) -> Views:
    by_holder = holdings(holders, 64, 6)
    with pytest.MonkeyPatch.context() as patch:
        if weak:
            unblinded(patch)
        return watched(setting_of(by_holder, mode="paper", opened=True, width=4), by_holder, patch)


def unblinded(patch: pytest.MonkeyPatch) -> None:
    """The weakened copy: products whose two shares are not blinded."""
    real_owner, real_dealer = sharing.owner_share, sharing.correction

    def owner(x: Any, f: Tensor, blind: Any, step: str) -> Tensor:
        return real_owner(x, f, blind, step) - blind.expand(f"r {step}", (x.shape[0], f.shape[1]))

    def dealer(keys: Any, step: str, u: Tensor, width: int) -> Tensor:
        return real_dealer(keys, step, u, width) + keys.blind.expand(f"r {step}", (len(u), width))

    for name, changed in (("owner_share", owner), ("correction", dealer)):
        patch.setattr(f"graphveil.federation.crypto.products.{name}", changed)


def predictable(seen: Views, who: str) -> list[Tensor]:
    """Numbers of the shape of h0 that one holder was dealt, was sent or sends."""
    keys = {key.secret for body in seen.bodies("mask-keys", to=who) for key in unpack_keys(body)}
    expanded = [words for secret, _, words in seen.expanded if secret in keys]
    expanded += [*seen.bodies("correction", to=who), *seen.bodies("opened-share", who)]
    shape = seen.bodies("opened-share")[0].shape
    return list({words.numpy().tobytes(): words for words in expanded if words.shape == shape}.values())


def opened(seen: Views, me: str) -> list[list[Tensor]]:
    """The shares that the others open to one holder, by sender, each round."""
    return [seen.bodies("opened-share", name, me) for name in seen.setting.names if name != me]


@pytest.mark.slow  # whole rounds
@pytest.mark.parametrize("holders", [3, 4, 5])
def test_the_shares_that_are_opened_to_a_holder_tell_it_their_sum_alone(holders: int) -> None:
    """Any but all of the others' shares are uniform to it, also beside all it knows: 1e-6 for each number of holders.

    With two holders there is one other share, which is h0 less one's own.
    """
    seen = run(holders)
    for me in seen.setting.names:
        opened_shares, mine = opened(seen, me), predictable(seen, me)
        subsets = [s for size in range(1, holders - 1) for s in itertools.combinations(opened_shares, size)]
        tests = holders * len(subsets) * len(opened_shares[0]) * (1 + len(mine))
        for subset in subsets:
            for shares in zip(*subset, strict=True):
                words = torch.stack(shares).sum(dim=0)
                assert is_uniform(words, tests) and all(is_uniform(words - other, tests) for other in mine)


def test_all_shares_together_are_the_first_layer_and_nothing_else() -> None:
    for holders in (2, 3):
        seen = run(holders)
        by_holder = holdings(holders, 64, 6)
        names = seen.setting.names
        w = {
            block: torch.stack([seen.checkpoints[n][0][f"first/shares/{block}"] for n in names]).sum(dim=0)
            for block in names
        }
        h0 = sum(ring.matmul(ring.encode(by_holder[name].features), w[name]) for name in names)
        shares = [seen.bodies("opened-share", name)[0] for name in names]
        assert torch.equal(torch.stack(shares).sum(dim=0), h0)


def test_blinds_that_are_missing_are_found() -> None:
    """A share less all that its holder's own numbers make of what it was sent: the blinds, or nothing at all."""
    for run_, holds in ((run(3), True), (run(3, weak=True), False)):
        x = ring.encode(holdings(3, 64, 6)["h2"].features)
        parts = [
            ring.matmul(x, f)
            for name in ("h1", "h3")
            for f in run_.bodies("masked-right", name, "h2")[:1]
            if f.shape == (6, 4)
        ]
        assert len(parts) == 2
        rest = run_.bodies("opened-share", "h2")[0] - torch.stack(parts).sum(dim=0)
        rest = rest - ring.matmul(x, run_.checkpoints["h2"][0]["first/shares/h2"])
        for left, z in zip(("h1", "h3"), run_.bodies("correction", to="h2")[:2], strict=True):
            e = run_.bodies("masked-left", left, "h2")[0]
            v = next(words for _, label, words in run_.expanded if label == f"V forward 1 {left} h2 N")
            rest = rest - ring.matmul(e, v) - z
        assert is_uniform(rest) if holds else not bool(rest.any())


@pytest.mark.parametrize("mode", ["paper", "individual", "guesses"])
def test_no_share_and_no_masked_number_goes_to_the_server_in_other_modes(mode: str) -> None:
    by_holder = holdings(3, 64, 6)
    with pytest.MonkeyPatch.context() as patch:
        seen = watched(setting_of(by_holder, mode=mode, opened=True), by_holder, patch)
    kinds = {send.kind for _, send in seen.messages if send.to == "server"}
    assert kinds <= {"labelled-rows", "validation-rows", "embeddings", "hidden-gradient", "kept-round"}
    assert mode != "guesses" or not kinds
