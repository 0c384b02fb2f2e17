"""What holders see in mode "shared-linear": uniform numbers, also beside what they were dealt, and two against a third.

Two holders of three know all pairwise keys, so zero-sum masks hide nothing from them: what hides the third are the
masks that the server dealt it alone.
"""

from __future__ import annotations

import itertools
from functools import cache

import pytest
import torch
from torch import Tensor

from graphveil.federation.crypto import products
from graphveil.federation.crypto.masks import unpacked
from tests.federation.views import Views, holdings, is_uniform, setting_of, watched

Patch = pytest.MonkeyPatch
MASKED = ("masked-left", "masked-right", "masked-sum", "correction", "gradient-share")


@cache
def run(holders: int, weak: str = "") -> Views:
    held = holdings(holders, 40, 6)
    with pytest.MonkeyPatch.context() as patch:
        weaken(weak, patch)
        return watched(setting_of(held, epochs=2, epsilon=8.0, width=16), held, patch)


def weaken(which: str, patch: Patch) -> None:
    """Leave one of the server's masks away."""
    if which == "masked-left":
        patch.setattr(products, "masked_left", lambda x, keys: x)
    elif which == "masked-right":
        patch.setattr(products, "masked_right", lambda w, key, step: w)


def known(seen: Views, who: tuple[str, ...]) -> list[Tensor]:
    """All masks that these holders were dealt, all ring elements that they hold or send, and sums of their shares."""
    keys = {key.secret for name in who for body in seen.bodies("mask-keys", to=name) for key in unpacked(body)}
    found = [words for secret, _, words in seen.expanded if secret in keys]
    for name in who:
        found += [value for state in seen.kept[name] for key, value in state.items() if key in ("p", "w")]
        found += [send.body for sender, send in seen.messages if sender == name and send.kind in MASKED]
    for states in zip(*(seen.kept[name] for name in who), strict=True):
        found += [torch.stack([state[key] for state in states]).sum(dim=0) for key in ("p", "w")]
    unique = {words.numpy().tobytes(): words for words in found}
    return list(unique.values())


def arrived(seen: Views, who: tuple[str, ...]) -> list[Tensor]:
    """What reaches these holders from others, each body once."""
    bodies = [
        send.body
        for sender, send in seen.messages
        if send.to in who and sender not in who and send.kind in MASKED and send.body.numel() >= 160
    ]
    return list({body.numpy().tobytes(): body for body in bodies}.values())


def looks_uniform(seen: Views, who: tuple[str, ...]) -> bool:
    """Every body by itself, and less and plus every number of its shape that they know; 1e-6 in all."""
    bodies, mine = arrived(seen, who), known(seen, who)
    pairs = [(body, other) for body in bodies for other in mine if other.shape == body.shape]
    tests = len(bodies) + 2 * len(pairs)
    return all(is_uniform(body, tests) for body in bodies) and all(
        is_uniform(body + sign * other, tests) for body, other in pairs for sign in (1, -1)
    )


@pytest.mark.slow  # whole rounds
@pytest.mark.parametrize("holders", [2, 3, 4])
def test_what_reaches_a_holder_is_uniform_beside_all_that_it_was_dealt(holders: int) -> None:
    seen = run(holders)
    assert len(arrived(seen, ("h2",))) > 10
    for name in seen.setting.names:
        assert looks_uniform(seen, (name,))


@pytest.mark.slow  # whole rounds
def test_what_reaches_two_of_three_holders_is_uniform_beside_all_that_they_were_dealt() -> None:
    """The server's masks hide the third: without any one of them they tell it from uniform numbers."""
    seen = run(3)
    for pair in itertools.combinations(seen.setting.names, 2):
        assert looks_uniform(seen, pair)


@pytest.mark.slow  # whole rounds
@pytest.mark.parametrize("weak", ["masked-left", "masked-right"])
def test_a_mask_that_is_missing_is_seen_by_two_holders(weak: str) -> None:
    assert not looks_uniform(run(3, weak), ("h1", "h2"))


def test_seals_and_keys_are_new_in_every_round_and_for_every_holder() -> None:
    seen = run(3)
    for kind, count in (("seal", 3 * 2), ("holder-key", 3)):  # the same to both others
        bodies = [body.numpy().tobytes() for body in seen.bodies(kind)]
        assert len(bodies) == 2 * len(set(bodies)) == 2 * count
