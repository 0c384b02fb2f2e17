"""A pair's numbered messages: repeated ones dropped, gaps refused, slow readers bounded, no waiting in a circle."""

from __future__ import annotations

import itertools
import threading
import time
from dataclasses import replace
from unittest.mock import patch

import pytest
import torch

from graphveil.federation.effects import PeerError
from graphveil.federation.transport import mailbox
from graphveil.federation.transport.mailbox import Endpoints, Mailbox, SessionMonitor, SessionOver
from graphveil.federation.transport.wire import ACK, Frame, WireError, parse
from tests.waiting import FOREVER, in_threads

RUN = bytes(32)
SESSION = b"s" * 16


def pair(patience: float = FOREVER, largest: int = 1 << 24) -> tuple[Mailbox, Mailbox]:
    a = Mailbox(Endpoints(RUN, 0, 1, "b"), SessionMonitor(), largest=largest, patience=patience)
    b = Mailbox(Endpoints(RUN, 1, 0, "a"), SessionMonitor(), largest=largest, patience=patience)
    for box in (a, b):
        box.begin(SESSION)
    return a, b


class Wire:
    """Carries frames between two mailboxes until it is cut."""

    def __init__(self, a: Mailbox, b: Mailbox) -> None:
        self.errors: list[Exception] = []
        self._streams = [(a, a.open_stream()), (b, b.open_stream())]
        (_, here), (_, there) = self._streams
        self._threads = [
            threading.Thread(target=self._carry, args=(a, here, b, there), daemon=True),
            threading.Thread(target=self._carry, args=(b, there, a, here), daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def _carry(self, start: Mailbox, here: int, end: Mailbox, there: int) -> None:
        try:
            for data in start.outgoing(here):
                end.take_frame(data, there)
        except Exception as error:
            self.errors.append(error)

    def cut(self) -> None:
        for box, stream in self._streams:
            box.close_stream(stream)
        for thread in self._threads:
            thread.join(FOREVER)


def due(box: Mailbox, stream: int) -> list[bytes]:
    """The frames that a mailbox would send now: up to where it waits for more."""
    with patch.object(box._monitor.lock, "wait", lambda seconds: box.close_stream(stream)):
        return list(box.outgoing(stream))


def words(count: int) -> torch.Tensor:
    return torch.arange(count)


def test_a_cut_in_the_middle_of_a_message_loses_nothing() -> None:
    a, b = pair()
    a.send("masked-left", body := words(400_000))
    body.zero_()  # what was sent is a copy
    a.send("labelled-rows", words(3))
    here, there = a.open_stream(), b.open_stream()
    parts = list(itertools.islice(a.outgoing(here), 4))
    for part in parts[:2]:  # two of four, then the line goes dead, and the others are late
        b.take_frame(part, there)
    wire = Wire(a, b)
    assert [b.take_frame(part, there) for part in parts[2:]] == [None, None]
    assert torch.equal(b.receive()[1], words(400_000))
    assert torch.equal(b.receive()[1], words(3))
    a.flush()
    assert a._unacknowledged_bytes + a._unread_bytes == b._unacknowledged_bytes + b._unread_bytes == 0
    wire.cut()
    assert not wire.errors


def test_replayed_messages_are_dropped_and_acknowledged_again() -> None:
    a, b = pair()
    a.send("labelled-rows", words(3))
    here, there = a.open_stream(), b.open_stream()
    (frame,) = due(a, here)
    for _ in range(3):
        b.take_frame(frame, there)
    assert torch.equal(b.receive()[1], words(3))
    assert b._unacknowledged_bytes + b._unread_bytes == 0
    numbers = [parse(data).number for data in due(b, there)]
    assert numbers == [1]
    assert b._inbox == type(b._inbox)()


def test_reordered_missing_and_headless_messages_are_refused() -> None:
    a, b = pair()
    a.send("labelled-rows", words(3))
    a.send("masked-left", words(300_000))
    here, there = a.open_stream(), b.open_stream()
    first, *parts = due(a, here)
    with pytest.raises(WireError, match="message 2 instead of 1"):
        b.take_frame(parts[0], there)
    b.take_frame(first, there)
    with pytest.raises(WireError, match="without its first part"):
        b.take_frame(parts[1], there)
    b.take_frame(parts[0], there)
    with pytest.raises(WireError, match="out of order"):
        b.take_frame(parts[2], there)
    assert b.receive()[0] == "labelled-rows" and not b._inbox


def test_frames_of_others_are_refused_and_of_other_sessions_dropped() -> None:
    a, b = pair()
    a.send("labelled-rows", words(3))
    here, there = a.open_stream(), b.open_stream()
    (data,) = due(a, here)
    frame = parse(data)
    for change in ({"agreement_hash": b"x" * 32}, {"sender": 2}, {"receiver": 3}):
        with pytest.raises(WireError, match="another run or of other parties"):
            b.take_frame(replace(frame, **change).to_bytes(), there)  # type: ignore[arg-type]
    assert b.take_frame(replace(frame, session=b"z" * 16).to_bytes(), there) is None
    assert not b._inbox
    with pytest.raises(WireError, match="never sent"):
        a.take_frame(Frame(ACK, RUN, SESSION, 1, 0, number=2).to_bytes(), a.open_stream())


def test_a_new_session_forgets_the_old_one() -> None:
    a, b = pair()
    wire = Wire(a, b)
    a.send("masked-left", words(200_000))
    for box in (a, b):
        box.begin(b"t" * 16)
    a.send("labelled-rows", words(2))
    assert torch.equal(b.receive()[1], words(2))
    wire.cut()
    assert not wire.errors


def test_a_slow_reader_holds_no_more_than_two_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mailbox, "WINDOW", 1 << 20)
    a, b = pair()
    wire = Wire(a, b)
    size, count = 1 << 17, 60  # 1 MiB a message, 60 windows in all
    sender = threading.Thread(target=lambda: [a.send("masked-left", words(size)) for _ in range(count)], daemon=True)
    sender.start()
    most = 0
    for _ in range(count):
        time.sleep(0.01)  # the reader computes
        most = max(most, a._unacknowledged_bytes + b._unread_bytes)
        b.receive()
    sender.join(FOREVER)
    a.flush()
    wire.cut()
    assert not wire.errors
    assert most <= 2 * (1 << 20) + 3 * (8 * size)


def test_parties_that_all_send_first_never_wait_in_a_circle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each sends every other 40 windows before it reads anything, as in the exchange of masked matrices."""
    monkeypatch.setattr(mailbox, "WINDOW", 1 << 16)
    parties = 3
    paces = [SessionMonitor() for _ in range(parties)]
    box = {
        (i, j): Mailbox(Endpoints(RUN, i, j, f"p{j}"), paces[i], largest=1 << 20, patience=FOREVER)
        for i in range(parties)
        for j in range(parties)
        if i != j
    }
    for each in box.values():
        each.begin(SESSION)
    wires = [Wire(box[i, j], box[j, i]) for i, j in box if i < j]
    done: list[int] = []

    def work(me: int) -> None:
        peers = [j for j in range(parties) if j != me]
        for _ in range(40):
            for j in peers:
                box[me, j].send("masked-left", words(1 << 13))
        for _ in range(40):
            for j in peers:
                assert len(box[me, j].receive()[1]) == 1 << 13
        done.append(me)

    with in_threads(work, range(parties)):
        pass
    assert sorted(done) == list(range(parties))
    for wire in wires:
        wire.cut()
        assert not wire.errors


def test_patience_counts_from_when_waiting_began() -> None:
    a, _ = pair(patience=0.6)
    time.sleep(0.8)  # this party computed; nothing had to arrive meanwhile
    began = time.monotonic()
    with pytest.raises(PeerError, match=r"^b: has been silent for 1 s; restart the party"):
        a.receive()
    assert time.monotonic() - began > 0.5


def test_waiting_ends_when_the_session_ends_and_a_fault_stays() -> None:
    monitor = SessionMonitor()
    box = Mailbox(Endpoints(RUN, 0, 1, "b"), monitor, largest=1 << 20, patience=FOREVER)
    threading.Timer(0.1, monitor.end, (SessionOver(),)).start()
    with pytest.raises(SessionOver):
        box.receive()
    monitor.begin()
    box.send("labelled-rows", words(1))
    monitor.end(PeerError("broke the protocol", where="b"))
    monitor.end(SessionOver())
    monitor.begin()
    with pytest.raises(PeerError):
        box.send("labelled-rows", words(1))
