"""The collector on a port: loopback by default, TLS by certificate files, no log of requests."""

from __future__ import annotations

import gc
import logging
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphveil.collection.desk import ADMIN, Desk
from graphveil.collection.service.addresses import names_in
from graphveil.collection.service.door import Receive, Scope, Send
from graphveil.collection.service.limits import Rate
from graphveil.collection.service.troubles import LINE_LIMIT
from graphveil.errors import InputError

if TYPE_CHECKING:
    import uvicorn

#: An ASGI application.
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
#: Connections that the system queues.
_QUEUE = 2048


@dataclass(frozen=True)
class Place:
    """Where a collector listens.

    Args:
        host: name or address.
        port: 0 for any free one.
        certificate, key: of TLS, PEM files, both or neither.
        names: further host names, beside `host` and those of the certificate.
    """

    host: str = "127.0.0.1"
    port: int = 8700
    certificate: Path | None = None
    key: Path | None = None
    names: tuple[str, ...] = ()

    @property
    def hosts(self) -> frozenset[str]:
        """The host names under which it answers; InputError where the certificate cannot be read."""
        try:
            certified = frozenset() if self.certificate is None else names_in(self.certificate)
        except ValueError as error:
            raise InputError(f"{self.certificate} is no certificate", where="TLS", allowed="a PEM file") from error
        return certified | {self.host, *self.names}

    @property
    def is_local(self) -> bool:
        """Whether no other machine can reach it."""
        return self.host in ("localhost", "127.0.0.1", "::1")

    def require_files(self) -> None:
        """Refuse TLS without one of its files: InputError."""
        # With one file alone the server would listen without TLS, though its organiser meant to have it.
        if (self.certificate is None) != (self.key is None):
            raise InputError("TLS needs both files", allowed="--certificate and --certificate-key together, or neither")
        for path in (self.certificate, self.key):
            if path is not None and not path.is_file():
                raise InputError(f"{path} is no file", where="TLS", allowed="a PEM file")


def serve(desk: Desk, place: Place, enrolments: Rate, started: Callable[[dict[str, object]], None]) -> None:
    """Serve a collection until told to end; InputError where the address or a file of TLS cannot be used.

    Args:
        desk: with a signed task.
        enrolments: how often one address may enrol.
        started: called with the address, the administration's token the first time, and the file that keeps it.
    """
    from graphveil.collection.service.service import Collector, room_at

    place.require_files()
    with desk.store() as store, listening(place) as listener:
        task = store.task()
        # Ready before the address is printed: whoever reads it may send a request at once.
        collector = Collector(store, has_room=room_at(desk.folder), enrolments=enrolments, desk=desk, hosts=place.hosts)
        server = server_of(collector, place)
        facts: dict[str, object] = {
            "url": address(listener, place),
            "task": task.hash.hex(),
            "admin": desk.admin_token(store),
            "admin_file": str(desk.folder / ADMIN) if (desk.folder / ADMIN).is_file() else None,
        }
        with ended_by_signals(server):
            started(facts)
            run(server, listener)


def run(server: uvicorn.Server, listener: socket.socket) -> None:
    """Serve in a process that does nothing else, until it is told to end.

    Args:
        server: see `server_of`.
        listener: the listening socket.
    """
    # All that exists now stays until the end. Python's garbage collector would search it now and then, for a tenth of a
    # second in which nobody is answered.
    gc.collect()
    gc.freeze()
    server.run(sockets=[listener])


@contextmanager
def ended_by_signals(server: uvicorn.Server) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end a server cleanly at any time, also before it has begun."""

    def end(*_: object) -> None:
        server.should_exit = True

    handlers = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def server_of(application: Application, place: Place, handshake: float | None = None) -> uvicorn.Server:
    """Return a server of an application; it logs neither requests nor addresses.

    Args:
        place: where, and with which certificate.
        handshake: seconds for a client's TLS handshake; None: as long as for the head of a request.
    """
    import uvicorn

    from graphveil.collection.service.connections import AT_ONCE, PATIENCE, Connection, PatientServer

    files: dict[str, Any] = {}
    if place.certificate is not None and place.key is not None:
        files = {"ssl_certfile": str(place.certificate), "ssl_keyfile": str(place.key)}
    # An access log would keep addresses and their times. No logging settings either: they close the handlers of other
    # libraries, and some of these close the streams that they write to.
    quiet: dict[str, Any] = {"log_level": "warning", "log_config": None, "access_log": False}
    # Few lines: strangers can cause them as fast as they can send.
    for name in ("uvicorn.error", "asyncio"):
        logging.getLogger(name).addFilter(LINE_LIMIT)
    protocol: dict[str, Any] = {"http": Connection, "ws": "none", "backlog": AT_ONCE}
    config = uvicorn.Config(application, **quiet, **protocol, **files)
    return PatientServer(config, PATIENCE if handshake is None else handshake)


@contextmanager
def listening(place: Place) -> Iterator[socket.socket]:
    # Bound here and not by the server: a port in use is one line of error, and a free port is known before serving.
    family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
    with socket.socket(family) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((place.host, place.port))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"cannot listen at {place.host} port {place.port} ({reason})") from error
        listener.listen(_QUEUE)
        yield listener


def address(listener: socket.socket, place: Place) -> str:
    host = f"[{place.host}]" if ":" in place.host else place.host
    return f"{'https' if place.certificate else 'http'}://{host}:{listener.getsockname()[1]}"
