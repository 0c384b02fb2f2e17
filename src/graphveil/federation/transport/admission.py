"""The door of a listening party: few strangers at a time, none for long, and no number of them ends a run.

    waiting    accepted at the agreed address; must send a whole TLS hello within 5 s
    entering   has sent it, and is relayed, byte for byte, to the gRPC server on a socket of its own; must answer the
               server within 15 s, and then greet within 15 s
    party      the server has accepted its greeting; a party has one connection, its newest

Where there is no room for another connection, the oldest is dropped: among the waiting only a silent one, among the
entering one that has not answered before one that has.  No connection is dropped in its first moments; until one may
be dropped, new ones are not accepted.  A true party says hello as it connects, so it passes any number of silent
connections, even of its own address.  More than 80 strangers of one address that say hello and stall can delay parties
of that address, and no others.  Where files or memory run out, one connection is dropped and accepting pauses briefly.

The gRPC server listens on a Unix socket in a folder that only its owner can enter, or on the loopback interface where
there are no such sockets, and accepts there only connections that this door let in.  TLS ends at the server.  A
connection that is dropped here is reset; one that the server refuses is closed properly: strangers can tell the two.
"""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import os
import selectors
import socket
import struct
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Final

#: Strangers in total and of one address: waiting (one file each), and entering (three files each).
WAITING, WAITING_OF_ONE = 96, 64
ENTERING, ENTERING_OF_ONE = 24, 16
_HELLO_SECONDS, _GREETING_SECONDS, _LINGER_SECONDS = 5.0, 15.0, 5.0
#: Seconds in which a stranger is not dropped: without a hello, with one, with an answer to the server's.
_SAFE_SECONDS: Final = (0.02, 2.0, 5.0)
#: How long accepting pauses, and how often connections are checked.
_PAUSE_SECONDS, _TIDY_SECONDS = 0.1, 0.02
_BACKLOG, _ACCEPTED_AT_ONCE = 4096, 32
_BLOCK: Final = 1 << 18
_HANDSHAKE_RECORD, _LONGEST_RECORD = b"\x16\x03", 1 << 14
#: Errors of this machine and not of a peer: a connection must be dropped before another can come.
_SHORTAGES: Final = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_UNIX, _LONGEST_PATH = hasattr(socket, "AF_UNIX"), 100
_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


@dataclass(eq=False)
class _End:
    """One socket of a pair, and what waits to be sent on it."""

    socket: socket.socket
    pair: _Pair
    pending: bytes = b""
    ended: bool = False
    events: int = 0


@dataclass(eq=False)
class _Pair:
    """A connection from outside, and the one inside that it is relayed to.

    Attributes:
        since: when it reached its present stage.
        hello: its first bytes, until there is an inside.
        has_hello: whether they are a whole TLS hello.
        name: of the inside connection, as gRPC knows it.
        party: the party's name, once greeted.
        server_spoke: whether the server has sent anything.
        answered: whether the stranger has answered the server, whatever its certificate.
        drop_at: when it is dropped, once an end has closed.
    """

    host: str
    since: float
    outside: _End = field(init=False)
    inside: _End | None = None
    hello: bytes = b""
    has_hello: bool = False
    name: str = ""
    party: str | None = None
    server_spoke: bool = False
    answered: bool = False
    drop_at: float | None = None

    @property
    def stage(self) -> int:
        """0 silent, 1 with a hello, 2 with an answer to the server's."""
        return self.has_hello + self.answered

    def other(self, end: _End) -> _End | None:
        return self.inside if end is self.outside else self.outside


class AdmissionProxy:
    """The door at an address.

    Args:
        address: "host:port" to listen on.
        refused: called with the host of a stranger whose TLS the server refused.
        note: called with a line about a shortage of files or memory.

    Raises:
        OSError: where it cannot be listened on.
    """

    def __init__(self, address: str, *, refused: Callable[[str], None], note: Callable[[str], None]) -> None:
        self._refused, self._note = refused, note
        self._listeners = listeners(address)
        self._selector = selectors.DefaultSelector()
        self._wake, self._woken = socket.socketpair()
        self._folder = tempfile.TemporaryDirectory(prefix="gv-")
        self._port = 0
        self._pairs: dict[_Pair, None] = {}
        self._inside: dict[str, _Pair] = {}
        self._replaced: deque[_Pair] = deque()
        self._names, self._buffer = count(), memoryview(bytearray(_BLOCK))
        self._lock, self._closing = threading.Lock(), False
        self._resumes = self._tidied = 0.0
        self._accepting = self._noted_shortage = False
        self._thread = threading.Thread(target=self._run, daemon=True)

    def behind(self, listen: Callable[[str], int]) -> None:
        """Have the server listen behind this door; `listen` takes gRPC's address and returns its port."""
        if _UNIX and len(os.fsencode(self._socket_path("server"))) <= _LONGEST_PATH:
            listen(f"unix:{self._socket_path('server')}")
        else:
            self._port = listen("127.0.0.1:0")

    def start(self) -> None:
        """Let strangers in."""
        self._thread.start()

    def knows(self, peer: str) -> bool:
        """Return whether a connection inside was let in by this door.

        Args:
            peer: gRPC's name of the connection.
        """
        return _inside_name(peer) in self._inside

    def greeted(self, peer: str, party: str) -> None:
        """Note the party of a connection; drop an older connection of the same party.

        Args:
            peer: gRPC's name of the connection.
            party: the name in its greeting.
        """
        with self._lock:
            pair = self._inside.get(_inside_name(peer))
            if pair is not None:
                self._replaced.extend(old for old in self._inside.values() if old.party == party and old is not pair)
                pair.party = party
        self._wake_up()

    def close(self) -> None:
        """Accept nobody any more, relay what is under way, and free the address."""
        self._closing = True
        self._wake_up()
        if self._thread.is_alive():
            self._thread.join(timeout=2 * _LINGER_SECONDS)
        for listener in self._listeners:
            listener.close()
        self._folder.cleanup()

    def _run(self) -> None:
        self._selector.register(self._woken, _READ)
        self._woken.setblocking(False)
        # While closing, bytes under way for parties are still relayed, for some seconds at most.
        stop_at = 0.0
        while not (self._closing and (not self._pairs or time.monotonic() > stop_at)):
            self._listen(not self._closing and time.monotonic() >= self._resumes)
            calm = self._accepting and all(pair.party is not None and pair.drop_at is None for pair in self._pairs)
            # No timer while nothing happens: a run can last for days, and an idle door should cost nothing.
            for key, events in self._selector.select(None if calm and not self._replaced else _TIDY_SECONDS):
                if isinstance(key.data, _End):
                    self._serve(key.data, events)
                elif key.fileobj is self._woken:
                    self._woken.recv(_BLOCK)
                else:
                    self._accept(key.data)
            self._tidy()
            if not self._closing:
                self._admit()
            if self._closing and not stop_at:
                stop_at = time.monotonic() + _LINGER_SECONDS
                self._drop_all(pair for pair in self._pairs if pair.party is None)
        self._drop_all(self._pairs)
        self._selector.close()
        for end in (self._wake, self._woken):
            end.close()

    def _wake_up(self) -> None:
        with contextlib.suppress(OSError):  # it is closed
            self._wake.send(b"x")

    def _listen(self, accepting: bool) -> None:
        if accepting != self._accepting:
            self._accepting = accepting
            for listener in self._listeners:
                if accepting:
                    self._selector.register(listener, _READ, listener)
                else:
                    self._selector.unregister(listener)

    def _tidy(self) -> None:
        # Passed in a queue: gRPC's threads must not touch this thread's selector.
        while self._replaced:
            self._drop(self._replaced.popleft())
        now = time.monotonic()
        if now >= self._tidied + _TIDY_SECONDS:
            self._tidied = now
            self._drop_all(pair for pair in self._pairs if _is_overdue(pair, now))

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            if not self._room():
                return
            try:
                connection, address = listener.accept()
            except OSError as error:
                if error.errno in _SHORTAGES:
                    self._relieve_shortage(error)
                return
            connection.setblocking(False)
            pair = _Pair(network_of(address[0]), time.monotonic())
            pair.outside = _End(connection, pair)
            self._pairs[pair] = None
            # Counted after accepting: only then is its address known.
            if sum(waiting.host == pair.host and waiting.inside is None for waiting in self._pairs) > WAITING_OF_ONE:
                self._drop(pair)  # all other connections of its address have said hello
                continue
            with contextlib.suppress(OSError):
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._watch(pair.outside)
            self._serve(pair.outside, _READ)  # a party's hello is often there already

    def _room(self) -> bool:
        """Return whether another stranger may wait, whatever its address; make room if a connection may be dropped."""
        waiting = [pair for pair in self._pairs if pair.inside is None]
        for host in _full(waiting, WAITING, WAITING_OF_ONE):
            crowd = [pair for pair in waiting if pair.host == host]
            silent = [pair for pair in crowd if not pair.has_hello]
            wait = self._make_room(silent) if silent else 0.0
            if wait > 0:
                self._resumes = time.monotonic() + wait
                return False
            if not silent and len(waiting) >= WAITING:
                # All have said hello, so the newest is dropped: the older ones are nearer to their turn.
                self._drop(crowd[-1])
        return True

    def _admit(self) -> None:
        """Let connections that have said hello enter, in their order, as far as there is room."""
        entering = [pair for pair in self._pairs if pair.party is None and pair.inside is not None]
        shut: set[str] = set()
        for pair in [pair for pair in self._pairs if pair.has_hello and pair.inside is None]:
            for host in _full(entering, ENTERING, ENTERING_OF_ONE, pair.host):
                if host not in shut and self._make_room([other for other in entering if other.host == host]) > 0:
                    shut.add(host)
            entering = [other for other in entering if other in self._pairs]
            if _full(entering, ENTERING, ENTERING_OF_ONE, pair.host):
                continue
            try:
                self._enter(pair)
                entering.append(pair)
            except OSError as error:
                if error.errno in _SHORTAGES:
                    self._relieve_shortage(error)
                self._drop(pair)

    def _make_room(self, among: list[_Pair]) -> float:
        """Drop one of these if it may be dropped now; else return after how many seconds one may."""
        if not among:
            return _PAUSE_SECONDS
        first = min(among, key=_drop_order)
        wait = first.since + _SAFE_SECONDS[first.stage] - time.monotonic()
        if wait <= 0:
            self._drop(first)
        return wait

    def _relieve_shortage(self, error: OSError) -> None:
        if not self._noted_shortage:
            self._noted_shortage = True
            self._note(f"{error.strerror}: connections wait; is the limit of open files low, or is this an attack?")
        strangers = [pair for pair in self._pairs if pair.party is None]
        if strangers:
            self._drop(min(strangers, key=_drop_order))
        self._resumes = time.monotonic() + _PAUSE_SECONDS

    def _enter(self, pair: _Pair) -> None:
        """Connect a stranger that has said hello to the server inside."""
        inside = socket.socket(socket.AF_INET if self._port else socket.AF_UNIX)
        try:
            if self._port:
                inside.connect(("127.0.0.1", self._port))
                inside.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                name = str(inside.getsockname()[1])
            else:
                name = f"c{next(self._names)}"
                inside.bind(self._socket_path(name))
                inside.setblocking(False)  # if the server does not accept, this stranger is not let in
                inside.connect(self._socket_path("server"))
                Path(self._socket_path(name)).unlink()
            inside.setblocking(False)
        except OSError:
            inside.close()
            raise
        pair.name, pair.inside, pair.since = name, _End(inside, pair), time.monotonic()
        with self._lock:
            # Noted before the first byte is relayed: the server asks `knows` as soon as it has a greeting.
            self._inside[name] = pair
        self._watch(pair.inside)
        self._send(pair.inside, pair.hello)
        pair.hello = b""

    def _socket_path(self, name: str) -> str:
        return str(Path(self._folder.name) / name)

    def _serve(self, end: _End, events: int) -> None:
        pair = end.pair
        if pair not in self._pairs:  # dropped in this turn
            return
        try:
            if events & _WRITE:
                self._send(end, b"")
            if events & _READ:
                self._read(end)
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno in _SHORTAGES:
                self._relieve_shortage(error)
            self._drop(pair)

    def _read(self, end: _End) -> None:
        pair, other = end.pair, end.pair.other(end)
        size = end.socket.recv_into(self._buffer)
        if size == 0:
            end.ended, pair.drop_at = True, time.monotonic() + _LINGER_SECONDS
            # The server closes after an unknown certificate; where the stranger has shown none, it failed by itself.
            is_refusal = end is pair.inside and pair.party is None and pair.answered
            if is_refusal and not pair.outside.ended and not self._closing:
                self._refused(pair.host)
            if other is None or other.ended:
                self._drop(pair, properly=True)
            else:
                self._send(other, b"")  # the end of a stream, after the bytes before it
        elif other is None:
            pair.hello += bytes(self._buffer[:size])
            length = int.from_bytes(pair.hello[3:5], "big")
            if not pair.hello.startswith(_HANDSHAKE_RECORD[: len(pair.hello)]) or length > _LONGEST_RECORD:
                self._drop(pair)
            else:
                pair.has_hello = len(pair.hello) >= 5 + max(length, 1)
                self._watch(pair.outside)
        else:
            if pair.party is None:
                if end is pair.outside and pair.server_spoke and not pair.answered:
                    pair.answered, pair.since = True, time.monotonic()
                pair.server_spoke |= end is pair.inside
            if not other.ended:
                self._send(other, self._buffer[:size])

    def _send(self, end: _End, data: bytes | memoryview) -> None:
        """Send pending bytes, then `data`; while bytes are pending, the other end is not read."""
        pending = end.pending + bytes(data) if end.pending else data
        if len(pending):
            try:
                size = end.socket.send(pending)
            except BlockingIOError:
                size = 0
            end.pending = bytes(pending[size:])
        other = end.pair.other(end)
        if other is not None and other.ended and not end.pending:
            end.socket.shutdown(socket.SHUT_WR)
        for each in (end, other):
            if each is not None:
                self._watch(each)

    def _watch(self, end: _End) -> None:
        other = end.pair.other(end)
        blocked = end.pair.has_hello if other is None else bool(other.pending)
        events = (0 if end.ended or blocked else _READ) | (_WRITE if end.pending else 0)
        if events == end.events:
            return
        if not end.events:
            self._selector.register(end.socket, events, end)
        elif not events:
            self._selector.unregister(end.socket)
        else:
            self._selector.modify(end.socket, events, end)
        end.events = events

    def _drop_all(self, pairs: Iterable[_Pair]) -> None:
        for pair in list(pairs):
            self._drop(pair)

    def _drop(self, pair: _Pair, *, properly: bool = False) -> None:
        """Close a pair; unless properly, the outside sees a reset instead of an orderly close."""
        if pair not in self._pairs:
            return
        del self._pairs[pair]
        with self._lock:
            self._inside.pop(pair.name, None)
        for end in (pair.outside, pair.inside):
            if end is None:
                continue
            if end.events:
                self._selector.unregister(end.socket)
            if end is pair.outside and not properly and pair.drop_at is None:
                with contextlib.suppress(OSError):
                    end.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            end.socket.close()


def listeners(address: str) -> list[socket.socket]:
    """Return listening sockets, one for each address that "host:port" resolves to; OSError if there is none."""
    host, _, port = address.rpartition(":")
    sockets: list[socket.socket] = []
    last_error: OSError | None = None
    resolved = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    for family, _, _, _, where in dict.fromkeys(resolved):
        try:
            listener = socket.create_server(where[:2], family=family, backlog=_BACKLOG)
            listener.setblocking(False)
            sockets.append(listener)
        except OSError as error:
            last_error = error
    if not sockets:
        raise last_error or OSError(errno.EADDRNOTAVAIL, "no such address")
    return sockets


def network_of(host: str) -> str:
    """Return by what a stranger is counted: its IPv4 address, or the /64 network of its IPv6 address."""
    address = ipaddress.ip_address(host.partition("%")[0])
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, 64), strict=False))


def _full(strangers: list[_Pair], most: int, of_one: int, host: str | None = None) -> set[str]:
    """Return the addresses of which a connection must be dropped before another comes, of `host` or of any address.

    Args:
        most, of_one: how many strangers there may be, in total and of one address.
    """
    counts = Counter(pair.host for pair in strangers)
    full = {address for address, count in counts.items() if count >= of_one and host in (None, address)}
    return {counts.most_common(1)[0][0]} if not full and len(strangers) >= most else full


def _drop_order(pair: _Pair) -> tuple[int, float]:
    return pair.stage, pair.since


def _is_overdue(pair: _Pair, now: float) -> bool:
    if pair.drop_at is not None:
        return now > pair.drop_at
    limit = _GREETING_SECONDS if pair.has_hello else _HELLO_SECONDS
    return pair.party is None and now > pair.since + limit


def _inside_name(peer: str) -> str:
    """Return the last part of gRPC's "unix:/folder/name" or "ipv4:127.0.0.1:port"."""
    return peer.replace(":", "/").rpartition("/")[2]
