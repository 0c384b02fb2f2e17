"""One party's end of a pair: numbered messages out, acknowledged and sent again after a cut; checked messages in.

    out   number 1, 2, ...; kept until acknowledged; at most WINDOW bytes wait, then `send` waits too
    in    the next number alone; older ones are repetitions and are dropped, newer ones are a fault

Knows no network: a stream takes frames from `outgoing` and hands what arrives to `arrived`.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from torch import Tensor

from graphveil.errors import GraphveilError
from graphveil.federation.wire import ACK, CONTROL, DATA, Assembly, Frame, WireError, frames_of, parse

WINDOW = 64 << 20
_IDLE = 0.5


class PeerError(GraphveilError):
    """The other party is gone, silent for too long, or does not follow the protocol."""


class SessionOver(Exception):
    """This session ended because a party started anew; the run goes on from the last checkpoint. Never shown."""


@dataclass(frozen=True)
class Ends:
    """Who talks to whom: hash of the agreement, both places in its list of parties, and the peer's name."""

    agreement: bytes
    me: int
    peer: int
    name: str


class Mailbox:
    """Both directions of one pair; safe to use from the program's thread and the stream's threads.

    Args:
        largest: bytes of the largest message the agreement allows.
        patience: seconds without any sign of the peer after which waiting ends.
    """

    def __init__(self, ends: Ends, *, largest: int, patience: float) -> None:
        self._ends, self._largest, self._patience = ends, largest, patience
        self._lock = threading.Condition()
        self._session = bytes(16)
        self._reset()
        self._fault: Exception | None = None
        self._controls: deque[bytes] = deque()
        self._heard = time.monotonic()
        self._stream = 0

    def _reset(self) -> None:
        self._waiting: deque[tuple[int, list[bytes]]] = deque()  # not acknowledged
        self._bytes, self._next, self._sent, self._expected, self._acknowledge = 0, 1, 0, 1, 0
        self._assembly: Assembly | None = None
        self._inbox: deque[tuple[str, Tensor]] = deque()

    # ---- the program's side ----

    def begin(self, session: bytes) -> None:
        """Forget the session before and start another."""
        with self._lock:
            self._session = session
            self._reset()
            self._fault = None
            self._lock.notify_all()

    def send(self, kind: str, body: Tensor) -> None:
        """Queue a message; waits while too much is unacknowledged.

        Raises:
            PeerError: the peer was silent for too long. SessionOver: a party started anew.
        """
        with self._lock:
            self._wait(lambda: self._bytes < WINDOW)
            ends, number = self._ends, self._next
            frames = frames_of(
                kind,
                body,
                agreement=ends.agreement,
                session=self._session,
                sender=ends.me,
                receiver=ends.peer,
                number=number,
            )
            made = [frame.to_bytes() for frame in frames]
            self._waiting.append((number, made))
            self._bytes += sum(map(len, made))
            self._next += 1
            self._lock.notify_all()

    def receive(self) -> tuple[str, Tensor]:
        """Return the next message; waits for it.

        Raises:
            PeerError: the peer was silent for too long, or broke the protocol. SessionOver: a party started anew.
        """
        with self._lock:
            self._wait(lambda: bool(self._inbox))
            return self._inbox.popleft()

    def flush(self) -> None:
        """Wait until everything sent has been acknowledged."""
        with self._lock:
            self._wait(lambda: not self._waiting)

    def control(self, body: bytes) -> None:
        """Send a word of the sessions' own protocol, outside all sessions; lost when the stream is cut."""
        with self._lock:
            self._controls.append(self._frame(CONTROL, body).to_bytes())
            self._lock.notify_all()

    def end(self, reason: Exception) -> None:
        """Wake whoever waits, with `reason`."""
        with self._lock:
            self._fault = reason
            self._lock.notify_all()

    def raise_fault(self, but: tuple[type[Exception], ...]) -> None:
        """Raise what ended this mailbox, unless it is of these kinds."""
        fault = self._fault
        if fault is not None and not isinstance(fault, but):
            raise fault

    def _wait(self, ready: Callable[[], bool]) -> None:
        while not ready():
            if self._fault is not None:
                raise self._fault
            if time.monotonic() - self._heard > self._patience:
                raise PeerError(
                    f"has not been heard of for {self._patience:.0f} s",
                    where=self._ends.name,
                    remedy="start the party again; the run goes on from the last finished round",
                )
            self._lock.wait(_IDLE)
        if self._fault is not None:
            raise self._fault

    # ---- the stream's side ----

    def heard(self) -> None:
        """Note a sign of life."""
        self._heard = time.monotonic()

    def rewind(self, session: bytes) -> None:
        """Send again what is not acknowledged: the peer has a new stream, or has only now begun this session."""
        with self._lock:
            if session == self._session:
                self._sent = self._waiting[0][0] - 1 if self._waiting else self._next - 1
                self._lock.notify_all()

    def outgoing(self) -> Iterator[bytes]:
        """Yield frames to send on a new stream, beginning with what is not acknowledged, until replaced."""
        with self._lock:
            self._stream += 1
            mine = self._stream
            self._sent = self._waiting[0][0] - 1 if self._waiting else self._next - 1
            self._lock.notify_all()
        while True:
            with self._lock:
                frames: list[bytes] = []
                while self._stream == mine and not frames:
                    frames = [*self._controls]
                    self._controls.clear()
                    if self._acknowledge:
                        number, self._acknowledge = self._acknowledge, 0
                        frames.append(self._frame(ACK, b"", number).to_bytes())
                    fresh = next((entry for entry in self._waiting if entry[0] > self._sent), None)
                    if fresh is not None:
                        self._sent = fresh[0]
                        frames += fresh[1]
                    if not frames:
                        self._lock.wait(_IDLE)
                if self._stream != mine:
                    return
            yield from frames

    def interrupt(self) -> None:
        """End the present stream's `outgoing`."""
        with self._lock:
            self._stream += 1
            self._lock.notify_all()

    @property
    def session(self) -> bytes:
        """The present session."""
        return self._session

    def arrived(self, data: bytes) -> bytes | None:
        """Take a frame from the stream; return the word of a control frame.

        Raises:
            WireError: a frame that is damaged, of another run or pair, or out of order.
        """
        frame, ends = parse(data), self._ends
        if (frame.agreement, frame.sender, frame.receiver) != (ends.agreement, ends.peer, ends.me):
            raise WireError("a frame of another run or of other parties", where=ends.name)
        with self._lock:
            self.heard()
            if frame.type == CONTROL:
                return frame.body
            if frame.session != self._session:
                return None  # of a session that is over
            if frame.type == ACK:
                self._acknowledged(frame.number)
            elif frame.type == DATA and frame.number >= self._expected:
                self._take(frame)
        return None

    def _acknowledged(self, number: int) -> None:
        if number >= self._next:
            raise WireError("an acknowledgement of what was never sent", where=self._ends.name)
        while self._waiting and self._waiting[0][0] <= number:
            self._bytes -= sum(map(len, self._waiting.popleft()[1]))
        self._lock.notify_all()

    def _take(self, frame: Frame) -> None:
        if frame.number != self._expected:
            raise WireError(f"message {frame.number} where {self._expected} is next", where=self._ends.name)
        if frame.part == 0:  # a message that was cut is sent again from its first part
            self._assembly = Assembly(frame, largest=self._largest)
        if self._assembly is None:
            raise WireError("a part without its beginning", where=self._ends.name)
        whole = self._assembly.add(frame)
        if whole is not None:
            self._assembly = None
            self._inbox.append(whole)
            self._acknowledge = self._expected
            self._expected += 1
            self._lock.notify_all()

    def _frame(self, type_: int, body: bytes, number: int = 0) -> Frame:
        ends = self._ends
        return Frame(type_, ends.agreement, self._session, ends.me, ends.peer, number=number, body=body)
