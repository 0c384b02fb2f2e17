"""A server with its dealt keys: what is shipped gives it the noisy sum alone; each weakened copy is found out."""

from __future__ import annotations

import builtins
import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from graphveil.audit.federation import replay
from graphveil.audit.federation.views import audit_dealer
from graphveil.federation.core.dither import Dither
from graphveil.federation.core.publisher import Publisher
from graphveil.federation.core.setting import MODES
from graphveil.federation.crypto.masks import MaskKey, ZeroSum
from graphveil.federation.effects import Receive, Roster, Send
from graphveil.federation.modes import linear, propagation
from graphveil.federation.modes.guesses import GuessPublisher
from tests.federation.views import altered

Patch = pytest.MonkeyPatch


@pytest.mark.slow  # many runs
@pytest.mark.parametrize(("mode", "holders"), [*((mode, 2) for mode in MODES), ("paper", 3), ("shared-linear", 5)])
def test_the_server_learns_the_noisy_sum_alone(mode: str, holders: int) -> None:
    """False-alarm rate 1e-6 each, seeds fixed."""
    result = audit_dealer(mode, holders)
    assert result.holds, result.notes
    assert "server with dealt keys" in result.target and result.false_alarm == 1e-6


# ---- weakened copies of shared-linear ----


def unmasked(which: str) -> Callable[[Patch], None]:
    """Leave out masks whose label begins like this."""

    def weaken(patch: Patch) -> None:
        real = ZeroSum.mask

        def mask(me: ZeroSum, label: str, shape: tuple[int, ...]) -> Tensor:
            return torch.zeros(shape, dtype=torch.int64) if label.startswith(which) else real(me, label, shape)

        patch.setattr(ZeroSum, "mask", mask)

    return weaken


def masks_reused_in_the_next_round(patch: Patch) -> None:
    real = ZeroSum.mask

    def mask(me: ZeroSum, label: str, shape: tuple[int, ...]) -> Tensor:
        me._used.clear()
        return real(me, " ".join(label.split()[:2]) if label.startswith("open") else label, shape)

    patch.setattr(ZeroSum, "mask", mask)


def masks_of_those_who_train_reused_for_others(patch: Patch) -> None:
    real = ZeroSum.mask

    def mask(me: ZeroSum, label: str, shape: tuple[int, ...]) -> Tensor:
        me._used.clear()
        return real(me, label.replace("validation", "train"), shape)

    patch.setattr(ZeroSum, "mask", mask)


def masks_of_keys_that_the_server_knows(patch: Patch) -> None:
    def agree(roster: Roster, **rest: Any) -> Any:
        yield from ()
        return ZeroSum(roster, {name: MaskKey(bytes(32)) for name in roster.other_holders})

    patch.setattr(linear, "agree_on_masks", agree)


def low_bits_kept(patch: Patch) -> None:
    real = Dither.draw
    patch.setattr(Dither, "draw", lambda me, *rest: real(me, *rest) >> me.step_bits << me.step_bits)


def half_the_noise(patch: Patch) -> None:
    real = Dither.draw
    patch.setattr(Dither, "draw", lambda me, *rest: real(me, *rest) >> 1)


def noise_repeated_with_other_data(patch: Patch) -> None:
    def name(roster: Roster, round: int, own: bytes) -> Any:
        yield from ()
        return f"{round:064d}"

    patch.setattr(linear, "name_publication", name)


def noise_of_one_holder_repeated_with_other_data(patch: Patch) -> None:
    """As if noise were named by a holder's own shares alone."""

    def name(roster: Roster, round: int, own: bytes) -> Any:
        yield from ()
        return own.hex()

    patch.setattr(linear, "name_publication", name)


class Repeating:
    """Randomness whose every key is the same."""

    void = None

    def bytes(self, count: int) -> builtins.bytes:
        return builtins.bytes(count)


def one_key_for_both_readers(patch: Patch) -> None:
    real = propagation.open_walker
    patch.setattr(propagation, "open_walker", lambda *rest, randomness: real(*rest, randomness=Repeating()))


def matrices_in_the_clear(patch: Patch) -> None:
    def hide(matrix: Any, shape: Any, keys: Any) -> Tensor:
        bare = torch.zeros(shape.corrections, dtype=torch.int64)
        bare.view(-1)[: matrix.nnz] = torch.from_numpy(matrix.data)
        return bare

    patch.setattr(propagation, "hide", hide)


def sizes_of_the_data(patch: Patch) -> None:
    """A further message between holders, as long as the number of the sender's first neighbour."""
    real = replay.party_programs

    def sends(true: Any, edges: int) -> Any:
        yield Send("holder1", "masked-sum", torch.zeros(edges, dtype=torch.int64))
        return (yield from true)

    def receives(true: Any) -> Any:
        yield Receive("holder2", "masked-sum", (-1,))
        return (yield from true)

    def programs(contexts: Any, by_holder: Any) -> Any:
        by_party = real(contexts, by_holder)
        edges = int(by_holder["holder2"].edge_index[0, 0])
        return by_party | {"holder1": receives(by_party["holder1"]), "holder2": sends(by_party["holder2"], edges)}

    patch.setattr(replay, "party_programs", programs)


def rest_without_noise(patch: Patch) -> None:
    real = Publisher.noise_for

    def noise_for(me: Publisher, label: str, *rest: Any) -> Tensor:
        return real(me, label, *rest) * (not label.startswith("rest"))

    patch.setattr(Publisher, "noise_for", noise_for)


def rest_multiplied_anew(patch: Patch) -> None:
    """As if what was saved were rounded once more before it is opened, under its old name."""
    real = linear.publish_rest

    def publish(exchange: Any, commitment: Any, y: Tensor, *rest: Any) -> Any:
        off = exchange.run.done and exchange.run.me == "holder1"
        return real(exchange, commitment, y + int(off), *rest)

    patch.setattr(linear, "publish_rest", publish)


def seals_sent_to_the_server(patch: Patch) -> None:
    real = linear.name_publication

    def name(roster: Roster, round: int, own: bytes) -> Any:
        received = yield from real(roster, round, own)
        yield Send("server", "seal", torch.zeros(32, dtype=torch.uint8))
        return received

    patch.setattr(linear, "name_publication", name)
    patch.setattr(replay, "party_programs", _hearing(replay.party_programs))


def _hearing(real: Any) -> Any:
    """A server that also reads what the weakened copy above sends it."""

    def seals_first(effect: Any) -> Any:
        # Validation rows are opened under the name of those who train.
        if isinstance(effect, Receive) and effect.kind == "noisy-share" and effect.shape[0] != 10:
            yield Receive(effect.sender, "seal", (32,))
        return effect

    def programs(*given: Any) -> Any:
        by_party = real(*given)
        return by_party | {"server": altered(by_party["server"], seals_first)}

    return programs


@pytest.mark.slow  # many runs
@pytest.mark.parametrize(
    ("holders", "weaken", "leak"),
    [
        # Of all shares; of those that are sent; of kept ones of features, and of likenesses.
        (2, unmasked(""), "less what was dealt"),
        (5, unmasked("open"), "less what was dealt"),
        (2, unmasked("cut hop"), "the share of P that"),
        (5, unmasked("cut gram"), "the share of GRAM that"),
        (2, masks_reused_in_the_next_round, "from round to round"),
        (2, masks_of_those_who_train_reused_for_others, "adds, from one to the next"),
        (2, one_key_for_both_readers, "leaves of the matrix of holder2"),
        (2, matrices_in_the_clear, "leaves of the other matrix of holder1"),
        (3, sizes_of_the_data, "depend on data"),
        (2, rest_without_noise, "(rest) has less noise"),
        (2, rest_multiplied_anew, "round 5 of 5 opened another sum"),
        (5, masks_of_keys_that_the_server_knows, "under other secrets of the holders"),
        (2, low_bits_kept, "below the steps"),
        (5, half_the_noise, "less noise than"),
        (2, noise_repeated_with_other_data, "again with other data"),
        (5, noise_of_one_holder_repeated_with_other_data, "again with other data"),
        (2, seals_sent_to_the_server, "seal was sent to the server"),
    ],
)
def test_a_weakened_copy_is_found(holders: int, weaken: Callable[[Patch], None], leak: str, monkeypatch: Patch) -> None:
    weaken(monkeypatch)
    result = audit_dealer("shared-linear", holders)
    assert not result.holds and any(leak in note for note in result.notes), result.notes


# ---- weakened copies of the other modes ----


_noise, _publish = Publisher._noise, Publisher.publish


def same_noise(me: Publisher, label: str, shape: tuple[int, ...]) -> Tensor:
    """Noise that does not follow the rows."""
    return _noise(me, "always", shape)


def below_the_noise(me: Publisher, x: Tensor, *named: str) -> Tensor:
    """Rows with bits below those of the noise."""
    return _publish(me, x, *named) + 1e-4 * x.detach()


@pytest.mark.parametrize("mode", ["individual", "paper"])
@pytest.mark.parametrize(
    ("name", "weak", "note"),
    [
        ("_noise", same_noise, "again with other data under the same noise"),
        ("publish", below_the_noise, "off the grid"),
    ],
)
def test_rows_that_are_published_with_less_are_found(
    mode: str, name: str, weak: Any, note: str, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(Publisher, name, weak)
    result = audit_dealer(mode)
    assert not result.holds and note in result.notes[0]


def test_guesses_that_are_drawn_again_after_a_resume_are_found(monkeypatch: Patch) -> None:
    drawn = itertools.count()
    real = GuessPublisher.publish
    monkeypatch.setattr(GuessPublisher, "publish", lambda me: (real(me) + next(drawn)) % 3)
    result = audit_dealer("guesses")
    assert not result.holds and "published other guesses" in result.notes[0]
