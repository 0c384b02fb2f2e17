"""Alignment: the ids that all have, in an order that all share, and nothing of the ids on the wire."""

from __future__ import annotations

import hashlib
import itertools

import pytest
import torch

from graphveil.errors import DataError, InputError
from graphveil.federation import curve, psi
from graphveil.federation.messages import KINDS, Receive, Send
from graphveil.federation.programs import simulate
from graphveil.federation.psi import align
from graphveil.privacy import SecureRandomness, SeededRandomness


def aligned(sets: dict[str, list[str]], sent: list[tuple[str, Send]] | None = None) -> dict[str, torch.Tensor]:
    names = tuple(sets)
    programs = {name: align(name, names, ids, randomness=SecureRandomness()) for name, ids in sets.items()}

    def watch(name: str, effect: object) -> None:
        if sent is not None and isinstance(effect, Send):
            sent.append((name, effect))

    return simulate(programs, watch=watch)[0]


def people(first: int, last: int) -> list[str]:
    """Ids in an order of their own."""
    return sorted((f"person-{number}" for number in range(first, last)), key=lambda text: hash((first, text)))


@pytest.mark.parametrize("holders", [2, 3, 5])
def test_rows_of_the_common_ids_in_one_order(holders: int) -> None:
    sets = {f"h{number}": people(3 * number, 40 + number) for number in range(holders)}
    found = aligned(sets)
    orders = [[sets[name][row] for row in found[name].tolist()] for name in sets]
    assert all(order == orders[0] for order in orders)
    assert set(orders[0]) == set.intersection(*map(set, sets.values()))
    assert orders[0] != sorted(orders[0])  # not the ids' own order, which would say something of who is missing


def test_the_order_differs_from_run_to_run() -> None:
    sets = {"a": people(0, 40), "b": people(0, 40)}
    runs = [tuple(sets["a"][row] for row in aligned(sets)["a"].tolist()) for _ in range(3)]
    assert len(set(runs)) == 3


def test_ids_of_any_text_align() -> None:
    ids = ["", " ", "Ä", "\u202e", "0", "00", "a\nb", "💧"]
    found = aligned({"a": ids, "b": ids[::-1]})
    assert len(found["a"]) == len(ids)


def test_nothing_of_the_ids_is_on_the_wire() -> None:
    """No id, hash of one or unblinded point is in what anybody sends, nor any point twice between two parties."""
    sets, sent = {"a": people(0, 60), "b": people(30, 90), "c": people(20, 80)}, []
    aligned(sets, sent)
    wire = b"".join(effect.body.numpy().tobytes() for _, effect in sent)
    for text in set(itertools.chain(*sets.values())):
        raw = text.encode()
        for clear in (raw, hashlib.sha256(raw).digest(), curve.hashed([text]), hashlib.md5(raw).digest()):
            assert clear not in wire
    assert {effect.kind for _, effect in sent} == {"blinded-ids", "blinded-set"}
    assert all(KINDS[effect.kind].receiver == "holder" for _, effect in sent)  # the server sees none of it
    for name in sets:
        blinded = [psi._rows(effect.body) for who, effect in sent if who == name and effect.kind == "blinded-ids"]
        assert not set(blinded[0]) & set(blinded[1])


def test_the_same_ids_blinded_anew_look_new() -> None:
    sets, first, second = {"a": people(0, 20), "b": people(0, 20)}, [], []
    aligned(sets, first)
    aligned(sets, second)
    seen = [{row for _, effect in sent for row in psi._rows(effect.body)} for sent in (first, second)]
    assert not seen[0] & seen[1]


def test_the_order_of_rows_is_not_shown() -> None:
    """A set is sent in a drawn order: the points of two runs with one secret come in different orders."""
    ids = [f"p{number}" for number in range(50)]

    def order(seed: int) -> list[int]:
        randomness = SeededRandomness(seed)
        first = next(align("a", ("a", "b"), ids, randomness=randomness))
        secret = SeededRandomness(seed).bytes(32)
        points = psi._rows(psi._tensor(curve.multiplied(secret, curve.hashed(ids))))
        return [points.index(row) for row in psi._rows(first.body)]

    orders = [order(seed) for seed in range(20)]
    assert all(sorted(found) == list(range(50)) for found in orders)
    assert len({tuple(found) for found in orders}) == 20
    # 20 orders of 50: where row 0 comes has mean 24.5 and standard error 3.2 over 20; 5 errors: chance below 1e-6
    assert abs(sum(found.index(0) for found in orders) / 20 - 24.5) < 16.5


def test_ids_twice_none_and_too_many_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for ids, message in ((["x", "x"], "several rows"), ([], "no rows")):
        with pytest.raises(DataError, match=message):
            next(align("a", ("a", "b"), ids, randomness=SecureRandomness()))
    monkeypatch.setattr(psi, "MOST_IDS", 3)
    with pytest.raises(InputError, match="at most 3"):
        next(align("a", ("a", "b"), people(0, 4), randomness=SecureRandomness()))
    talk = align("a", ("a", "b"), people(0, 2), randomness=SecureRandomness())
    assert isinstance(next(talk), Send) and isinstance(next(talk), Receive)
    with pytest.raises(InputError, match="a set of 4 blinded ids"):
        talk.send(torch.ones(4, 32, dtype=torch.uint8))


def test_no_common_id_is_said() -> None:
    with pytest.raises(DataError, match="share no node id; check that all write ids the same way"):
        aligned({"a": people(0, 5), "b": people(5, 10)})


def test_points_of_small_order_are_refused() -> None:
    """They would send back a constant whatever the secret."""
    talk = align("a", ("a", "b"), people(0, 2), randomness=SecureRandomness())
    next(talk), next(talk)
    with pytest.raises(DataError, match="is no point"):
        talk.send(torch.zeros(2, 32, dtype=torch.uint8))


def test_secrets_commute() -> None:
    a, b, points = bytes(range(32)), bytes(range(32, 64)), curve.hashed(people(0, 40))
    assert curve.multiplied(a, curve.multiplied(b, points)) == curve.multiplied(b, curve.multiplied(a, points))
