"""Rounds that run again: the same sum under other masks, and never other data under the same noise, or unpaid."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from graphveil.errors import BudgetError, InputError
from graphveil.federation.core.checkpoints import Checkpoints
from graphveil.federation.core.setting import Member, Setting
from graphveil.federation.crypto import ring
from graphveil.federation.modes import linear
from graphveil.federation.modes.labels import LabelHead
from graphveil.federation.transport.session import Session
from graphveil.privacy import SeededRandomness
from tests.federation.views import Views, holdings, setting_of, watched

Patch = pytest.MonkeyPatch
States = dict[str, dict[str, Tensor]]


def federation(**changes: Any) -> tuple[Setting, Any]:
    by_holder = holdings(3, 40, 5)
    return setting_of(by_holder, **{"epsilon": 8.0, "epochs": 3, **changes}), by_holder


@cache
def first() -> Views:
    setting, by_holder = federation()
    with pytest.MonkeyPatch.context() as patch:
        return watched(setting, by_holder, patch)


def after(round: int) -> States:
    """What all parties have kept after a round of the first session."""
    return {
        name: {key: value.clone() for key, value in states[round].items()}
        for name, states in first().checkpoints.items()
    }


def again(states: States, patch: Patch, seed: int = 2, done: int = 1) -> Views:
    setting, by_holder = federation()
    return watched(setting, by_holder, patch, seed=seed, done=done, states=states)


def opened(seen: Views, number: int, before: States) -> Tensor:
    """What the server opens of those who train in a session's number-th round, from 0, with the states before."""
    shares = [seen.bodies("noisy-share", name)[number] for name in seen.setting.names]
    masks = {secret: words for secret, label, words in seen.expanded if label == "G"}
    a = ring.encode(before["server"]["memory/a"], seen.setting.protocol.bits)
    own = torch.stack(list(masks.values())).sum(dim=0) @ a + before["server"]["memory/part"]
    return torch.stack(shares).sum(dim=0) + own[: len(a)]


def names_of(seen: Views) -> list[set[str]]:
    """The names of the publication of each round, as all holders say them."""
    each = [[s.name for n, s in seen.messages if s.kind == "noisy-share" and n == m] for m in seen.setting.names]
    return [set(names) for names in zip(*each, strict=True)]


def test_a_round_that_runs_again_opens_the_same_sum_and_repeats_no_mask(monkeypatch: Patch) -> None:
    """No number of all that the server is sent, or deals, comes up in both sessions: by chance 1e-11."""
    second = again(after(1), monkeypatch)
    assert torch.equal(opened(second, 0, after(1)), opened(first(), 1, after(1)))
    assert names_of(second)[0] == names_of(first())[1] and len(names_of(second)[0]) == 1
    for kinds in (("noisy-share",), ("masked-left", "masked-right", "masked-sum", "correction", "gradient-share")):
        sums, two = (
            {word for kind in kinds for body in seen.bodies(kind) for word in body.flatten().tolist()}
            for seen in (first(), second)
        )
        assert not sums & two
    for kind in ("mask-keys", "holder-key"):
        assert not {b.numpy().tobytes() for b in first().bodies(kind)} & {
            b.numpy().tobytes() for b in second.bodies(kind)
        }


def test_seals_and_keys_are_new_in_every_round_and_for_every_holder() -> None:
    for kind, count in (("seal", 4 * 3), ("holder-key", 3)):  # the same to both others
        bodies = [body.numpy().tobytes() for body in first().bodies(kind)]
        assert len(bodies) == 2 * len(set(bodies)) == 2 * count


@pytest.mark.parametrize("key", ["z", "a"])
@pytest.mark.parametrize("who", ["h1", "h2", "h3"])
def test_other_data_of_any_holder_is_published_under_other_noise_of_all(who: str, key: str, monkeypatch: Patch) -> None:
    """The difference of two openings of one round is not that of the data: all noise is new.

    Where a holder names a publication by its own share of A alone, the difference is free of noise for other Z_0.
    """
    states = after(1)
    states[who][key] = states[who][key] + 1
    other = again(states, monkeypatch)
    assert not names_of(other)[0] & names_of(first())[1]
    difference = _z(states) - _z(after(1))
    noise = opened(other, 0, states) - opened(first(), 1, after(1)) - difference
    assert float(noise.double().abs().median()) > 2.0**36  # sigma is some 3 C, and a row of z at most C
    if key == "z":
        monkeypatch.setattr(linear.Commitment, "to", lambda me, share: bytes(32))
        plain = again(after(1), monkeypatch, seed=5)
        weak = again(states, monkeypatch, seed=6)
        change = opened(weak, 0, states) - opened(plain, 0, after(1))
        assert torch.equal(change, difference)


def _z(states: Mapping[str, Mapping[str, Tensor]]) -> Tensor:
    gram, z, a = (torch.stack([states[f"h{k}"][key] for k in (1, 2, 3)]).sum(dim=0) for key in ("gram", "z", "a"))
    return z[: len(a)] + gram[: len(a)] @ a


# ---- what is noted on disk before anything leaves ----


class Silent(Session):
    """A session without a network."""

    def _await_all(self, round: int) -> None:
        pass


def session(store: Any) -> Silent:
    quiet: Any = {"patience": 1.0, "progress": lambda *_: None}
    return Silent("h1", "server", ("server", "h2"), lambda *_: iter(()), store, **quiet)


def test_a_round_is_published_again_under_its_own_name_alone(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path / "c", "ab" * 32)
    session(store)._prepare_publication(3, 2, "aa")
    store.close()
    store = Checkpoints(tmp_path / "c", "ab" * 32)  # another process
    assert (store.published(), store.published_name()) == (3, "aa")
    session(store)._prepare_publication(3, 2, "aa")
    session(store)._prepare_publication(3, 2, "")  # what is no publication of rows: a gradient
    for round, name in ((3, "bb"), (2, "aa"), (2, "")):
        with pytest.raises(BudgetError, match=f"round {round} was published with other data"):
            session(store)._prepare_publication(round, 2, name)
    session(store)._prepare_publication(4, 3, "cc")
    assert (store.published(), store.published_name()) == (4, "cc")
    store._published_note.write_text("5")  # as earlier versions wrote it
    assert (store.published(), store.published_name()) == (5, "")
    with pytest.raises(BudgetError):
        session(store)._prepare_publication(5, 4, "aa")
    session(store)._prepare_publication(6, 5, "aa")


# ---- labels ----


def head(train: Tensor, val: Tensor, **changes: Any) -> LabelHead:
    label_head = LabelHead(torch.arange(60) % 3, train, val, ~(train | val))
    setting = Setting.of((Member("a", 2, True), Member("b", 2)), 3, epsilon_y=1.0, mode="guesses", **changes)
    label_head.open(setting, randomness=SeededRandomness(4), generator=torch.Generator().manual_seed(1))
    return label_head


def test_labels_that_were_not_randomized_are_not_used_after_another_split() -> None:
    """With another --seed, people train whose labels nobody has randomized: they were kept as they are, and given."""
    place = torch.arange(60)
    begun = head(place < 20, (place >= 20) & (place < 30))
    heard = begun.state()["desk/heard"]
    assert bool((heard[30:] == -1).all()) and bool((heard[:30] >= 0).all())
    assert not torch.equal(heard[:30], begun.labels[:30])
    same = head(place < 20, (place >= 20) & (place < 30))
    same.load(begun.state())
    assert torch.equal(same.training_labels(-1), begun.training_labels(-1))
    other = head(place >= 40, (place >= 20) & (place < 30))
    with pytest.raises(InputError, match="the training or validation nodes changed"):
        other.load(begun.state())
