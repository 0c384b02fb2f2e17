"""The door: idle, stalling and babbling strangers in any number do not keep parties out or end a run."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphveil.federation.transport import admission
from graphveil.federation.transport.admission import AdmissionProxy, network_of
from tests.federation.ports import free_ports
from tests.waiting import FOREVER, until


def leave_with_parent() -> None:
    """End this process when the test is gone, however it went."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


# ---- the door alone ----


class House:
    """A door before a server that echoes what it is sent, and greets who says so."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.refused: list[str] = []
        self.inside: list[tuple[str, socket.socket]] = []
        (port,) = free_ports(1)
        self.address = ("127.0.0.1", port)
        self.proxy = AdmissionProxy(f"127.0.0.1:{port}", refused=self.refused.append, note=self.notes.append)
        self.proxy.behind(self._listen)
        self.proxy.start()
        self.open: list[socket.socket] = []

    def _listen(self, where: str) -> int:
        kind, _, rest = where.partition(":")
        if kind == "unix":
            self._server = socket.socket(socket.AF_UNIX)
            self._server.bind(rest)
            self._server.listen(100)
        else:
            self._server = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._take, daemon=True).start()
        return 0 if kind == "unix" else int(self._server.getsockname()[1])

    def _take(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, name = self._server.accept()
                peer = f"unix:{name}" if isinstance(name, str) else f"ipv4:127.0.0.1:{name[1]}"
                self.inside.append((peer, connection))
                threading.Thread(target=self._echo, args=(connection,), daemon=True).start()

    def _echo(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := connection.recv(1 << 16):
                if data.endswith(b"refuse"):
                    break
                connection.sendall(data)
            connection.close()

    def connect(self, data: bytes = b"") -> socket.socket:
        connection = socket.create_connection(self.address, timeout=FOREVER)
        connection.sendall(data)
        self.open.append(connection)
        return connection

    def enter(self, *, party: str | None = None) -> socket.socket:
        """Connect, say hello, see the answer, and greet as a party if it is named."""
        before = len(self.inside)
        connection = self.connect(HELLO)
        assert read(connection, len(HELLO)) == HELLO
        until(lambda: len(self.inside) > before)
        if party is not None:
            self.proxy.greeted(self.inside[-1][0], party)
        return connection

    def close(self) -> None:
        for connection in self.open:
            connection.close()
        self._server.close()
        self.proxy.close()


HELLO = b"\x16\x03\x01\x00\x05hello"


def read(connection: socket.socket, size: int) -> bytes:
    """Return that many bytes, or fewer where the connection ends; "cut" where it was cut off."""
    received = b""
    try:
        while len(received) < size and (data := connection.recv(size - len(received))):
            received += data
    except ConnectionError:
        return b"cut"
    return received


@pytest.fixture(params=["unix", "a path too long"])
def house(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    """Where Unix sockets are, and as where they are not."""
    if request.param == "a path too long":
        monkeypatch.setattr(admission, "_LONGEST_PATH", 5)
    for limit in ("_HELLO_SECONDS", "_GREETING_SECONDS"):
        monkeypatch.setattr(admission, limit, FOREVER)
    opened = House()
    yield opened
    opened.close()


def test_a_hello_in_pieces_is_a_hello_and_what_is_none_never_gets_inside(house: House) -> None:
    slow = house.connect()
    for byte in HELLO:
        slow.sendall(bytes([byte]))
    assert read(slow, len(HELLO)) == HELLO
    for garbage in (
        b"GET / HTTP/1.1\r\n\r\n",
        bytes(5),
        b"\x16\x02\x01\x00\x05",
        b"\x16\x03\x01\xff\xff",
        b"\x17\x03\x03",
    ):
        assert read(house.connect(garbage), 1) in (b"", b"cut")
    assert len(house.inside) == 1 and house.refused == []


def test_who_is_silent_stalls_or_does_not_greet_is_cut_off(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "_HELLO_SECONDS", 0.3)
    monkeypatch.setattr(admission, "_GREETING_SECONDS", 0.6)
    assert read(house.connect(), 1) == b"cut"
    assert read(house.connect(HELLO[:7]), 1) == b"cut"
    assert read(house.connect(HELLO), 100) == b"cut"
    assert house.refused == []  # that was this door, not the server


def test_a_party_has_one_connection_the_newest_and_is_never_cut_off(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, other = house.enter(party="holder1"), house.enter(party="holder2")
    second = house.enter(party="holder1")
    name = house.inside[-1][0]
    assert read(first, 1) == b"cut"
    monkeypatch.setattr(admission, "_GREETING_SECONDS", 0.0)
    assert read(house.connect(HELLO), 100) == b"cut"  # as a stranger is
    for connection in (second, other):
        connection.sendall(b"still here")
        assert read(connection, 10) == b"still here"
    assert not house.proxy.knows("unix:/elsewhere/c0") and not house.proxy.knows("ipv4:127.0.0.1:1")
    assert house.proxy.knows(name)


def test_strangers_are_few_and_the_oldest_silent_ones_go_first(house: House) -> None:
    """A flood from one address leaves as many as one address may have; who says hello gets in, and stays."""
    party = house.enter(party="holder1")
    for _ in range(3 * admission.WAITING):
        house.connect()
        assert len(house.proxy._pairs) <= 1 + admission.WAITING_OF_ONE + admission._ACCEPTED_AT_ONCE
    late = house.enter()
    assert read(house.open[1], 1) == b"cut"
    for connection in (party, late):
        connection.sendall(b"still here")
        assert read(connection, 10) == b"still here"


def test_those_that_enter_are_few_and_who_has_answered_goes_last(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stalled hellos make way for one another; a client that has answered what the server said does not."""
    monkeypatch.setattr(admission, "_SAFE_SECONDS", (0.0, 0.0, FOREVER))
    answering = house.enter()
    answering.sendall(b"certificate")
    assert read(answering, 11) == b"certificate"
    for _ in range(2 * admission.ENTERING):
        house.enter()
        entering = [pair for pair in list(house.proxy._pairs) if pair.inside is not None]
        assert len(entering) <= admission.ENTERING_OF_ONE + 1  # one that is just going
    answering.sendall(b"finished")
    assert read(answering, 8) == b"finished"


def few_files(answers: Any) -> None:
    """In a process of its own: open strangers until files run out, and then a party."""
    leave_with_parent()
    house = House()
    used = len(list(Path("/dev/fd").iterdir()))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 12, used + 12))
    try:
        strangers: list[socket.socket] = []
        with contextlib.suppress(OSError):  # this process runs out too
            while True:
                strangers.append(socket.create_connection(house.address, timeout=FOREVER))
        until(lambda: house.notes)
        for stranger in strangers:
            stranger.close()
        until(lambda: not any(pair.party is None for pair in list(house.proxy._pairs)))
        answers.put((house.notes, read(house.connect(HELLO), len(HELLO))))
    except Exception as error:
        answers.put(repr(error))


@pytest.mark.slow
def test_no_files_left_is_survived(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    process = context.Process(target=few_files, args=(answers,), daemon=True)
    process.start()
    notes, answer = answers.get(timeout=FOREVER)
    process.join(FOREVER)
    assert len(notes) == 1 and "Too many open files: connections wait" in notes[0]
    assert answer == HELLO


def test_strangers_are_counted_by_network() -> None:
    assert network_of("192.0.2.7") == network_of("::ffff:192.0.2.7") == "192.0.2.7"
    assert network_of("2001:db8::1%eth0") == network_of("2001:db8::ffff") == "2001:db8::/64"
    assert network_of("2001:db8:0:1::1") != network_of("2001:db8::1")
