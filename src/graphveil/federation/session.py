"""A run over the network: the parties agree where to begin, run their programs, and begin again when one starts anew.

    server   call(nonce) -> all                                            holder   ready(nonce, rounds saved)
    server   start(nonce, session, the last round that all have) -> all    holder   started(nonce)
    server   ask(nonce), over(nonce) when all have finished -> all         holder   finished(nonce)

A cut stream loses nothing (see `mailbox`).  A process that ends and starts again makes the server call anew: everybody
drops the session and goes on from the last round that all have saved, with new masks.  Words are repeated.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from torch import Tensor

from graphveil.errors import GraphveilError
from graphveil.federation.links import Links
from graphveil.federation.mailbox import PeerError, SessionOver
from graphveil.federation.messages import KINDS, Entry, Receive, Send, Transcript, require_kind
from graphveil.federation.programs import Checkpoint, Program, opened

_REPEAT: Final = 0.3


class Store(Protocol):
    """Where a party keeps its checkpoints."""

    def rounds(self) -> list[int]:
        """Return the finished rounds that can be gone on from."""

    def load(self, round: int) -> Mapping[str, Tensor]:
        """Return the state after a round."""

    def save(self, round: int, state: Mapping[str, Tensor]) -> None:
        """Keep the state after a round."""


Build = Callable[[int, Mapping[str, Tensor] | None], Program]
Tell = Callable[[int, float], None]


@dataclass(frozen=True)
class Finished:
    """What this party's program returned, and what it sent and received."""

    result: Any
    transcript: Transcript


class Session:
    """One party's side of a run.

    Args:
        me, server: names. peers: names of all others. build: makes the program, from a finished round and its state.
        store: checkpoints. patience: seconds that others are waited for.
        tell: called after each finished round with its number and the epsilon spent.
    """

    def __init__(
        self, me: str, server: str, peers: tuple[str, ...], build: Build, store: Store, *, patience: float, tell: Tell
    ) -> None:
        self._me, self._server, self._peers = me, server, peers
        self._build, self._store, self._patience, self._tell = build, store, patience, tell
        self._lock = threading.Condition()
        self._words: list[tuple[str, dict[str, Any]]] = []
        self._anew = False
        self._nonce = ""
        self.links: Links | None = None

    # ---- what the links call ----

    def on_control(self, name: str, word: dict[str, Any]) -> None:
        """Take a word of another party."""
        if "begun" in word:
            self._open().mail[name].rewind(bytes.fromhex(str(word["begun"])))
            return
        with self._lock:
            if "stop" in word:
                self._end(PeerError(f"stopped: {word['stop']}", where=name))
            elif "call" in word and word["call"] != self._nonce:
                self._end(SessionOver())
            self._words.append((name, word))
            self._lock.notify_all()

    def on_restart(self, name: str) -> None:
        """Note that a peer's process is a new one; the server calls everybody anew."""
        if self._me == self._server:
            with self._lock:
                self._anew = True
                self._end(SessionOver())
                self._lock.notify_all()

    def _end(self, reason: Exception) -> None:
        for mail in self._open().mail.values():
            mail.end(reason)

    def _open(self) -> Links:
        if self.links is None:
            raise RuntimeError("the links are not open")
        return self.links

    # ---- the run ----

    def run(self) -> Finished:
        """Run to the end.

        Raises:
            PeerError: another party is gone for too long, refuses this one, or stopped.
            GraphveilError: a message is not what was agreed; the others are told to stop.
        """
        while True:
            try:
                done, session = self._agree()
                finished = self._drive(done, session)
                self._part()
                return finished
            except SessionOver:
                continue
            except PeerError:
                raise
            except GraphveilError as error:
                self._say({"stop": f"{self._me}: {error}"})
                time.sleep(_REPEAT)
                raise

    def _agree(self) -> tuple[int, bytes]:
        """Return the round that is finished and the new session."""
        return self._lead() if self._me == self._server else self._follow()

    def _lead(self) -> tuple[int, bytes]:
        with self._lock:
            self._anew = False
            self._nonce = secrets.token_hex(8)
            for mail in self._open().mail.values():
                mail.begin(bytes(16))
        ready = self._gather({"call": self._nonce}, "ready")
        rounds = set(self._store.rounds()) | {0}
        for word in ready.values():
            rounds &= set(word["rounds"]) | {0}
        session = secrets.token_bytes(16)
        self._begin(session)
        self._gather({"start": self._nonce, "session": session.hex(), "round": max(rounds)}, "started")
        return max(rounds), session

    def _follow(self) -> tuple[int, bytes]:
        deadline = time.monotonic() + self._patience
        while True:
            word = self._next(self._server, ("call", "start"), deadline)
            if "call" in word:
                self._nonce = str(word["call"])
                self._say({"ready": self._nonce, "rounds": self._store.rounds()}, self._server)
            elif word["start"] == self._nonce:
                session = bytes.fromhex(str(word["session"]))
                self._begin(session)
                self._say({"started": self._nonce}, self._server)
                return int(word["round"]), session

    def _begin(self, session: bytes) -> None:
        for mail in self._open().mail.values():
            mail.begin(session)
        self._say({"begun": session.hex()})

    def _gather(self, word: dict[str, Any], answer: str) -> dict[str, dict[str, Any]]:
        """Say a word to all until each has answered it."""
        found: dict[str, dict[str, Any]] = {}
        deadline = time.monotonic() + self._patience
        while len(found) < len(self._peers):
            for name in self._peers:
                if name not in found:
                    self._say(word, name)
            until = time.monotonic() + _REPEAT
            with self._lock:
                while time.monotonic() < until and not self._words and not self._anew:
                    self._lock.wait(max(until - time.monotonic(), 0.01))
                if self._anew:
                    raise SessionOver
                words, self._words = self._words, []
            for name, said in words:
                if said.get(answer) == self._nonce:
                    found[name] = said
            if time.monotonic() > deadline:
                gone = [name for name in self._peers if name not in found]
                raise PeerError(
                    f"no word for {self._patience:.0f} s",
                    where=", ".join(gone),
                    remedy="start it; this run goes on from its last round",
                )
        return found

    def _next(self, name: str, kinds: tuple[str, ...], deadline: float) -> dict[str, Any]:
        with self._lock:
            while True:
                for place, (sender, word) in enumerate(self._words):
                    if sender == name and any(kind in word for kind in kinds):
                        del self._words[: place + 1]
                        return word
                self._words.clear()
                for mail in self._open().mail.values():
                    mail.raise_fault((SessionOver,))
                if time.monotonic() > deadline:
                    raise PeerError(f"no word for {self._patience:.0f} s", where=name, remedy="is it running?")
                self._lock.wait(_REPEAT)

    def _say(self, word: dict[str, Any], name: str | None = None) -> None:
        import json

        for peer in (name,) if name is not None else self._peers:
            self._open().mail[peer].control(json.dumps(word).encode())

    def _drive(self, done: int, session: bytes) -> Finished:
        """Run the program from a finished round on."""
        program = self._build(done, self._store.load(done) if done else None)
        mail, reply, round = self._open().mail, None, done
        entries: list[Entry] = []
        while True:
            try:
                effect = program.send(reply)
            except StopIteration as stop:
                for box in mail.values():
                    box.flush()
                return Finished(stop.value, Transcript.of(entries))
            reply = None
            if isinstance(effect, Send):
                require_kind(effect.kind, effect.body)
                mail[effect.to].send(effect.kind, effect.body)
                entries.append(_entry(round + 1, self._me, effect.to, effect.kind, effect.body))
            elif isinstance(effect, Receive):
                kind, body = mail[effect.sender].receive()
                reply = opened(effect, kind, body)
                entries.append(_entry(round + 1, effect.sender, self._me, kind, body))
            elif isinstance(effect, Checkpoint):
                round = effect.round
                self._store.save(round, effect.state())
                self._tell(round, effect.epsilon)

    def _part(self) -> None:
        """Leave when all have finished, so that nobody who must begin again is left alone."""
        if self._me == self._server:
            self._gather({"ask": self._nonce}, "finished")
            for _ in range(5):
                self._say({"over": self._nonce})
                time.sleep(_REPEAT / 3)
            return
        deadline = time.monotonic() + self._patience
        while True:
            word = self._next(self._server, ("ask", "over", "call"), deadline)
            if "call" in word:
                raise SessionOver
            if "over" in word:
                return
            self._say({"finished": self._nonce}, self._server)


def _entry(round: int, sender: str, receiver: str, kind: str, body: Tensor) -> Entry:
    size = body.numel() * body.element_size()
    return Entry(round, sender, receiver, kind, tuple(body.shape), size, KINDS[kind].reveals)
