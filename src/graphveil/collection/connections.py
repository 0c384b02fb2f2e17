"""How many connections may be open, and how long a client may keep one waiting.

A connection waits for its client until a request is whole, and while an answer is not taken. Who takes longer than
their patience is cut off; where there are too many connections, the one that has waited longest makes room. So
thousands of idle clients keep nobody out, and descriptors are left for the database.
"""

from __future__ import annotations

import asyncio
import resource
import socket
import time
from ssl import SSLContext

from uvicorn import Config, Server
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

#: Descriptors that are left to the database, to threads, and to connections that are about to be closed.
RESERVE = 96
#: Connections that the system holds until they are taken, and that are taken at once.
WAITING, AT_ONCE = 2048, 16
#: Bytes of a request before its body.
HEAD = 1 << 16
#: Seconds.
PATIENCE = 20.0


def most_connections() -> int:
    """Return how many connections this process may have open."""
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return min(max(allowed - RESERVE, 16), 4096)


class Connection(HttpToolsProtocol):
    """A client's connection."""

    _since = 0.0
    _head: int | None = None
    _alarm: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> float | None:
        """Since when it is the client's turn; None where it is ours."""
        asked = self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body
        return None if asked and not self.flow.write_paused else self._since

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a client in, and have another one leave where there are too many."""
        super().connection_made(transport)  # type: ignore[arg-type]
        self._since = time.monotonic()
        self._look()
        if len(self.connections) > most_connections():
            others = [one for one in self.connections if isinstance(one, Connection) and one.waiting is not None]
            # The one that has just come where all others are being answered.
            min(others, key=lambda one: one._since).leave()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the client."""
        super().connection_lost(exc)
        if self._alarm is not None:
            self._alarm.cancel()

    def leave(self) -> None:
        """Cut the client off."""
        self.connections.discard(self)
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Read on; a head without an end would fill the memory."""
        super().data_received(data)
        if self._head is not None:
            self._head += len(data)
            if self._head > HEAD:
                self.leave()

    def on_message_begin(self) -> None:
        """Begin to read a head."""
        super().on_message_begin()
        self._head = 0

    def on_headers_complete(self) -> None:
        """Be done with it."""
        super().on_headers_complete()
        self._head = None

    def on_response_complete(self) -> None:
        """Give the client their time anew."""
        self._since = time.monotonic()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Wait until the client has taken what was written."""
        self._since = time.monotonic()
        super().pause_writing()

    def _look(self) -> None:
        late = self.waiting is not None and time.monotonic() - self._since >= PATIENCE
        if late:
            self.leave()
        else:
            self._alarm = self.loop.call_later(PATIENCE / 4, self._look)


class PatientServer(Server):
    """A server that takes connections a few at a time: all at once, they could be more than it has descriptors.

    Args:
        config: of the server. handshake: seconds in which a client must have ended that of TLS.
    """

    def __init__(self, config: Config, handshake: float = PATIENCE) -> None:
        super().__init__(config)
        self._handshake = handshake

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen."""
        # Without sockets: it would listen to them with the event loop's own patience, which is a minute.
        await super().startup([])
        for one in sockets or ():
            self.servers.append(await self._listening(one))
            # The event loop makes the system's queue as short as what it takes at once.
            one.listen(WAITING)

    async def _listening(self, one: socket.socket) -> asyncio.base_events.Server:
        secured: SSLContext | None = self.config.ssl
        # Without TLS there is no handshake, and the event loop takes no limit of it.
        limit = None if secured is None else self._handshake
        loop, queue = asyncio.get_running_loop(), self.config.backlog
        return await loop.create_server(
            self._connection, sock=one, ssl=secured, backlog=queue, ssl_handshake_timeout=limit
        )

    def _connection(self) -> Connection:
        return Connection(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)
