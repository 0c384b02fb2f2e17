"""Audits of a federation: what is shipped passes; mutants of noise, masks, bounds and control flow are found."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from graphveil.audit import targets
from graphveil.audit.federation import matrices
from graphveil.audit.federation import replay as federation_replay
from graphveil.audit.federation.cases import (
    audit_noise_in_shares,
    audit_published,
    audit_published_exactly,
    audit_shrunk,
    audit_uniform,
    uneven,
)
from graphveil.audit.federation.matrices import audit_matrix
from graphveil.audit.federation.person import ROLES
from graphveil.audit.federation.replay import PERSON, audit_features, audit_label, audit_shares
from graphveil.federation.core import publisher
from graphveil.federation.core.dither import Dither
from graphveil.federation.core.publisher import Publisher
from graphveil.federation.core.setting import MODES
from graphveil.federation.crypto import hidden_matrix, products
from graphveil.federation.crypto.masks import MaskKey
from graphveil.federation.crypto.sharing import uniform
from graphveil.federation.effects import Receive, Send
from graphveil.federation.modes import all_shares_parties, linear, propagation
from graphveil.federation.modes.labels import LabelHead
from graphveil.privacy import SeededRandomness
from tests.audit.test_federation_holders import relabelled

Patch = pytest.MonkeyPatch


def test_every_mode_is_audited_by_name() -> None:
    target, predictions = targets()["federation"], 2 * 4 * len(MODES) + 3 * 5
    of_runs = len(target.method) - predictions
    assert len(target.mechanism) == 5 and of_runs == (2 + 4) * len(MODES) + 3 * (1 + 5) + 2 * len(ROLES)


# ---- what holders publish ----


def test_one_published_row_is_audited_exactly_and_tightly() -> None:
    result = audit_published_exactly()
    assert result.holds and result.false_alarm == 0.0
    assert result.lower_bound > 0.99 * result.claimed_epsilon


@pytest.mark.parametrize("audit", [audit_published, audit_noise_in_shares])
def test_published_rows_pass_and_half_the_noise_is_found(audit: Any, monkeypatch: Patch) -> None:
    """False-alarm rate 1e-6 each, seed fixed."""
    right = audit()
    assert right.holds and right.lower_bound > 0.8 * right.claimed_epsilon
    alone, shared = Publisher._noise, Dither.draw
    for owner, name, half in (
        (Publisher, "_noise", lambda me, *rest: alone(me, *rest) / 2),
        (Dither, "draw", lambda me, *rest: shared(me, *rest) // 2),
    ):
        monkeypatch.setattr(owner, name, half)
    assert not audit().holds


def test_shrunk_rows_pass_and_noise_for_four_times_the_epsilon_is_found() -> None:
    """False-alarm rate 1e-6, seed fixed."""
    right = audit_shrunk()
    assert right.holds and right.lower_bound > 0.3 * right.claimed_epsilon
    assert not audit_shrunk(actual=4 * right.claimed_epsilon).holds


def test_a_clip_that_is_not_applied_is_found(monkeypatch: Patch) -> None:
    """False-alarm rate 1e-6, seed fixed."""

    def unclipped(x: Tensor, *, cap: float, bits: int, normalise: bool) -> Any:
        return SimpleNamespace(values=torch.round(x / cap * 2.0**bits))

    monkeypatch.setattr(publisher, "quantise", unclipped)
    result = audit_published()
    assert not result.holds and result.lower_bound > 10 * result.claimed_epsilon


# ---- shares ----


@pytest.mark.parametrize("mode", ["paper", "shared-linear", "all-shares"])
def test_shares_are_uniform(mode: str) -> None:
    """False-alarm rate 1e-6 for all streams of a run together."""
    result = audit_shares(mode)
    assert result.holds and result.false_alarm == 1e-6


@pytest.mark.parametrize("part", ["masked_left", "masked_right"])
def test_a_share_that_is_not_masked_is_found(part: str, monkeypatch: Patch) -> None:
    monkeypatch.setattr(products, part, lambda secret, *rest: secret)
    result = audit_shares("paper")
    assert not result.holds and part.replace("_", "-") in result.notes[0]


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("V hop 0", "masked-right (60 x 6) to"),
        ("W", "masked-right (12 x 8) to"),
        ("P", "masked-left (30 x 12) beside"),
        ("G", "masked-left (30 x 20) beside"),
        ("r' gram", "correction (30 x 20) to"),
        ("A 1", "gradient-share (20 x 8) to"),
    ],
)
def test_a_mask_of_shared_linear_that_is_left_out_is_found(label: str, words: str, monkeypatch: Patch) -> None:
    relabelled(label, None)(monkeypatch)
    result = audit_shares("shared-linear")
    assert not result.holds and any(words in note for note in result.notes), result.notes


class Flat(MaskKey):
    def expand(self, label: str, shape: tuple[int, ...]) -> Tensor:
        return torch.zeros(shape, dtype=torch.int64)


@pytest.mark.parametrize(
    ("weak", "words"),
    [("factor", "masked-left (16 x 8) to"), ("product", "correction (20 x 8) to"), ("cut", "masked-sum (60 x 8) to")],
)
def test_a_mask_of_all_shares_that_is_left_out_is_found(weak: str, words: str, monkeypatch: Patch) -> None:
    """Of factors, of their products and of cuts: the three keys that a holder is dealt for one session."""
    real, flat = all_shares_parties._Keys, Flat(bytes(32))
    monkeypatch.setattr(all_shares_parties, "_Keys", lambda *keys: replace(real(*keys), **{weak: flat}))
    result = audit_shares("all-shares")
    assert not result.holds and any(words in note for note in result.notes), result.notes


def test_a_matrix_hidden_from_both_readers_by_one_key_is_found(monkeypatch: Patch) -> None:
    """In whole runs, and of the matrix alone, together with corrections that leave out what covers them."""
    real = hidden_matrix.hide
    assert audit_matrix().holds
    for module in (matrices, propagation):
        monkeypatch.setattr(module, "hide", lambda s, shape, keys: real(s, shape, (keys[0], keys[0])))
    for audit in (audit_matrix, partial(audit_shares, "shared-linear")):
        result = audit()
        assert not result.holds and {"levels", "leaves"} <= {note.split()[0] for note in result.notes}


@pytest.mark.parametrize(
    ("name", "weak", "words"),
    [
        # What covers the leaf that holds an entry; and the seeds of the side that is left.
        ("_leaves", lambda seeds: np.zeros((len(seeds), 8), dtype=np.uint64), "leaves of a star to reader 0"),
        (
            "_hash_seeds",
            lambda seeds, number: hidden_matrix._without_flags(seeds),
            "levels from matrix to matrix under one key",
        ),
    ],
)
def test_corrections_that_are_not_covered_are_found(name: str, weak: Any, words: str, monkeypatch: Patch) -> None:
    monkeypatch.setattr(hidden_matrix, name, weak)
    result = audit_matrix()
    assert not result.holds and any(words in note for note in result.notes), result.notes


def test_a_short_mask_is_found_and_the_same_body_sent_again_is_not_held_against_it() -> None:
    words = uniform((40, 50), randomness=SeededRandomness(4))
    assert audit_uniform("x", {"a": [words, words, words]}).holds
    assert not audit_uniform("x", {"a": [words & ((1 << 62) - 1)]}).holds
    assert not audit_uniform("x", {"a": [words << 1]}).holds


# ---- programs ----


@pytest.mark.slow  # many runs
@pytest.mark.parametrize("mode", MODES)
def test_programs_pass(mode: str) -> None:
    before = (Publisher.publish, Publisher.noise_for, linear.linear_holder)
    for audit in (audit_features, audit_label):
        result = audit(mode)
        assert result.holds, result.notes
    assert (Publisher.publish, Publisher.noise_for, linear.linear_holder) == before


def more_from_holder2(patch: Patch, kind: str, body: Callable[[Tensor], Tensor]) -> None:
    """A further message between holders, made of holder2's row of the person."""
    real = federation_replay.party_programs

    def program(name: str, holding: Any, true: Any) -> Any:
        if name == "holder2":
            yield Send("holder1", kind, body(holding.features[PERSON]))
        else:
            yield Receive("holder2", kind, (-1,))
        return (yield from true)

    def programs(contexts: Any, holdings: Any) -> Any:
        by_party = real(contexts, holdings)
        return by_party | {name: program(name, holding, by_party[name]) for name, holding in holdings.items()}

    patch.setattr(federation_replay, "party_programs", programs)


@pytest.mark.parametrize(
    ("kind", "body", "words"),
    [
        # As long as the row has entries above a half; the row itself.
        ("masked-sum", lambda row: torch.zeros(int((row > 0.5).sum()), dtype=torch.int64), "number, order or size"),
        ("blinded-set", lambda row: (255 * row).to(torch.uint8), "blinded-set from holder2 to holder1"),
    ],
)
@pytest.mark.parametrize("mode", MODES)
def test_leaks_beside_what_is_published_are_found(
    kind: str, body: Callable[[Tensor], Tensor], words: str, mode: str, monkeypatch: Patch
) -> None:
    more_from_holder2(monkeypatch, kind, body)
    result = audit_features(mode)
    assert not result.holds and any(words in note for note in result.notes), result.notes


@pytest.mark.parametrize("mode", MODES)
def test_labels_that_go_round_their_randomizer_are_found(mode: str, monkeypatch: Patch) -> None:
    real = LabelHead.open

    def open_(me: LabelHead, *rest: Any, **named: Any) -> None:
        real(me, *rest, **named)
        me.reported = me.labels

    monkeypatch.setattr(LabelHead, "open", open_)
    result = audit_label(mode)
    assert not result.holds and "differs on the neighbour" in result.notes[0]


def test_weights_that_leave_their_bound_are_found_where_the_server_opens_rows(monkeypatch: Patch) -> None:
    real = linear.secret_numbers
    monkeypatch.setattr(linear, "secret_numbers", lambda shape, **given: 80 * real(shape, **given))
    result = audit_features("shared-linear")
    assert not result.holds and "more than 2 C" in result.notes[0]


@pytest.mark.parametrize(("words", "level"), [(2, 0.02), (3, 0.05), (4, 1e-3), (4, 0.2)])
def test_even_cells_are_called_uneven_no_more_often_than_is_stated(words: int, level: float) -> None:
    """Exactly, over all outcomes of a few words in sixteen cells, where a chi-square is far off."""
    outcomes = list(itertools.combinations_with_replacement(range(16), words))
    chances = [
        stats.multinomial.pmf(np.bincount(cells, minlength=16), words, np.full(16, 1 / 16)) for cells in outcomes
    ]
    called = [uneven(np.bincount(cells, minlength=16), level) for cells in outcomes]
    assert sum(chances) == pytest.approx(1) and np.dot(chances, called) <= level


def test_few_words_of_which_many_are_alike_are_uneven() -> None:
    """48 words, as of the smallest message that an audit looks at; one of 39,840 cells that is a little fuller."""
    assert uneven(np.array([24, *[2] * 9, *[1] * 6]), 1e-8)
    assert uneven(2490 + np.array([400, *[0] * 15]), 1e-8)
    assert not uneven(np.full(16, 3), 1e-8)
