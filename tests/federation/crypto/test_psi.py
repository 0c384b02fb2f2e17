"""Alignment: the ids that all have, in an order that all share, and nothing of the ids on the wire."""

from __future__ import annotations

import hashlib
import itertools
import secrets
from typing import Any

import pytest
import torch

from graphveil.errors import DataError, InputError
from graphveil.federation.core.messages import KINDS, simulate
from graphveil.federation.crypto import field, psi
from graphveil.federation.crypto.field import PRIME
from graphveil.federation.crypto.psi import align
from graphveil.federation.effects import PeerError, Receive, Roster, Send
from graphveil.privacy import SecureRandomness, SeededRandomness
from tests.federation.views import Recorder, altered


def aligned(sets: dict[str, list[str]]) -> tuple[dict[str, torch.Tensor], list[tuple[str, Send]]]:
    """The rows of each holder, and what was sent."""
    names, seen = tuple(sets), Recorder()
    programs = {name: align(Roster(name, names), ids, randomness=SecureRandomness()) for name, ids in sets.items()}
    return simulate(programs, watch=seen.watch)[0], seen.sent


def message(points: bytes) -> torch.Tensor:
    """Points as they travel, uint8 [points, 32]."""
    return torch.frombuffer(bytearray(points), dtype=torch.uint8).view(-1, psi.POINT)


def people(first: int, last: int) -> list[str]:
    """Ids in an order of their own."""
    return sorted((f"person-{number}" for number in range(first, last)), key=lambda text: hash((first, text)))


@pytest.mark.parametrize("holders", [2, 3, 5])
def test_rows_of_the_common_ids_in_one_order(holders: int) -> None:
    sets = {f"h{number}": people(3 * number, 40 + number) for number in range(holders)}
    rows, _ = aligned(sets)
    orders = [[sets[name][row] for row in rows[name].tolist()] for name in sets]
    assert all(order == orders[0] for order in orders)
    assert set(orders[0]) == set.intersection(*map(set, sets.values()))
    assert orders[0] != sorted(orders[0])  # not the ids' own order, which would say something of who is missing
    assert [sets["h0"][row] for row in aligned(sets)[0]["h0"].tolist()] != orders[0]  # and another one in every run


def test_nothing_of_the_ids_is_on_the_wire() -> None:
    """No id, hash of one or unblinded point is in what anybody sends, nor any point twice between two parties."""
    sets = {"a": people(0, 60), "b": people(30, 90), "c": people(20, 80)}
    _, sent = aligned(sets)
    wire = b"".join(effect.body.numpy().tobytes() for _, effect in sent)
    for text in set(itertools.chain(*sets.values())):
        raw = text.encode()
        for clear in (raw, hashlib.sha256(raw).digest(), psi.hash_to_curve([raw]), hashlib.md5(raw).digest()):
            assert clear not in wire
    assert {effect.kind for _, effect in sent} == {"blinded-ids", "blinded-set"}
    assert all(KINDS[effect.kind].receiver == "holder" for _, effect in sent)  # the server sees none of it
    for name in sets:
        blinded = [rows_of(effect.body) for who, effect in sent if who == name and effect.kind == "blinded-ids"]
        assert not set(blinded[0]) & set(blinded[1])


def test_the_same_ids_blinded_anew_look_new() -> None:
    runs = (aligned({"a": people(0, 20), "b": people(0, 20)}) for _ in range(2))
    seen = [{row for _, effect in sent for row in rows_of(effect.body)} for _, sent in runs]
    assert not seen[0] & seen[1]


def test_the_order_of_rows_is_not_shown() -> None:
    """A set is sent in a drawn order: the points of two runs with one secret come in different orders."""
    ids = [f"p{number}" for number in range(50)]

    def order(seed: int) -> list[int]:
        randomness = SeededRandomness(seed)
        first = next(align(Roster("a", ("a", "b")), ids, randomness=randomness))
        secret = SeededRandomness(seed).bytes(32)
        points = rows_of(psi.multiply_points(secret, psi.hash_to_curve([text.encode() for text in ids])))
        return [points.index(row) for row in rows_of(first.body)]

    orders = [order(seed) for seed in range(20)]
    assert all(sorted(order) == list(range(50)) for order in orders)
    assert len({tuple(order) for order in orders}) == 20
    # 20 orders of 50: where row 0 comes has mean 24.5 and standard error 3.2 over 20; 5 errors: chance below 1e-6
    assert abs(sum(order.index(0) for order in orders) / 20 - 24.5) < 16.5


def test_ids_twice_none_and_too_many_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for ids, message in ((["x", "x"], "several rows"), ([], "no rows")):
        with pytest.raises(DataError, match=message):
            next(align(Roster("a", ("a", "b")), ids, randomness=SecureRandomness()))
    monkeypatch.setattr(psi, "MAX_IDS", 3)
    with pytest.raises(InputError, match="at most 3"):
        next(align(Roster("a", ("a", "b")), people(0, 4), randomness=SecureRandomness()))
    with pytest.raises(PeerError, match="b: a set of 4 blinded ids"):
        answered(torch.ones(4, 32, dtype=torch.uint8))


def test_ids_that_unicode_holds_to_be_one_align() -> None:
    """Composed and decomposed accents look alike on every screen; capitals, spaces and zeros are left alone."""
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    rows, _ = aligned({"a": [composed, "x"], "b": ["y", decomposed]})
    assert (rows["a"].tolist(), rows["b"].tolist()) == ([0], [1])
    with pytest.raises(DataError, match="equal under Unicode normalization"):
        next(align(Roster("a", ("a", "b")), [composed, decomposed], randomness=SecureRandomness()))
    with pytest.raises(DataError, match="share no node id; check that all write ids the same way"):
        aligned({"a": ["Ann", " b", "07"], "b": ["ann", "b", "7"]})


class Dying(dict[str, torch.Tensor]):
    """A memory whose holder is killed at a write."""

    def __init__(self, writes: int) -> None:
        self.writes = writes

    def __setitem__(self, name: str, value: torch.Tensor) -> None:
        if not self.writes:
            raise KeyboardInterrupt
        self.writes -= 1
        super().__setitem__(name, value)


def test_a_holder_that_is_killed_goes_on_with_the_same_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """At every write: secret, order, three blocks of its own, three of the other's; nothing is computed twice."""
    monkeypatch.setattr(psi, "POINTS_A_BLOCK", 16)
    sets, names, steps = {"a": people(0, 40), "b": people(10, 50)}, ("a", "b"), []
    of_b, blocks = Dying(99), 2 + 3 + 3
    for writes in range(blocks):
        memories, first = {"a": Dying(writes), "b": of_b}, []

        def run(memories: dict[str, Any], sent: list[bytes]) -> Any:
            def watch(name: str, effect: Any) -> None:
                if name == "a" and isinstance(effect, Send):
                    sent.append(effect.body.numpy().tobytes())

            programs = {
                name: align(Roster(name, names), sets[name], randomness=SecureRandomness(), memory=memory,
                            progress=lambda step, name=name: steps.append((name, step.done, step.total)))
                for name, memory in memories.items()
            }  # fmt: skip
            return simulate(programs, watch=watch)[0]

        with pytest.raises(KeyboardInterrupt):
            run(memories, first)
        memories["a"].writes, again = blocks - (writes if writes > 1 else 0), []
        rows = run(memories, again)
        assert again[: len(first)] == first and memories["a"].writes == 0
        assert [sets["a"][row] for row in rows["a"]] == [sets["b"][row] for row in rows["b"]]
    assert [step[1:] for step in steps if step[0] == "a"][-6:] == [(n, 80) for n in (16, 32, 40, 56, 72, 80)]
    before = of_b["start"]
    next(align(Roster("b", names), people(0, 9), randomness=SecureRandomness(), memory=of_b))
    assert not torch.equal(of_b["start"], before) and len(of_b) == 3  # other ids: all is forgotten


# ---- the curve ----


def sides(points: bytes) -> list[bool]:
    """Whether each u is on the curve: u^3 + 486662 u^2 + u is a square (Euler); else it is on the twist."""
    numbers = [int.from_bytes(row, "little") % 2**255 for row in rows_of(points)]  # X25519 drops the last bit
    return [pow(u * (u * (u + 486662) + 1), (PRIME - 1) // 2, PRIME) <= 1 for u in numbers]


def rows_of(points: bytes | torch.Tensor) -> list[bytes]:
    data = points if isinstance(points, bytes) else points.numpy().tobytes()
    return [data[start : start + 32] for start in range(0, len(data), 32)]


IDS = [f"person-{number}".encode() for number in range(400)]


def test_no_bit_of_an_id_outlives_the_secrets() -> None:
    """Of bare hashes half would be on the curve, each on the side of its id whatever it is multiplied by.

    That 400 random sides are all one happens once in 2^399.
    """
    bare = b"".join(hashlib.sha256(text).digest() for text in IDS)
    for points, leaks in ((bare, True), (psi.hash_to_curve(IDS), False)):
        before = sides(points)
        for secret in (secrets.token_bytes(32) for _ in range(3)):
            points = psi.multiply_points(secret, points)
            assert sides(points) == before
            assert (len(set(before)) == 2) is leaks


#: RFC 9380, J.4.1: message, P.x.
VECTORS = [
    (b"", "2de3780abb67e861289f5749d16d3e217ffa722192d16bbd9d1bfb9d112b98c0"),
    (b"abc", "2b4419f1f2d48f5872de692b0aca72cc7b0a60915dd70bde432e826b6abc526d"),
    (b"abcdef0123456789", "68ca1ea5a6acf4e9956daa101709b1eee6c1bb0df1de3b90d4602382a104c036"),
    (b"q128_" + b"q" * 128, "096e9c8bae6c06b554c1ee69383bb0e82267e064236b3a30608d4ed20b73ac5a"),
    (b"a512_" + b"a" * 512, "1bc61845a138e912f047b5e70ba9606ba2a447a4dade024c8ef3dd42b7bbc5fe"),
]


def test_hashes_are_those_of_the_standard() -> None:
    tag = b"QUUX-V01-CS02-with-curve25519_XMD:SHA-512_ELL2_RO_"
    points = rows_of(psi.hash_to_curve([text for text, _ in VECTORS], tag=tag))
    assert [row[::-1].hex() for row in points] == [x for _, x in VECTORS]
    assert b"graphveil" in psi.TAG and psi.hash_to_curve([b"x"]) != psi.hash_to_curve([b"x"], tag=tag)


def test_powers_and_inverses_of_the_field() -> None:
    edges = [0, 1, 2, 19, 2**29 - 1, 2**29, 2**58, 2**254, PRIME - 1, PRIME - 2, PRIME - 2**29]
    numbers = edges * 50 + [secrets.randbelow(PRIME) for _ in range(100)]
    for exponent in (1, 2, 3, (PRIME - 1) // 2, (PRIME - 5) // 8):
        assert field.powers(numbers, exponent) == [pow(number, exponent, PRIME) for number in numbers]
    assert field.inverses(edges[1:]) == [pow(number, -1, PRIME) for number in edges[1:]]
    with pytest.raises(ValueError, match="invertible"):
        field.inverses([2, 0])


# ---- what no honest holder sends ----


def answered(first: torch.Tensor) -> None:
    """Hand holder a, of two, this as the set of holder b."""
    talk = align(Roster("a", ("a", "b")), people(0, 2), randomness=SecureRandomness())
    assert isinstance(next(talk), Send) and isinstance(next(talk), Receive)
    talk.send(first)


def encoded(*numbers: int) -> torch.Tensor:
    return message(b"".join(number.to_bytes(32, "little") for number in numbers))


#: u of a point of the twist.
TWIST = next(u for u in range(2, 100) if not sides(u.to_bytes(32, "little"))[0])
#: u of the points of order 1, 2, 4 and 8 of curve and twist.
SMALL = [
    0,
    1,
    PRIME - 1,
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823,
]


@pytest.mark.parametrize("u", [*SMALL, *(PRIME + u for u in (0, 1, 9)), 9 + 2**255, TWIST])
def test_points_of_small_order_of_the_twist_or_written_in_another_way_are_refused(u: int) -> None:
    """The first would send back a constant whatever the secret; one point in two writings would count as two ids."""
    honest = int.from_bytes(psi.hash_to_curve([b"y"]), "little")
    with pytest.raises(PeerError, match="b: a blinded id is not a valid hash point; it runs another version"):
        answered(encoded(honest, u))


def test_a_point_that_comes_twice_is_refused() -> None:
    """At any step: as a set to blind, as one's own set that comes home, as a finished set."""
    point, other = message(psi.hash_to_curve([b"y"])), message(psi.hash_to_curve([b"z"]))
    with pytest.raises(PeerError, match="b: a blinded id appears twice"):
        answered(torch.cat([point, point]))

    def home() -> Any:
        talk = align(Roster("a", ("a", "b")), people(0, 2), randomness=SecureRandomness())
        next(talk), next(talk)
        talk.send(torch.cat([point, other]))
        next(talk)
        return talk

    talk = home()
    with pytest.raises(PeerError, match="b: a blinded id appears twice"):
        talk.send(torch.cat([point, point]))
    talk = home()
    talk.send(torch.cat([point, other])), next(talk)
    with pytest.raises(PeerError, match="b: it returned other blinded ids than it was sent"):
        talk.send(torch.cat([point, point]))


def test_a_finished_set_with_other_points_is_refused() -> None:
    """Else a holder could claim ids of the reader's as its own after it has seen their finished points."""
    names = ("a", "b", "c")
    programs = {name: align(Roster(name, names), people(0, 30), randomness=SecureRandomness()) for name in names}

    def one_id_less(effect: Any) -> Any:
        yield from ()
        short = isinstance(effect, Send) and effect.kind == "blinded-set"
        return Send(effect.to, effect.kind, effect.body[1:]) if short else effect

    programs["b"] = altered(programs["b"], one_id_less)
    with pytest.raises(PeerError, match="b: it returned other blinded ids than it was sent"):
        simulate(programs)
