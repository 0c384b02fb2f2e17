"""TLS whose handshake never ends: it is cut off as a request is whose head never ends."""

from __future__ import annotations

import json
import resource
import socket
import ssl
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from graphveil.collection.service.service import Collector
from graphveil.collection.service.serving import Place, address, listening, server_of
from graphveil.federation.crypto.keys import new_identity
from tests.collection.collections import begun, url_of
from tests.collection.faults import Server
from tests.collection.test_connections import ended
from tests.on_device.signing import label
from tests.waiting import until

#: Seconds.
HANDSHAKE = 1.5


def certified(folder: Path) -> Place:
    """A place with a certificate that this test alone trusts."""
    own = new_identity("localhost")
    (folder / "cert.pem").write_bytes(own.certificate)
    (folder / "key.pem").write_bytes(own.private_key)
    return Place("localhost", 0, folder / "cert.pem", folder / "key.pem")


@contextmanager
def secured(folder: Path) -> Iterator[tuple[str, int]]:
    """Serve a collection over TLS; gives its address and port."""
    collection, place = begun(url_of(folder)), certified(folder)
    place.require_files()
    with listening(place) as own:
        server = server_of(Collector(collection.store), place, HANDSHAKE)
        thread = threading.Thread(target=server.run, args=([own],))
        thread.start()
        try:
            yield address(own, place), own.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


def test_a_handshake_that_never_ends_is_cut_off(tmp_path: Path) -> None:
    """A client that says nothing, and one that has said half of it."""
    with secured(tmp_path) as (url, port):
        assert url.startswith("https://localhost:")
        for begins in (b"", bytes.fromhex("160301020001")):
            since = time.monotonic()
            with socket.create_connection(("127.0.0.1", port), 10) as idle:
                idle.sendall(begins)
                # In the meantime it keeps nobody out.
                trust = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
                with urllib.request.urlopen(f"{url}/heartbeat", context=trust, timeout=30) as answer:
                    assert json.load(answer) == {"alive": True}
                assert ended(idle, 10 * HANDSHAKE)
            assert 0.9 * HANDSHAKE < time.monotonic() - since < 5 * HANDSHAKE


def listens(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0


def test_handshakes_that_never_end_keep_nobody_out(tmp_path: Path) -> None:
    """More of them than there may be connections, held up all the while; half of them have begun."""
    running = begun(url_of(tmp_path), label(), people=8, enrolled=8)
    running.store.engine.dispose()
    server = Server(url_of(tmp_path), replace(certified(tmp_path), host="127.0.0.1"))
    trust = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
    url = f"https://localhost:{server.port}/heartbeat"
    idle: list[socket.socket] = []

    def alive() -> bool:
        with urllib.request.urlopen(url, context=trust, timeout=30) as answer:
            return bool(json.load(answer) == {"alive": True})

    try:
        until(lambda: listens(server.port))
        assert alive()
        server.limit(resource.RLIMIT_NOFILE, 256)
        for round in range(3):
            for place in range(200):
                idle.append(socket.create_connection(("127.0.0.1", server.port), 10))
                idle[-1].sendall(bytes.fromhex("160301020001") * (place % 2))
            since = time.monotonic()
            assert alive() and time.monotonic() - since < 2.0, round
        assert ended(idle[0], 1.0) and not ended(idle[-1], 0.1)
    finally:
        server.kill()
        for connection in idle:
            connection.close()
