"""One party's end of a pair: numbered messages out, acknowledged and sent again after a cut; checked messages in.

    out   number 1, 2, ...; kept until acknowledged; while WINDOW bytes wait, `send` waits too
    in    the next number only; older ones are repetitions and are dropped, newer ones are a fault
    ack   when a message has arrived; withheld while WINDOW bytes lie unread and the program computes

While a program waits for anything, its inboxes acknowledge everything.  So no two parties can both wait to send: where
all wait, all acknowledge.  A slow reader's unread messages stay below two windows and a message.
A mailbox knows no network: a stream takes frames from `outgoing` and hands incoming ones to `take_frame`.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from graphveil.federation.effects import PeerError
from graphveil.federation.transport import wire

# Large enough to send a round of most runs without waiting, and small beside the arrays themselves.
WINDOW = 64 << 20
#: How long a thread waits before it checks again: for a message, and for control messages to leave.
_WAIT_SECONDS, _DRAIN_SECONDS = 0.5, 0.02
_MAX_CONTROLS = 256


class SessionOver(Exception):
    """This session ended because a party restarted; the run resumes from the last checkpoint. Never shown."""


@dataclass(frozen=True)
class Endpoints:
    """Both ends of a pair: hash of the agreement, their positions in its list of parties, and the peer's name."""

    agreement_hash: bytes
    me: int
    peer: int
    name: str


class SessionMonitor:
    """State that all mailboxes of a party share: one lock, whether the program waits, and what ended the session."""

    def __init__(self) -> None:
        self.lock = threading.Condition()
        self.waiting = False
        self._fault: Exception | None = None

    def end(self, reason: Exception) -> None:
        """Wake all waiting threads with `reason`; a party's fault stays, whatever follows."""
        with self.lock:
            # The first cause is the one to report: after it every other stream ends too, as a consequence.
            if not isinstance(self._fault, PeerError):
                self._fault = reason
            self.lock.notify_all()

    def begin(self) -> None:
        """Begin a new session after one that is over; a party's fault stays."""
        with self.lock:
            if isinstance(self._fault, SessionOver):
                self._fault = None

    def check(self, *, over: bool = True) -> None:
        """Raise the fault that ended the session; with `over` false, ignore that a new session begins."""
        if self._fault is not None and (over or not isinstance(self._fault, SessionOver)):
            raise self._fault

    def wait(self, ready: Callable[[], bool], late: Callable[[], None], again: Callable[[], None]) -> None:
        """Wait until `ready`.

        Args:
            ready: whether the wait is over.
            late: raises when it is too late.
            again: called about every half second.
        """
        with self.lock:
            self.check()
            if ready():
                return
            self.waiting = True
            self.lock.notify_all()
            repeats = time.monotonic() + _WAIT_SECONDS
            try:
                while not ready():
                    late()
                    # By the clock: two parties whose control messages wake each other would repeat them without end.
                    if time.monotonic() >= repeats:
                        again()
                        repeats = time.monotonic() + _WAIT_SECONDS
                    self.lock.wait(_WAIT_SECONDS)
                    self.check()
            finally:
                self.waiting = False


@dataclass(frozen=True)
class _Outgoing:
    """A message that is kept until it is acknowledged."""

    number: int
    kind: str
    body: Tensor

    @property
    def bytes(self) -> int:
        return self.body.numel() * self.body.element_size()


class Mailbox:
    """Both directions of one pair; safe to use from the program's thread and the stream's threads.

    Args:
        largest: bytes of the largest message the agreement allows.
        patience: seconds without any sign of the peer after which waiting raises PeerError.
    """

    def __init__(self, ends: Endpoints, monitor: SessionMonitor, *, largest: int, patience: float) -> None:
        self._ends, self._monitor, self._largest, self._patience = ends, monitor, largest, patience
        self._session = bytes(16)
        self._reset()
        self._controls: deque[bytes] = deque(maxlen=_MAX_CONTROLS)
        self._last_sign = time.monotonic()
        self._stream = 0

    def _reset(self) -> None:
        self._unacknowledged: deque[_Outgoing] = deque()
        self._unacknowledged_bytes, self._next_number, self._last_sent = 0, 1, 0
        self._inbox: deque[tuple[str, Tensor]] = deque()
        self._unread_bytes, self._expected_number, self._last_acknowledged = 0, 1, 0
        self._assembly: wire.Assembly | None = None

    def begin(self, session: bytes) -> None:
        """Start a new session; messages of the old one are dropped."""
        with self._monitor.lock:
            self._session = session
            self._reset()
            self._monitor.lock.notify_all()

    def send(self, kind: str, body: Tensor) -> None:
        """Queue a copy of a message; wait while too much is unacknowledged.

        Args:
            body: its array, which may change afterwards.

        Raises:
            SessionOver: a party started anew.
        """
        # The program may change its array while the message waits to be acknowledged.
        copy = body.detach().clone()
        with self._monitor.lock:
            self._wait(lambda: self._unacknowledged_bytes < WINDOW)
            entry = _Outgoing(self._next_number, kind, copy)
            self._unacknowledged.append(entry)
            self._unacknowledged_bytes += entry.bytes
            self._next_number += 1
            self._monitor.lock.notify_all()

    def receive(self) -> tuple[str, Tensor]:
        """Wait for the next message and return it; SessionOver where a party started anew."""
        with self._monitor.lock:
            self._wait(lambda: bool(self._inbox))
            kind, body = self._inbox.popleft()
            self._unread_bytes -= body.numel() * body.element_size()
            self._monitor.lock.notify_all()
            return kind, body

    def restart_patience(self) -> None:
        """Count the peer's silence from now on."""
        self._last_sign = time.monotonic()

    def flush(self) -> None:
        """Wait until everything sent has been acknowledged."""
        self._wait(lambda: not self._unacknowledged)

    def send_control(self, control: dict[str, Any]) -> None:
        """Send a message of the sessions' own protocol, outside all sessions; it is lost if the stream is cut."""
        with self._monitor.lock:
            self._controls.append(self._frame(wire.CONTROL, wire.control_bytes(control)).to_bytes())
            self._monitor.lock.notify_all()

    def drain(self, seconds: float) -> None:
        """Wait until all control messages have gone to a stream, for some seconds at most."""
        until = time.monotonic() + seconds
        with self._monitor.lock:
            while self._controls and time.monotonic() < until:
                self._monitor.lock.wait(_DRAIN_SECONDS)

    def _wait(self, ready: Callable[[], bool]) -> None:
        start = time.monotonic()

        def late() -> None:
            if time.monotonic() - max(start, self._last_sign) > self._patience:
                remedy = "restart the party; the run resumes from the last finished round"
                raise PeerError(f"has been silent for {self._patience:.0f} s", where=self._ends.name, remedy=remedy)

        self._monitor.wait(ready, late, lambda: None)

    def open_stream(self) -> int:
        """Return the number of a new stream, which replaces the one before."""
        with self._monitor.lock:
            self._stream += 1
            self._last_sign = time.monotonic()
            # Unacknowledged messages may have been lost with the old stream; the other end drops repetitions.
            self._last_sent = self._unacknowledged[0].number - 1 if self._unacknowledged else self._next_number - 1
            self._monitor.lock.notify_all()
            return self._stream

    def close_stream(self, stream: int | None = None) -> None:
        """End the `outgoing` of a stream; without a number, of the present one."""
        with self._monitor.lock:
            if stream in (None, self._stream):
                self._stream += 1
                self._monitor.lock.notify_all()

    def outgoing(self, stream: int) -> Iterator[bytes]:
        """Yield frames to send on a stream, unacknowledged messages first, until the stream is replaced."""
        while True:
            with self._monitor.lock:
                while True:
                    if self._stream != stream:
                        return
                    small = self._small_frames()
                    session = self._session
                    entry = next((sent for sent in self._unacknowledged if sent.number > self._last_sent), None)
                    if small or entry is not None:
                        break
                    self._monitor.lock.wait(_WAIT_SECONDS)
                if entry is not None:
                    self._last_sent = entry.number
            yield from small
            if entry is not None:
                yield from self._parts(entry, session, stream)

    def _parts(self, entry: _Outgoing, session: bytes, stream: int) -> Iterator[bytes]:
        """Yield a message's frames, with control messages and acknowledgements between them."""
        ends = self._ends
        frames = wire.frames_of(
            entry.kind,
            entry.body,
            agreement_hash=ends.agreement_hash,
            session=session,
            sender=ends.me,
            receiver=ends.peer,
            number=entry.number,
        )
        for frame in frames:
            with self._monitor.lock:
                # Half a message is simply abandoned: its receiver starts again at part 0.
                if self._stream != stream or self._session != session:
                    return
                small = self._small_frames()
            yield from small
            yield frame.to_bytes()

    def _small_frames(self) -> list[bytes]:
        frames = [*self._controls]
        self._controls.clear()
        arrived = self._expected_number - 1
        # Not while a program computes over a full window: a slow reader slows its senders and fills no memory.
        if arrived > self._last_acknowledged and (self._unread_bytes < WINDOW or self._monitor.waiting):
            self._last_acknowledged = arrived
            frames.append(self._frame(wire.ACK, b"", arrived).to_bytes())
        return frames

    def take_frame(self, data: bytes, stream: int) -> bytes | None:
        """Take a frame from a stream; return the body of a control frame, else None.

        Args:
            data: a frame.
            stream: its number, from `open_stream`.

        Raises:
            WireError: for a frame that is damaged, of another run or pair, or out of order.
        """
        frame, ends = wire.parse(data), self._ends
        if (frame.agreement_hash, frame.sender, frame.receiver) != (ends.agreement_hash, ends.peer, ends.me):
            raise wire.WireError("a frame of another run or of other parties", where=ends.name)
        with self._monitor.lock:
            if stream != self._stream:
                return None  # of a stream that was replaced; what counts is sent again
            self._last_sign = time.monotonic()
            if frame.type == wire.CONTROL:
                return frame.body
            if frame.session != self._session:
                return None  # of a session that is over
            if frame.type == wire.ACK:
                # Only a faulty peer acknowledges what it cannot have read.
                if frame.number >= self._next_number:
                    raise wire.WireError("an acknowledgement of a message never sent", where=self._ends.name)
                while self._unacknowledged and self._unacknowledged[0].number <= frame.number:
                    self._unacknowledged_bytes -= self._unacknowledged.popleft().bytes
                self._monitor.lock.notify_all()
            elif frame.type == wire.DATA and frame.number < self._expected_number:
                # The acknowledgement was lost: it is sent again.
                self._last_acknowledged = min(self._last_acknowledged, self._expected_number - 2)
                self._monitor.lock.notify_all()
            elif frame.type == wire.DATA:
                self._take(frame)
            else:
                raise wire.WireError("a second greeting", where=ends.name)
        return None

    def _take(self, frame: wire.Frame) -> None:
        # gRPC keeps the order within a stream, so a gap is a fault, not a delay.
        if frame.number != self._expected_number:
            raise wire.WireError(f"message {frame.number} instead of {self._expected_number}", where=self._ends.name)
        if frame.part == 0:  # a message that was cut is sent again from its first part
            self._assembly = wire.Assembly(frame, largest=self._largest)
        if self._assembly is None:
            raise wire.WireError("a continuation without its first part", where=self._ends.name)
        message = self._assembly.add(frame)
        if message is not None:
            self._assembly = None
            self._inbox.append(message)
            _, body = message
            self._unread_bytes += body.numel() * body.element_size()
            self._expected_number += 1
            self._monitor.lock.notify_all()

    def _frame(self, type_: int, body: bytes, number: int = 0) -> wire.Frame:
        ends = self._ends
        return wire.Frame(type_, ends.agreement_hash, self._session, ends.me, ends.peer, number=number, body=body)
