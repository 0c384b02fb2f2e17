"""How many connections may be open, how many bytes they may make the server hold, and how long a client may wait.

A connection waits for its client until a request is whole, and while an answer is not taken. A client that takes too
long is cut off; where there are too many connections, the one that has waited longest is closed, those with an overlong
TLS handshake first. So thousands of idle clients keep nobody out, and descriptors are left for the database.

The bytes of requests and untaken answers are counted over all connections. Where they are too many, the largest
connection is closed: of strangers if these occupy more than half, else of clients that have shown a report with a valid
tag. A device's few hundred bytes are never the largest.
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
import time
from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass
from ssl import SSLContext
from typing import Any, Protocol, cast

from uvicorn import Config, Server
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

#: Descriptors that are left to the database, to threads, and to connections that are about to be closed.
RESERVED_DESCRIPTORS = 96
#: Connections that the system queues, and that are accepted at once.
WAITING, AT_ONCE = 2048, 16
#: Limits of a request's head in bytes and in fields, and of requests that one connection sends ahead of their answers:
#: each becomes objects of many times its size.
HEAD, FIELDS, AHEAD = 1 << 14, 100, 16
#: Bytes of a request that are read after its answer.
IGNORED = 1 << 20
#: The ASGI extension by which an application says that a request has shown a report with a valid tag.
PROVEN = "graphveil.proven"
#: Buffers of the TLS layer of one connection.
BUFFERS = 3
#: Bytes that all connections together may occupy.
MOST_BYTES = 32 << 20
#: Seconds to wait for a client, and seconds that a TLS handshake takes on the slowest usual network.
PATIENCE, HANDSHAKE = 20.0, 2.0


class Client(Protocol):
    """A connected client."""

    @property
    def waiting(self) -> float | None:
        """Since when the server waits for the client; None while it does not."""

    @property
    def overdue(self) -> bool:
        """Whether it is closed before all others."""

    @property
    def proven(self) -> bool:
        """Whether its present request has shown a report with a valid tag."""

    @property
    def occupied(self) -> int:
        """Bytes that its requests and untaken answers occupy."""

    def leave(self) -> None:
        """Cut the client off."""


def _make_room(clients: Collection[Client], newest: Client) -> None:
    """Cut a client off where there are too many: the newest, where all others are being answered."""
    if len(clients) > most_connections():
        waiting = [client for client in clients if client.waiting is not None and client is not newest]
        min(waiting, key=lambda client: (not client.overdue, client.waiting), default=newest).leave()


@dataclass
class Memory:
    """Bytes that connections occupy, at most so many together."""

    most: int = MOST_BYTES
    used: int = 0

    def change(self, by: int, clients: Collection[Client]) -> None:
        """Count bytes in or out, and cut clients off until the others fit.

        Args:
            by: bytes, negative where they are freed.
            clients: all of the server.
        """
        self.used += by
        while by > 0 and self.used > self.most and clients:
            strangers = [client for client in clients if not client.proven]
            # Either group has half: neither a crowd of strangers nor one large relay keeps the other out.
            crowded = 2 * sum(client.occupied for client in strangers) > self.most
            # A client that leaves subtracts its own bytes.
            max(clients, key=lambda client: (client.proven != crowded, client.occupied)).leave()


def most_connections() -> int:
    """Return how many connections this process may have open."""
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return min(max(allowed - RESERVED_DESCRIPTORS, 16), 4096)


class Connection(HttpToolsProtocol):
    """A client's connection; `memory` counts the bytes that all connections occupy."""

    _since = 0.0
    _head: int | None = None
    _alarm: asyncio.TimerHandle | None = None

    overdue = proven = False
    _received = _unsent = _ignored = _tls = 0

    def __init__(self, *, memory: Memory, **settings: Any) -> None:
        super().__init__(**settings)
        self._memory = memory

    @property
    def occupied(self) -> int:
        """Bytes of requests that are not answered, of answers that are not taken, and of the layer of TLS."""
        return self._received + self._unsent + self._tls

    @property
    def waiting(self) -> float | None:
        is_answering = self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body
        return None if is_answering and not self.flow.write_paused else self._since

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept a client, and cut another off where there are too many."""
        super().connection_made(transport)  # type: ignore[arg-type]
        self._since = time.monotonic()
        self._check_patience()
        _make_room(cast("set[Client]", self.connections), self)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._occupy(0, 0, 0)
        if self._alarm is not None:
            self._alarm.cancel()

    def leave(self) -> None:
        self.connections.discard(self)
        self._occupy(0, 0, 0)
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Read on; a head without an end would fill the memory."""
        super().data_received(data)
        if self.scheme == "https" and not self.transport.is_closing():
            # Each buffer of the TLS layer has grown to the largest piece, and keeps its size until the connection ends.
            self._occupy(self._received, self._unsent, max(self._tls, BUFFERS * len(data)))
        if self._head is not None:
            self._head += len(data)
            if self._head > HEAD:
                self.leave()
        if self._head is not None or (self.cycle is not None and not self.cycle.response_complete):
            if not self.transport.is_closing():
                self._occupy(self._received + len(data), self._unsent)
            return
        # What follows an early answer is discarded, up to a limit that lets the client still read the answer.
        self._ignored += len(data)
        if self._ignored > IGNORED:
            self.leave()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head, self._ignored = 0, 0
        self.scope["extensions"] = {PROVEN: {"call": self._prove}}

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header or trailer field; the parser stops where this raises."""
        super().on_header(name, value)
        if len(self.headers) > FIELDS:
            raise ValueError("too many fields")

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._head = None
        if len(self.pipeline) > AHEAD:
            raise ValueError("too many requests ahead of their answers")

    def on_response_complete(self) -> None:
        self._since, self.proven = time.monotonic(), False
        self._occupy(sum(len(cycle.body) for cycle, _ in self.pipeline), self._unsent)
        super().on_response_complete()

    def pause_writing(self) -> None:
        self._since = time.monotonic()
        super().pause_writing()
        self._occupy(self._received, self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        super().resume_writing()
        self._occupy(self._received, 0)

    def _prove(self) -> None:
        self.proven = True

    def _occupy(self, received: int, unsent: int, tls: int | None = None) -> None:
        before = self.occupied
        self._received, self._unsent, self._tls = received, unsent, self._tls if tls is None else tls
        self._memory.change(self.occupied - before, cast("set[Client]", self.connections))

    def _check_patience(self) -> None:
        is_late = self.waiting is not None and time.monotonic() - self._since >= PATIENCE
        if is_late:
            self.leave()
        else:
            self._alarm = self.loop.call_later(PATIENCE / 4, self._check_patience)


class Handshake:
    """A client in its TLS handshake, among all of the server."""

    proven, occupied = False, 0

    def __init__(self, client: socket.socket, clients: set[Client]) -> None:
        self._socket, self._clients = client, clients
        self.waiting = time.monotonic()
        clients.add(self)
        _make_room(clients, self)

    @property
    def overdue(self) -> bool:
        """Whether it has had the time that a handshake takes."""
        return time.monotonic() - self.waiting > HANDSHAKE

    def leave(self) -> None:
        """Cut the client off: the handshake fails, and closes the socket."""
        self._clients.discard(self)
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    #: The server calls it on all connections when it ends.
    shutdown = leave

    async def finish(self, connect: Callable[[], Connection], context: SSLContext, patience: float) -> None:
        """Wait for the end of the handshake, and hand the client to a connection.

        Args:
            connect: makes the connection.
            context: certificate and key.
            patience: seconds.
        """
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(connect, self._socket, ssl=context, ssl_handshake_timeout=patience)
        # The client speaks no TLS or another version, was too slow, or is gone: there is nobody to answer.
        except OSError:
            self._socket.close()
        finally:
            self._clients.discard(self)


class TlsAcceptor:
    """Accepts TLS clients: unlike the event loop's own server, it counts them before their handshake."""

    def __init__(self, listening: socket.socket, serve: Callable[[socket.socket], Coroutine[None, None, None]]) -> None:
        self._listening, self._serve = listening, serve
        self._tasks: set[asyncio.Task[None]] = set()
        self._task = asyncio.get_running_loop().create_task(self._run())

    def close(self) -> None:
        self._task.cancel()

    async def wait_closed(self) -> None:
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        self._listening.setblocking(False)
        while True:
            try:
                client, _ = await loop.sock_accept(self._listening)
            except OSError:
                # The client is gone, or no descriptor is left: closing others takes a moment.
                await asyncio.sleep(0.05)
                continue
            task = loop.create_task(self._serve(client))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)


class PatientServer(Server):
    """A server that accepts connections a few at a time: all at once, they could exceed its descriptors.

    Args:
        handshake: seconds in which a client must have ended that of TLS.
    """

    def __init__(self, config: Config, handshake: float = PATIENCE) -> None:
        super().__init__(config)
        self._handshake, self._memory = handshake, Memory()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        # Without sockets: uvicorn would serve them with the event loop's own handshake timeout, a minute.
        await super().startup([])
        for listener in sockets or ():
            self.servers.append(await self._listening(listener))
            # The event loop shortens the system's queue to what it accepts at once.
            listener.listen(WAITING)

    async def _listening(self, listener: socket.socket) -> Any:
        if self.config.ssl is not None:
            return TlsAcceptor(listener, self._shake_hands)
        return await asyncio.get_running_loop().create_server(
            self._connection, sock=listener, backlog=self.config.backlog
        )

    async def _shake_hands(self, client: socket.socket) -> None:
        clients = cast("set[Client]", self.server_state.connections)
        await Handshake(client, clients).finish(self._connection, cast(SSLContext, self.config.ssl), self._handshake)

    def _connection(self) -> Connection:
        return Connection(
            memory=self._memory, config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
