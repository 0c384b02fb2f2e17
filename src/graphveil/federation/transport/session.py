"""A run over the network: the parties agree where to begin, run their programs, and begin again when one restarts.

    server   call(nonce) -> all                                            holder   ready(nonce, rounds saved)
    server   start(nonce, session, the last round that all have) -> all    holder   started(nonce)
    server   go(nonce) -> all, when all have started
    each round, everybody   saved(session, round) -> all
    server   ask(nonce) -> all, over(nonce) when all have finished         holder   finished(nonce), left(nonce)
    anybody  stop(one of `WHY`) -> all, computing(session) -> all

A cut stream loses nothing (see `mailbox`).  When a process restarts, the server calls again: everybody drops the
session and resumes from the last round that all have saved, with new masks.  These control messages are repeated until
they are answered.

Nobody publishes for round r + 1 before all have saved round r.  So a round that runs again starts from the same state,
publishes the same noisy rows, and costs nothing more.  Before a party publishes, it notes on disk the round and the
name of the publication (`Send.name`); it refuses to go back before that round, and to publish that round under another
name, as with other data or an older state of any party.  Checkpoints after the round from which the run resumes hold
shares of an ended session, and are removed.
"""

from __future__ import annotations

import secrets
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from torch import Tensor

from graphveil.errors import BudgetError, GraphveilError, InputError
from graphveil.federation.core.checkpoints import Checkpoints
from graphveil.federation.core.messages import KINDS, Entry, Transcript, checked_body, require_kind
from graphveil.federation.effects import Checkpoint, PeerError, Program, Receive, Send, advance
from graphveil.federation.transport.links import Links
from graphveil.federation.transport.mailbox import SessionOver
from graphveil.federation.transport.wire import WireError, digest_of
from graphveil.runtime.progress import Progress, ProgressCallback

#: How often a control message that waits for an answer is sent again, and how many that came in are kept.
_REPEAT_SECONDS: Final = 0.3
_MAX_CONTROLS: Final = 256
#: The reasons that a party gives when it stops, which say nothing of its data.
WHY: Mapping[str, str] = MappingProxyType(
    {
        "message": "a message was not what was agreed",
        "peer": "another party is gone, refused it or broke the protocol",
        "budget": "it may publish nothing more: nobody is new, its data changed, or its privacy budget is spent",
        "own": "its own data, settings or files were refused",
        "fault": "a fault in its program",
    }
)


Build = Callable[[int, Mapping[str, Tensor] | None], Program[Any]]


@dataclass(frozen=True)
class Message:
    """One message as it leaves this party or is read by it, without its content.

    Attributes:
        session: the name of the session, hexadecimal; a restart of any party begins another.
        tag: a digest of the body (`digest_of`); in a log under a key.
        publication: the name of what a priced message of this party publishes, which may be a plain digest of rows
            before their noise. Neither this nor the tag may leave this machine as it is.
    """

    entry: Entry
    session: str = ""
    tag: str = ""
    publication: str = ""


Record = Callable[[Message], None]


@dataclass(frozen=True)
class Finished:
    """The result of this party's program, and the messages of this process."""

    result: Any
    transcript: Transcript


class Session:
    """One party's side of a run.

    Args:
        me, server: names.
        peers: names of all other parties.
        build: makes the program from the last finished round and its state.
        store: of finished rounds.
        patience: seconds to wait for other parties.
        progress: called after each finished round, with the epsilon spent; its total is 0, which says unknown.
        record: called with each message before it leaves, and when it is read.
    """

    def __init__(
        self,
        me: str,
        server: str,
        peers: tuple[str, ...],
        build: Build,
        store: Checkpoints,
        *,
        patience: float,
        progress: ProgressCallback,
        record: Record = lambda message: None,
    ) -> None:
        self._me, self._server, self._peers = me, server, peers
        self._build, self._store, self._patience, self._progress = build, store, patience, progress
        self._controls_in: deque[tuple[str, dict[str, Any]]] = deque(maxlen=_MAX_CONTROLS)
        self._restarted = self._stopped = False
        self._nonce, self._started_nonce, self._session = "", "", ""
        self._saved: dict[str, int] = {}
        self._last_computing = 0.0
        self._entries: list[Entry] = []
        self._record = record
        self.links: Links | None = None

    def on_control(self, name: str, control: dict[str, Any]) -> None:
        """Take a control message of another party; WireError for one outside the protocol."""
        monitor = self._open().monitor
        with monitor.lock:
            if "computing" in control:
                # Any other silent party may be waiting for this one too.
                self._last_computing = time.monotonic()
                for mail in self._open().mail.values():
                    mail.restart_patience()
                return
            if "stop" in control:
                why = WHY.get(str(control["stop"]), "no reason given")
                self._stopped = True  # by another party, which has told everybody
                monitor.end(PeerError(f"stopped: {why}", where=name, remedy="see its own output"))
            elif "saved" in control:
                if control.get("of") == self._session:
                    self._saved[name] = max(self._saved.get(name, -1), _int_in(control, "saved"))
                    if "again" in control:  # it may have missed what this one has saved
                        self._send_control({"saved": self._saved[self._me], "of": self._session}, name)
            elif "started" in control and self._leads and control["started"] == self._started_nonce:
                self._send_control({"go": self._started_nonce}, name)
            elif "call" in control and name == self._server and control["call"] != self._nonce:
                # The program waits in another thread: ending the monitor wakes it.
                monitor.end(SessionOver())
            self._controls_in.append((name, control))
            monitor.lock.notify_all()

    def on_restart(self, name: str) -> None:
        """Note that a peer's process has restarted; the server calls everybody again."""
        if self._leads:
            monitor = self._open().monitor
            with monitor.lock:
                self._restarted = True
                monitor.end(SessionOver())

    def computing(self, step: Progress) -> None:
        """Report a step before the first round, and tell all parties that this one computes: none loses patience."""
        self._send_control({"computing": self._session})
        self._progress(step)

    @property
    def _leads(self) -> bool:
        return self._me == self._server

    def _open(self) -> Links:
        if self.links is None:
            raise RuntimeError("the links are not open")
        return self.links

    def run(self) -> Finished:
        """Run to the end; where it fails, the other parties are told the reason, as a key of `WHY`.

        Raises:
            PeerError: another party is gone for too long, refuses this one, or stopped.
            GraphveilError: a message or this party's own data are refused.
        """
        while True:
            try:
                done = self._lead() if self._leads else self._follow()
                result = self._drive(max(done, 0), None if done < 0 else self._store.load(done))
                self._leave_together()
                return Finished(result, Transcript(tuple(self._entries)))
            except SessionOver:
                continue
            except Exception as error:
                if not self._stopped:
                    self._send_control({"stop": _why(error)})
                    time.sleep(_REPEAT_SECONDS)  # for the message to leave
                raise

    def _lead(self) -> int:
        links = self._open()
        with links.monitor.lock:
            self._restarted = False
            links.monitor.begin()
            self._nonce, self._started_nonce = secrets.token_hex(8), ""
        ready = self._gather({"call": self._nonce}, "ready")
        rounds = {-1, *self._store.rounds()}
        for control in ready.values():
            # All have -1, the very beginning, so there is always a common round; `_resume_from` may refuse it.
            rounds &= {-1, *_rounds_in(control)}
        done, session = max(rounds), secrets.token_bytes(16)
        self._resume_from(done)
        self._begin_session(session, done)
        self._gather({"start": self._nonce, "session": session.hex(), "round": done}, "started")
        self._started_nonce = self._nonce
        self._send_control({"go": self._nonce})
        return done

    def _follow(self) -> int:
        done, last_heard, answer = -1, time.monotonic(), None
        while True:
            control = self._next_control(("call", "start", "go"))
            if control is None:
                if answer is not None:
                    self._send_control(answer, self._server)
                self._check_patience(last_heard, (self._server,))
                continue
            last_heard = time.monotonic()
            if "call" in control:
                self._nonce = str(control["call"])
                answer = {"ready": self._nonce, "rounds": self._store.rounds()}
            elif "start" in control and control["start"] == self._nonce:
                done = _int_in(control, "round")
                self._resume_from(done)
                session = _session_in(control)
                # "start" is repeated until it is answered: a second one must not empty the mailboxes again.
                if session.hex() != self._session:
                    self._begin_session(session, done)
                answer = {"started": self._nonce}
            elif control.get("go") == self._nonce:
                return done
            if answer is not None:
                self._send_control(answer, self._server)

    def _resume_from(self, done: int) -> None:
        """Prepare to resume from a round, -1 for the very beginning; BudgetError where a publication would be repeated.

        Args:
            done: the round.
        """
        # Another party's too: what was read once would be drawn anew by a party that has lost its checkpoints.
        published, last_read = self._store.published(), self._store.last_read()
        if done < max(published, last_read) - 1:
            own = f"published for round {published}"
            what = own if published >= last_read else f"read what was published for round {last_read}"
            raise BudgetError(
                f"another party has lost its checkpoints after round {max(done, 0)}, and this one has {what}",
                where=self._me,
                remedy="restore the checkpoints of all parties, or make a new agreement for a new run",
            )
        # Later rounds hold shares and masks of an ended session: resuming from them would mix two sessions.
        self._store.remove_after(done)

    def _begin_session(self, session: bytes, done: int) -> None:
        links = self._open()
        with links.monitor.lock:
            for mail in links.mail.values():
                mail.begin(session)
            links.monitor.begin()
            self._session = session.hex()
            self._saved = dict.fromkeys((self._me, *self._peers), done)

    def _gather(self, control: dict[str, Any], answer: str) -> dict[str, dict[str, Any]]:
        """Send a control message to all repeatedly until each has answered it; return the answers by name."""
        answers: dict[str, dict[str, Any]] = {}
        began, monitor = time.monotonic(), self._open().monitor
        while True:
            self._send_control(control)
            until = time.monotonic() + _REPEAT_SECONDS
            with monitor.lock:
                while time.monotonic() < until and len(answers) < len(self._peers):
                    while self._controls_in:
                        name, reply = self._controls_in.popleft()
                        if reply.get(answer) == self._nonce:
                            answers[name] = reply
                    if self._restarted:
                        raise SessionOver
                    monitor.check(over=False)
                    if len(answers) < len(self._peers):
                        monitor.lock.wait(max(until - time.monotonic(), 0.01))
            if len(answers) == len(self._peers):
                return answers
            self._check_patience(began, tuple(name for name in self._peers if name not in answers))

    def _next_control(self, kinds: tuple[str, ...]) -> dict[str, Any] | None:
        """Return the server's next control message of these kinds, or None after a short wait."""
        monitor = self._open().monitor
        until = time.monotonic() + _REPEAT_SECONDS
        with monitor.lock:
            while True:
                while self._controls_in:
                    name, control = self._controls_in.popleft()
                    if name == self._server and any(kind in control for kind in kinds):
                        return control
                monitor.check(over=False)
                if time.monotonic() >= until:
                    return None
                monitor.lock.wait(max(until - time.monotonic(), 0.01))

    def _check_patience(self, last_heard: float, names: tuple[str, ...]) -> None:
        """Raise PeerError where some parties have been silent for too long."""
        if time.monotonic() - last_heard > self._patience:
            why = "; ".join(self._open().refused[name] for name in names if name in self._open().refused)
            raise PeerError(
                f"no answer for {self._patience:.0f} s{f' ({why})' if why else ''}",
                where=", ".join(names),
                remedy="start it, then restart this one: the run resumes from the last finished round",
            )

    def _send_control(self, control: dict[str, Any], name: str | None = None) -> None:
        for peer in (name,) if name is not None else self._peers:
            self._open().mail[peer].send_control(control)

    def _prepare_publication(self, round: int, saved: int | None, name: str) -> None:
        """Before a priced message: wait until all have saved the round before, and note the publication.

        Args:
            saved: the round before; None where nothing is saved yet.
            name: of the publication.

        Raises:
            BudgetError: the round was published before under another name, and so with other data.
        """
        if saved is not None:
            self._await_all(saved)
        # Read from disk each time: what counts is what a restart would find.
        last = self._store.published()
        if round > last:
            self._store.publish(round, name)
        elif round < last or (name and name != self._store.published_name()):
            raise BudgetError(
                f"round {round} was published with other data or other shares, and cannot be published a second time",
                where=self._me,
                remedy="restore the data and the checkpoints of all parties, or make a new agreement for a new run",
            )

    def _log_message(self, entry: Entry, body: Tensor, publication: str = "") -> None:
        self._record(Message(entry, self._session, digest_of(body), publication))
        self._entries.append(entry)

    def _await_all(self, round: int) -> None:
        began = time.monotonic()
        control = {"saved": round, "of": self._session, "again": 1}
        self._open().monitor.wait(
            lambda: min(self._saved.values()) >= round,
            lambda: self._check_patience(
                max(began, self._last_computing), tuple(name for name, saved in self._saved.items() if saved < round)
            ),
            lambda: self._send_control(control),
        )

    def _drive(self, done: int, state: Mapping[str, Tensor] | None) -> Any:
        program = self._build(done, state)
        mail, reply, round = self._open().mail, None, done
        saved = done if state is not None else None
        try:
            while True:
                try:
                    effect = advance(program, reply)
                except StopIteration as stop:
                    # The result is final only when the other parties have everything that they need from this one.
                    for box in mail.values():
                        box.flush()
                    return stop.value
                reply = None
                if isinstance(effect, Send):
                    require_kind(effect.kind, effect.body)
                    if KINDS[effect.kind].priced:
                        self._prepare_publication(round + 1, saved, effect.name)
                    # Before it leaves: if the process is killed between the two, a message is lost and not its record.
                    entry = _entry(round + 1, self._me, effect.to, effect.kind, effect.body)
                    self._log_message(entry, effect.body, effect.name)
                    mail[effect.to].send(effect.kind, effect.body)
                elif isinstance(effect, Receive):
                    kind, body = mail[effect.sender].receive()
                    if effect.kind == kind and KINDS[kind].priced and self._store.last_read() < round + 1:
                        self._store.note_read(round + 1)
                    reply = _check_expected(effect, kind, body)
                    self._log_message(_entry(round + 1, effect.sender, self._me, kind, body), body)
                elif isinstance(effect, Checkpoint):
                    round = saved = effect.round
                    # On disk before "saved" is sent: other parties publish because of that message.
                    self._store.save(effect.round, effect.state())
                    with self._open().monitor.lock:
                        self._saved[self._me] = effect.round
                    # To everybody and not through the server, which would take another trip on the line in each round.
                    self._send_control({"saved": effect.round, "of": self._session})
                    self._progress(Progress(effect.round, 0, "train", effect.epsilon))
        finally:
            program.close()

    def _leave_together(self) -> None:
        """Leave when all have finished, so that no party that must restart is left alone."""
        if self._leads:
            self._gather({"ask": self._nonce}, "finished")
            # For some seconds: a party that misses it has finished anyway.
            patience, self._patience = self._patience, min(self._patience, 3.0)
            self._open().leave()
            try:
                self._gather({"over": self._nonce}, "left")
            except (PeerError, SessionOver):
                pass
            finally:
                self._patience = patience
            return
        last_heard = time.monotonic()
        while True:
            try:
                control = self._next_control(("ask", "over", "call"))
                if control is None:
                    self._check_patience(last_heard, (self._server,))
                    continue
            except PeerError:
                return  # this party has all it needs, whatever happens to the others
            last_heard = time.monotonic()
            if control.get("ask") == self._nonce:
                self._send_control({"finished": self._nonce}, self._server)
            elif control.get("over") == self._nonce:
                self._open().leave()
                self._send_control({"left": self._nonce}, self._server)
                time.sleep(_REPEAT_SECONDS / 3)  # for the message to leave
                return
            elif "call" in control and control["call"] != self._nonce:
                self._controls_in.appendleft((self._server, control))
                raise SessionOver


def _why(error: Exception) -> str:
    if isinstance(error, PeerError):
        return "message" if isinstance(error.__cause__, InputError) else "peer"
    if isinstance(error, BudgetError):
        return "budget"
    return "own" if isinstance(error, GraphveilError) else "fault"


def _check_expected(expected: Receive, kind: str, body: Tensor) -> Tensor:
    try:
        return checked_body(expected, kind, body)
    except InputError as error:
        raise PeerError(f"sent an unexpected message: {error}", where=expected.sender) from error


def _int_in(control: Mapping[str, Any], name: str) -> int:
    if not isinstance(control.get(name), int):
        raise WireError(f"a message without {name!r}", where="session")
    return int(control[name])


def _rounds_in(control: Mapping[str, Any]) -> list[int]:
    rounds = control.get("rounds", [])
    if not isinstance(rounds, list) or not all(isinstance(number, int) for number in rounds):
        raise WireError("a word without 'rounds'", where="session")
    return rounds


def _session_in(control: Mapping[str, Any]) -> bytes:
    try:
        session = bytes.fromhex(str(control["session"]))
    except (KeyError, ValueError) as error:
        raise WireError("a message without 'session'", where="session") from error
    if len(session) != 16:
        raise WireError("a message without 'session'", where="session")
    return session


def _entry(round: int, sender: str, receiver: str, kind: str, body: Tensor) -> Entry:
    size = body.numel() * body.element_size()
    return Entry(round, sender, receiver, kind, tuple(body.shape), size, KINDS[kind].reveals)
