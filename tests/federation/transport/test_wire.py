"""Frames: what is sent comes back, and bytes that are no frame of this run are refused without being believed."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphveil.federation.core.messages import KINDS
from graphveil.federation.transport.wire import (
    ACK,
    CHUNK,
    CONTROL,
    DATA,
    Assembly,
    Frame,
    WireError,
    control_bytes,
    frames_of,
    parse,
    parse_control,
)

AGREEMENT, SESSION = bytes(range(32)), bytes(range(16))
QUIET = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def frames(kind: str, body: torch.Tensor, number: int = 1) -> list[Frame]:
    return list(frames_of(kind, body, agreement_hash=AGREEMENT, session=SESSION, sender=0, receiver=1, number=number))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(), (0,), (0, 5), (3,), (2, 3, 4), (1, 1, 1, 2)])
def test_every_kind_comes_back_as_it_was(kind: str, shape: tuple[int, ...]) -> None:
    if kind in ("aligned", "done") and torch.Size(shape).numel() > 1:
        shape = (1,)
    body = torch.randint(0, 100, shape).to(KINDS[kind].dtype)
    sent = frames(kind, body)
    assembly, whole = Assembly(sent[0], largest=1 << 20), None
    for frame in sent:
        whole = assembly.add(parse(frame.to_bytes()))
    assert whole is not None and whole[0] == kind
    assert whole[1].dtype == body.dtype and torch.equal(whole[1], body)


@QUIET
@given(st.binary(max_size=400))
def test_any_bytes_raise_nothing_but_wire_errors(data: bytes) -> None:
    with pytest.raises(WireError) as caught:
        parse(data)
    assert "\n" not in str(caught.value)
    with contextlib.suppress(WireError):
        assert isinstance(parse_control(data), dict)


@QUIET
@given(st.data())
def test_any_damage_is_seen(data: st.DataObject) -> None:
    whole = frames("embeddings", torch.ones(3, 2))[0].to_bytes()
    place = data.draw(st.integers(0, len(whole) - 1))
    damaged = bytearray(whole)
    damaged[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(WireError):
        parse(bytes(damaged))
    with pytest.raises(WireError):
        parse(whole[:place])


@QUIET
@given(
    shape=st.lists(st.integers(0, 2**40), max_size=4).map(tuple),
    parts=st.integers(1, 1 << 20),
    part=st.integers(0, 1 << 20),
    kind=st.integers(0, 255),
    dtype=st.integers(0, 255),
    body=st.binary(max_size=64),
)
def test_forged_messages_never_take_more_than_is_allowed(
    shape: tuple[int, ...], parts: int, part: int, kind: int, dtype: int, body: bytes
) -> None:
    forged = Frame(DATA, AGREEMENT, SESSION, 0, 1, 1, part, parts, kind, dtype, shape, body)
    with contextlib.suppress(WireError):
        frame = parse(forged.to_bytes())
        assembly = Assembly(frame, largest=1 << 16)
        whole = assembly.add(frame)
        assert len(assembly._body) <= 1 << 16
        assert whole is None or whole[1].numel() * whole[1].element_size() <= 1 << 16


@pytest.mark.parametrize(
    "change",
    [
        {"parts": 2},
        {"part": 1, "parts": 2},
        {"kind": 200},
        {"dtype": 3},
        {"dtype": 9},
        {"shape": (4, 2)},
        {"shape": (2**40 + 1, 0)},
        {"shape": (2**39, 2**39, 2**39)},
        {"number": 0},
        {"body": b"x"},
        {"body": bytes(CHUNK)},
        {"type": 7},
    ],
)
def test_fields_that_do_not_fit_are_refused(change: dict[str, object]) -> None:
    frame = frames("embeddings", torch.ones(3, 2))[0]
    with pytest.raises(WireError):
        forged = parse(replace(frame, **change).to_bytes())  # type: ignore[arg-type]
        Assembly(forged, largest=1 << 20).add(forged)


def test_frames_and_messages_that_are_too_large_are_refused() -> None:
    frame = frames("embeddings", torch.ones(3, 2))[0]
    with pytest.raises(WireError, match="bytes"):
        parse(replace(frame, body=bytes(CHUNK + 1)).to_bytes())
    with pytest.raises(WireError, match="a message of 24 bytes; allowed: at most 23"):
        Assembly(frame, largest=23)
    (aligned,) = frames("aligned", torch.tensor([1, 2]))
    with pytest.raises(WireError, match="at most 8"):
        Assembly(aligned, largest=1 << 20)
    parse(Frame(ACK, AGREEMENT, SESSION, 0, 1, number=3).to_bytes())
    for wrong in ({"type": CONTROL, "body": bytes(5000)}, {"type": ACK, "number": 3, "part": 1, "parts": 2}):
        with pytest.raises(WireError):
            parse(Frame(agreement_hash=AGREEMENT, session=SESSION, sender=0, receiver=1, **wrong).to_bytes())  # type: ignore[arg-type]


def test_parts_out_of_order_or_of_another_message_are_refused() -> None:
    sent = frames("masked-left", torch.arange(CHUNK // 4))
    assembly = Assembly(sent[0], largest=1 << 24)
    with pytest.raises(WireError, match="out of order"):
        assembly.add(sent[1])
    assembly = Assembly(sent[0], largest=1 << 24)
    assembly.add(sent[0])
    with pytest.raises(WireError, match="out of order"):
        assembly.add(sent[0])
    other = frames("masked-left", torch.arange(CHUNK // 4), number=2)
    with pytest.raises(WireError, match="different messages"):
        assembly.add(other[1])
    with pytest.raises(WireError, match="announced"):
        assembly.add(replace(sent[1], body=sent[1].body[:-8]))


def test_words_come_back_and_others_are_refused() -> None:
    word = {"ready": "abc", "rounds": [0, 1], "round": -1}
    assert parse_control(control_bytes(word)) == word
    for body in (b"[1]", b"1", b'{"a": {}}', b'{"a": 1.5}', b'{"a": null}', b'{"a": true}', b"[" * 4000, b"\xff"):
        with pytest.raises(WireError):
            parse_control(body)
