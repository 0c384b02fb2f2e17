"""How many connections may be open, how many bytes they may make the server hold, and how long a client may wait.

A connection waits for its client until a request is whole, and while an answer is not taken. Who takes longer than
their patience is cut off; where there are too many connections, the one that has waited longest makes room, first of
all those whose handshake of TLS takes longer than anybody's needs to. So thousands of idle clients keep nobody out, and
descriptors are left for the database.

What requests and untaken answers occupy is counted over all connections. Where it is too much, the largest makes room:
of strangers where they occupy more than half, else of those who have shown a report with a right tag. A device's few
hundred bytes are never the largest.
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
RESERVE = 96
#: Connections that the system holds until they are taken, and that are taken at once.
WAITING, AT_ONCE = 2048, 16
#: Bytes of a request before its body, its fields, and requests that one connection sends ahead of their answers: each
#: becomes objects of many times its size.
HEAD, FIELDS, AHEAD = 1 << 14, 100, 16
#: Bytes of a request that are read after its answer.
IGNORED = 1 << 20
#: The extension of ASGI by which an application says that a request has shown a report with a right tag.
PROVEN = "graphveil.proven"
#: Buffers between a socket and what it said before TLS.
BUFFERS = 3
#: Bytes that all connections together may occupy.
MOST_BYTES = 32 << 20
#: Seconds, and those in which a handshake of TLS ends over the slowest network that people use.
PATIENCE, HANDSHAKE = 20.0, 2.0


class Client(Protocol):
    """Somebody who is connected."""

    @property
    def waiting(self) -> float | None:
        """Since when it is the client's turn; None where it is ours."""

    @property
    def overdue(self) -> bool:
        """Whether they are the first to make room."""

    @property
    def proven(self) -> bool:
        """Whether their present request has shown a report with a right tag."""

    @property
    def occupied(self) -> int:
        """Bytes that their requests and untaken answers occupy."""

    def leave(self) -> None:
        """Cut the client off."""


def make_room(clients: Collection[Client], newest: Client) -> None:
    """Have a client leave where there are too many.

    Args:
        clients: all of them. newest: who has just come, and leaves where all others are being answered.
    """
    if len(clients) > most_connections():
        waiting = [client for client in clients if client.waiting is not None and client is not newest]
        min(waiting, key=lambda client: (not client.overdue, client.waiting), default=newest).leave()


@dataclass
class Memory:
    """Bytes that connections occupy.

    Args:
        most: of all connections together.
    """

    most: int = MOST_BYTES
    used: int = 0

    def change(self, by: int, clients: Collection[Client]) -> None:
        """Count bytes in or out, and have clients leave until the others fit.

        Args:
            by: bytes, negative where they are let go. clients: all of the server.
        """
        self.used += by
        while by > 0 and self.used > self.most and clients:
            strangers = [client for client in clients if not client.proven]
            # Half is left to either: neither a crowd of strangers nor one large relay keeps the other out.
            crowded = 2 * sum(client.occupied for client in strangers) > self.most
            # Who leaves counts itself out.
            max(clients, key=lambda client: (client.proven != crowded, client.occupied)).leave()


def most_connections() -> int:
    """Return how many connections this process may have open."""
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return min(max(allowed - RESERVE, 16), 4096)


class Connection(HttpToolsProtocol):
    """A client's connection.

    Args:
        memory: counts what all of them occupy. settings: of uvicorn.
    """

    _since = 0.0
    _head: int | None = None
    _alarm: asyncio.TimerHandle | None = None

    overdue = proven = False
    _received = _unsent = _ignored = _layer = 0

    def __init__(self, *, memory: Memory, **settings: Any) -> None:
        super().__init__(**settings)
        self._memory = memory

    @property
    def occupied(self) -> int:
        """Bytes of requests that are not answered, of answers that are not taken, and of the layer of TLS."""
        return self._received + self._unsent + self._layer

    @property
    def waiting(self) -> float | None:
        """Since when it is the client's turn; None where it is ours."""
        is_answering = self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body
        return None if is_answering and not self.flow.write_paused else self._since

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a client in, and have another one leave where there are too many."""
        super().connection_made(transport)  # type: ignore[arg-type]
        self._since = time.monotonic()
        self._look()
        make_room(cast("set[Client]", self.connections), self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the client."""
        super().connection_lost(exc)
        self._occupy(0, 0, 0)
        if self._alarm is not None:
            self._alarm.cancel()

    def leave(self) -> None:
        """Cut the client off."""
        self.connections.discard(self)
        self._occupy(0, 0, 0)
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Read on; a head without an end would fill the memory."""
        super().data_received(data)
        if self.scheme == "https" and not self.transport.is_closing():
            # Its buffers have grown to what came at once, each of them, and stay so until the connection ends.
            self._occupy(self._received, self._unsent, max(self._layer, BUFFERS * len(data)))
        if self._head is not None:
            self._head += len(data)
            if self._head > HEAD:
                self.leave()
        if self._head is not None or (self.cycle is not None and not self.cycle.response_complete):
            if not self.transport.is_closing():
                self._occupy(self._received + len(data), self._unsent)
            return
        # What follows an answer that was given early is thrown away: so much that a client hears the answer.
        self._ignored += len(data)
        if self._ignored > IGNORED:
            self.leave()

    def on_message_begin(self) -> None:
        """Begin to read a head."""
        super().on_message_begin()
        self._head, self._ignored = 0, 0
        self.scope["extensions"] = {PROVEN: {"call": self._prove}}

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a field of the head, or of what follows the last chunk; the parser ends where this fails."""
        super().on_header(name, value)
        if len(self.headers) > FIELDS:
            raise ValueError("too many fields")

    def on_headers_complete(self) -> None:
        """Be done with it."""
        super().on_headers_complete()
        self._head = None
        if len(self.pipeline) > AHEAD:
            raise ValueError("too many requests ahead of their answers")

    def on_response_complete(self) -> None:
        """Give the client their time anew."""
        self._since, self.proven = time.monotonic(), False
        self._occupy(sum(len(cycle.body) for cycle, _ in self.pipeline), self._unsent)
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Wait until the client has taken what was written."""
        self._since = time.monotonic()
        super().pause_writing()
        self._occupy(self._received, self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Go on writing."""
        super().resume_writing()
        self._occupy(self._received, 0)

    def _prove(self) -> None:
        self.proven = True

    def _occupy(self, received: int, unsent: int, layer: int | None = None) -> None:
        before = self.occupied
        self._received, self._unsent, self._layer = received, unsent, self._layer if layer is None else layer
        self._memory.change(self.occupied - before, cast("set[Client]", self.connections))

    def _look(self) -> None:
        late = self.waiting is not None and time.monotonic() - self._since >= PATIENCE
        if late:
            self.leave()
        else:
            self._alarm = self.loop.call_later(PATIENCE / 4, self._look)


class Handshake:
    """A client that has not ended the handshake of TLS.

    Args:
        client: their socket. clients: all of the server.
    """

    proven, occupied = False, 0

    def __init__(self, client: socket.socket, clients: set[Client]) -> None:
        self._socket, self._clients = client, clients
        self.waiting = time.monotonic()
        clients.add(self)
        make_room(clients, self)

    @property
    def overdue(self) -> bool:
        """Whether they have had the time that a handshake takes."""
        return time.monotonic() - self.waiting > HANDSHAKE

    def leave(self) -> None:
        """Cut the client off: the handshake hears of its end, and lets go of the socket."""
        self._clients.discard(self)
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    #: What a server that ends asks of all its connections.
    shutdown = leave

    async def end(self, connect: Callable[[], Connection], secured: SSLContext, patience: float) -> None:
        """Let the client end it; the connection that is made then hears of them.

        Args:
            connect: gives the connection. secured: certificate and key. patience: seconds.
        """
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(connect, self._socket, ssl=secured, ssl_handshake_timeout=patience)
        # No TLS, another version of it, too late, or gone: nothing to tell anybody.
        except OSError:
            self._socket.close()
        finally:
            self._clients.discard(self)


class Accepting:
    """Takes clients that speak TLS: unlike the event loop's own server, it counts them before they have.

    Args:
        listening: bound. taken: what is made of each.
    """

    def __init__(self, listening: socket.socket, serve: Callable[[socket.socket], Coroutine[None, None, None]]) -> None:
        self._listening, self._serve = listening, serve
        self._tasks: set[asyncio.Task[None]] = set()
        self._task = asyncio.get_running_loop().create_task(self._run())

    def close(self) -> None:
        """Take no more of them."""
        self._task.cancel()

    async def wait_closed(self) -> None:
        """Wait until none is taken."""
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        self._listening.setblocking(False)
        while True:
            try:
                client, _ = await loop.sock_accept(self._listening)
            except OSError:
                # They are gone, or no descriptor is left: those that make room need a moment.
                await asyncio.sleep(0.05)
                continue
            task = loop.create_task(self._serve(client))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)


class PatientServer(Server):
    """A server that takes connections a few at a time: all at once, they could be more than it has descriptors.

    Args:
        config: of the server. handshake: seconds in which a client must have ended that of TLS.
    """

    def __init__(self, config: Config, handshake: float = PATIENCE) -> None:
        super().__init__(config)
        self._handshake, self._memory = handshake, Memory()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen."""
        # Without sockets: it would listen to them with the event loop's own patience, which is a minute.
        await super().startup([])
        for listener in sockets or ():
            self.servers.append(await self._listening(listener))
            # The event loop makes the system's queue as short as what it takes at once.
            listener.listen(WAITING)

    async def _listening(self, listener: socket.socket) -> Any:
        if self.config.ssl is not None:
            return Accepting(listener, self._secured)
        return await asyncio.get_running_loop().create_server(
            self._connection, sock=listener, backlog=self.config.backlog
        )

    async def _secured(self, client: socket.socket) -> None:
        clients = cast("set[Client]", self.server_state.connections)
        await Handshake(client, clients).end(self._connection, cast(SSLContext, self.config.ssl), self._handshake)

    def _connection(self) -> Connection:
        return Connection(
            memory=self._memory,
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )
