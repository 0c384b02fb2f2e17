"""Clients that say nothing, or a byte a second, or more than anybody needs: they keep nobody out."""

from __future__ import annotations

import resource
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphveil.collection.connections import HEAD, PATIENCE
from tests.collection.collections import begun, url_of
from tests.collection.faults import Server, answers_of, bodies, until
from tests.on_device.signing import label

IDLE, PEOPLE = 600, 8


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[Server, list[bytes]]]:
    """A server that may open 256 descriptors, and a report of everybody."""
    running = begun(url_of(tmp_path), label(), people=PEOPLE, enrolled=PEOPLE)
    running.store.engine.dispose()
    each, made = bodies(running), Server(url_of(tmp_path))
    until(lambda: answers_of(made.port, each[0]) is not None)
    made.limit(resource.RLIMIT_NOFILE, 256)
    yield made, each
    made.kill()


def ended(one: socket.socket, within: float) -> bool:
    """Whether the server ends a connection within so many seconds; what it says before that is let go."""
    one.settimeout(within)
    try:
        while one.recv(1 << 16):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


def test_idle_connections_keep_nobody_out(server: tuple[Server, list[bytes]]) -> None:
    """More than twice as many as there are descriptors, every other one of which began to say something."""
    made, each = server
    idle = [socket.create_connection(("127.0.0.1", made.port), 10) for _ in range(IDLE)]
    try:
        for place, one in enumerate(idle[::2]):
            one.send(b"POST /reports HTTP/1.1\r\nhost: x\r\n" + b"content-length: 9\r\n\r\n" * (place % 2))
        for report in each[1:]:
            since = time.monotonic()
            assert answers_of(made.port, report) == ["accepted"]
            assert time.monotonic() - since < 5.0  # a client that found no room would wait for PATIENCE or for ever
        # Those who came first made room, and the last ones are still here.
        assert ended(idle[0], 1.0) and not ended(idle[-1], 0.1)
    finally:
        for one in idle:
            one.close()


@pytest.mark.slow
def test_who_sends_a_byte_a_second_is_cut_off(server: tuple[Server, list[bytes]]) -> None:
    made, each = server
    with socket.create_connection(("127.0.0.1", made.port), 10) as one:
        since = time.monotonic()
        for byte in b"POST /reports HTTP/1.1\r\nhost: a-name-of-many-letters\r\n":
            try:
                one.send(bytes([byte]))
            except OSError:
                break
            if ended(one, 1.0):
                break
        assert 0.9 * PATIENCE < time.monotonic() - since < 2 * PATIENCE
    assert answers_of(made.port, each[1]) == ["accepted"]


def test_a_head_without_an_end_is_cut_off(server: tuple[Server, list[bytes]]) -> None:
    made, each = server
    with socket.create_connection(("127.0.0.1", made.port), 10) as one:
        one.send(b"POST /reports HTTP/1.1\r\n")
        with pytest.raises(OSError):
            for _ in range(100):
                one.sendall(b"a: " + b"b" * HEAD + b"\r\n")
    assert answers_of(made.port, each[1]) == ["accepted"]


def test_a_connection_is_used_again(server: tuple[Server, list[bytes]]) -> None:
    """Two requests in one packet, then a third: each is answered, in order."""
    made, each = server

    def post(body: bytes) -> bytes:
        return b"POST /reports HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)

    with socket.create_connection(("127.0.0.1", made.port), 10) as one:
        one.sendall(post(each[1]) + post(each[1]))
        told = b""
        while told.count(b"answers") < 2:
            told += one.recv(1 << 16)
        one.sendall(post(each[2]))
        while told.count(b"answers") < 3:
            told += one.recv(1 << 16)
    assert told.index(b"accepted") < told.index(b"again") < told.rindex(b"accepted")
