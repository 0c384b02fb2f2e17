"""An outsider who opens idle connections: ``python -m tests.federation.flood PORT COUNT [hello]``, until it is killed.

Each connection that is closed is opened again, so that COUNT are open or about to be, whatever the listener does.
With `hello` each says a whole TLS hello and then nothing more.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import ssl
import sys


def client_hello() -> bytes:
    """Return the first bytes of a TLS client."""
    sent = ssl.MemoryBIO()
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname="server").do_handshake()
    return sent.read()


class Flood:
    """Idle connections to a port of this machine."""

    def __init__(self, port: int, number: int, hello: bytes) -> None:
        self._port, self._hello, self._selector = port, hello, selectors.DefaultSelector()
        for _ in range(number):
            self._open()

    def _open(self) -> None:
        one = socket.socket()
        one.setblocking(False)
        one.connect_ex(("127.0.0.1", self._port))
        self._selector.register(one, selectors.EVENT_READ | (selectors.EVENT_WRITE if self._hello else 0))

    def turn(self) -> int:
        """Open again what has been closed; returns how many."""
        closed = 0
        for key, events in self._selector.select(0.05):
            one = key.fileobj
            assert isinstance(one, socket.socket)
            try:
                if events & selectors.EVENT_WRITE:
                    one.send(self._hello)
                    self._selector.modify(one, selectors.EVENT_READ)
                elif one.recv(4096):
                    continue
                else:
                    raise OSError
            except OSError:
                self._selector.unregister(one)
                one.close()
                self._open()
                closed += 1
        return closed


if __name__ == "__main__":
    flood = Flood(int(sys.argv[1]), int(sys.argv[2]), client_hello() if sys.argv[3:] == ["hello"] else b"")
    print("open", flush=True)  # noqa: T201
    parent = os.getppid()
    while os.getppid() == parent:  # not longer than the test, however it ends
        flood.turn()
