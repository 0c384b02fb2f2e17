"""Clients that say nothing, or a byte a second, or more than anybody needs: they keep nobody out."""

from __future__ import annotations

import resource
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from graphveil.collection.service.connections import AHEAD, FIELDS, IGNORED, PATIENCE, Memory
from graphveil.collection.service.door import LARGEST
from graphveil.device.wire import report
from tests.collection.collections import begun, key, secret, url_of
from tests.collection.faults import Server, answers_of, serving
from tests.on_device.signing import links
from tests.waiting import until

IDLE, PEOPLE = 600, 8
#: So many that a thousand lists of links are the most that a request may hold.
MANY = 140_000


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[Server, list[bytes]]]:
    """A server that may open 256 descriptors, and a report of everybody."""
    with serving(url_of(tmp_path), PEOPLE) as (server, each):
        server.limit(resource.RLIMIT_NOFILE, 256)
        yield server, each


@dataclass
class Somebody:
    """Who counts in a memory."""

    memory: Memory
    everybody: list[Somebody]
    proven: bool = False
    occupied: int = 0
    waiting: float | None = 0.0
    overdue: bool = False

    def sends(self, size: int) -> None:
        self.occupied += size
        self.memory.change(size, self.everybody)

    def leave(self) -> None:
        self.everybody.remove(self)
        self.memory.change(-self.occupied, self.everybody)
        self.occupied = 0


def test_where_memory_is_short_the_largest_stranger_makes_room() -> None:
    memory, everybody = Memory(most=1_000), list[Somebody]()
    strangers = [Somebody(memory, everybody) for _ in range(60)]
    honest, relay = Somebody(memory, everybody), Somebody(memory, everybody, proven=True)
    everybody += [*strangers, honest, relay]
    honest.sends(5)
    for _ in range(4):
        relay.sends(100)
        for stranger in strangers:
            if stranger in everybody:
                stranger.sends(90)
            assert memory.used == sum(each.occupied for each in everybody) <= memory.most
    assert honest in everybody and relay in everybody and len(everybody) < 12
    # One that is known keeps no stranger out either.
    relay.sends(800)
    assert relay not in everybody and honest in everybody


def stranger(port: int, head: bytes, name: int) -> socket.socket:
    """A connection from an address of its own that has begun a request, and takes no time of ours."""
    connection = socket.socket()
    connection.bind((f"127.0.1.{1 + name % 250}", 0))
    connection.settimeout(10.0)
    connection.connect(("127.0.0.1", port))
    connection.setblocking(False)
    connection.send(head)
    return connection


def pressed(strangers: list[socket.socket], seconds: float) -> None:
    """Send on all of them what the server takes."""
    end, part = time.monotonic() + seconds, bytes(1 << 16)
    while strangers and time.monotonic() < end:
        for stranger in strangers[:]:
            try:
                stranger.send(part)
            except BlockingIOError:
                continue
            except OSError:
                strangers.remove(stranger)
                stranger.close()
        time.sleep(0.001)


@pytest.mark.slow  # kilobytes have to come from so many before memory would grow
@pytest.mark.parametrize(("count", "most"), [(60, 100.0), (2_000, 300.0)])
def test_strangers_with_large_bodies_take_little_memory_and_keep_nobody_out(
    count: int, most: float, tmp_path: Path
) -> None:
    running = begun(url_of(tmp_path), links(MANY), people=MANY, enrolled=PEOPLE)
    running.store.engine.dispose()
    empty = bytes(-(-running.task.bits // 8))
    each = [report(running.task.hash, 1, empty, secret(n), key(n)).to_bytes() for n in range(PEOPLE)]
    server = Server(url_of(tmp_path))
    until(lambda: answers_of(server.port, each[0]) is not None)
    server.limit(resource.RLIMIT_NOFILE, 4_000)
    before, head = (
        server.memory,
        b"POST /reports HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % (LARGEST - 1),
    )
    strangers = [stranger(server.port, head, name) for name in range(count)]
    try:
        for body in each[1:-2]:
            pressed(strangers, 1.0)
            assert answers_of(server.port, body) == ["accepted"]
            assert server.memory - before < most
        # A body of many reports as well.
        assert answers_of(server.port, each[-2] + each[-1] + each[0] * 90) == ["accepted"] * 2 + ["again"] * 90
        assert server.memory - before < most
    finally:
        for connection in strangers:
            connection.close()
        server.kill()


def test_what_becomes_many_objects_is_bounded(server: tuple[Server, list[bytes]]) -> None:
    """Fields of a head, trailers behind the last chunk, requests ahead of answers, a body after its answer."""
    collector, each = server
    head = b"POST /reports HTTP/1.1\r\nhost: localhost\r\n"
    tries = (
        head + b"a:\r\n" * (FIELDS + 1),
        head + b"transfer-encoding: chunked\r\n\r\n0\r\n" + b"a:\r\n" * (FIELDS + 1),
        b"GET /heartbeat HTTP/1.1\r\nhost: localhost\r\n\r\n" * 3 * AHEAD,
        head + b"content-length: 999999999\r\n\r\n" + bytes(IGNORED + (1 << 20)),
    )
    for data in tries:
        with socket.create_connection(("127.0.0.1", collector.port), 10) as connection:
            with suppress(OSError):
                connection.sendall(data)
            assert ended(connection, 10.0)
    assert answers_of(collector.port, each[1]) == ["accepted"]


def ended(connection: socket.socket, within: float) -> bool:
    """Whether the server ends a connection within so many seconds; what it says before that is let go."""
    connection.settimeout(within)
    try:
        while connection.recv(1 << 16):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


def test_idle_connections_keep_nobody_out(server: tuple[Server, list[bytes]]) -> None:
    """More than twice as many as there are descriptors, every other one of which began to say something."""
    collector, each = server
    idle = [socket.create_connection(("127.0.0.1", collector.port), 10) for _ in range(IDLE)]
    try:
        for place, connection in enumerate(idle[::2]):
            head = b"POST /reports HTTP/1.1\r\nhost: localhost\r\n"
            connection.send(head + b"content-length: 9\r\n\r\n" * (place % 2))
        for report in each[1:]:
            since = time.monotonic()
            assert answers_of(collector.port, report) == ["accepted"]
            assert time.monotonic() - since < 5.0  # a client that found no room would wait for PATIENCE or for ever
        # Those who came first made room, and the last ones are still here.
        assert ended(idle[0], 1.0) and not ended(idle[-1], 0.1)
    finally:
        for connection in idle:
            connection.close()


@pytest.mark.slow
def test_who_sends_a_byte_a_second_is_cut_off(server: tuple[Server, list[bytes]]) -> None:
    collector, each = server
    with socket.create_connection(("127.0.0.1", collector.port), 10) as connection:
        since = time.monotonic()
        for byte in b"POST /reports HTTP/1.1\r\nhost: a-name-of-many-letters\r\n":
            try:
                connection.send(bytes([byte]))
            except OSError:
                break
            if ended(connection, 1.0):
                break
        assert 0.9 * PATIENCE < time.monotonic() - since < 2 * PATIENCE
    assert answers_of(collector.port, each[1]) == ["accepted"]
