"""Small parties on this machine for tests: real streams, toy programs, parties that are killed."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from graphveil.federation.core.checkpoints import Checkpoints
from graphveil.federation.crypto.keys import Identity, new_identity
from graphveil.federation.effects import Checkpoint, Program, Receive, Send
from graphveil.federation.transport.links import Links, Peer
from graphveil.federation.transport.session import Finished, Session
from graphveil.privacy import SecureRandomness
from graphveil.runtime.progress import Progress
from tests.federation.ports import free_ports
from tests.waiting import FOREVER

NAMES = ("server", "holder1", "holder2")
IDENTITIES = {name: new_identity(name) for name in NAMES}
AGREEMENT = hashlib.sha256(b"what was agreed").digest()
SHAPE = (4, 2)


class Killed(BaseException):
    """A process that ends without a word."""


@dataclass
class Place:
    """Where the parties of a test run: addresses that they listen on, ones that others are told, and their folders."""

    folder: Path
    agreement: bytes = AGREEMENT
    patience: float = FOREVER
    rounds: int = 5
    identities: Mapping[str, Identity] = field(default_factory=lambda: dict(IDENTITIES))
    ports: dict[str, int] = field(default_factory=lambda: dict(zip(NAMES, free_ports(len(NAMES)), strict=True)))
    notes: list[str] = field(default_factory=list)
    masks: list[bytes] = field(default_factory=list)
    sent: list[tuple[str, int, bytes]] = field(default_factory=list)
    lines: list[tuple[Session, Links]] = field(default_factory=list)

    def links(self, me: str, session: Session, **changes: Any) -> Links:
        peers = tuple(
            Peer(NAMES.index(name), name, f"127.0.0.1:{self.ports[name]}", self.identities[name].certificate)
            for name in NAMES
            if name != me
        )
        settings: dict[str, Any] = {
            "largest": 1 << 24,
            "patience": self.patience,
            "on_control": session.on_control,
            "on_restart": session.on_restart,
            "note": self.notes.append,
        }
        identity = changes.pop("identity", self.identities[me])
        agreement = changes.pop("agreement", self.agreement)
        address = f"127.0.0.1:{self.ports[me]}"
        return Links(identity, NAMES.index(me), address, peers, agreement, **{**settings, **changes})

    def lose_patience(self, names: tuple[str, ...] = NAMES) -> None:
        """Have the parties of these names that run give up whoever they wait for."""
        self.patience = 0.0
        for session, links in self.lines:
            if session._me not in names:
                continue
            session._patience = 0.0
            for mail in links.mail.values():
                mail._patience = 0.0

    def noted(self, text: str) -> bool:
        return any(text in note for note in list(self.notes))

    def run(
        self,
        me: str,
        *,
        die: Callable[[int], bool] = lambda round: False,
        build: Any = None,
        store: Any = None,
        **changes: Any,
    ) -> Finished:
        """Run one party in this thread; `die` says after which rounds it is killed."""
        own = store or Checkpoints(self.folder / me, self.agreement.hex())

        def tell(step: Progress) -> None:
            if die(step.done):
                raise Killed

        peers = tuple(name for name in NAMES if name != me)
        build_program = build or partial(program, self, me)
        record = changes.pop("record", lambda message: None)
        session = Session(me, "server", peers, build_program, own, patience=self.patience, progress=tell, record=record)
        session.links = links = self.links(me, session, **changes)
        self.lines.append((session, links))
        try:
            links.open()
            return session.run()
        finally:
            links.close()
            if store is None:
                own.close()


def program(place: Place, me: str, done: int, state: Mapping[str, Tensor] | None) -> Program[Any]:
    """A toy: holders publish their total, the server sends back the sum; each session has a mask of its own."""
    return _server(place, done, state) if me == "server" else _holder(place, me, done, state)


def _server(place: Place, done: int, state: Mapping[str, Tensor] | None) -> Program[Any]:
    for name in NAMES[1:]:
        mask = torch.frombuffer(bytearray(SecureRandomness().bytes(32)), dtype=torch.uint8).view(1, 32)
        place.masks.append(mask.numpy().tobytes())
        yield Send(name, "mask-keys", mask)
    if state is None:
        yield Checkpoint(0, dict)
    for round in range(done + 1, place.rounds + 1):
        parts: list[Tensor] = []
        for name in NAMES[1:]:
            parts.append(received((yield Receive(name, "embeddings", SHAPE))))
        for name in NAMES[1:]:
            yield Send(name, "embedding-gradient", parts[0] + parts[1])
        yield Checkpoint(round, dict)
    return None


def received(answer: Tensor | None) -> Tensor:
    """What a program gets for `Receive`: always a tensor."""
    assert answer is not None
    return answer


def _holder(place: Place, me: str, done: int, state: Mapping[str, Tensor] | None) -> Program[Any]:
    other = "holder2" if me == "holder1" else "holder1"
    yield Receive("server", "mask-keys", (1, 32))
    total = torch.zeros(SHAPE) if state is None else state["total"]
    if state is None:
        yield Checkpoint(0, partial(dict, total=total))
    for round in range(done + 1, place.rounds + 1):
        yield Send(other, "masked-right", torch.full((3, 3), round))
        rows = total + round
        place.sent.append((me, round, rows.numpy().tobytes()))
        # Before it hears of the other: what keeps it from publishing too early is the session alone.
        yield Send("server", "embeddings", rows)
        yield Receive(other, "masked-right", (3, 3))
        total = total + 1e-3 * received((yield Receive("server", "embedding-gradient", SHAPE)))
        yield Checkpoint(round, partial(dict, total=total))
    return total


class Running:
    """A party in a thread, which starts again after it was killed."""

    def __init__(
        self, place: Place, me: str, *, dies: tuple[int, ...] = (), pause: float = 0.0, **settings: Any
    ) -> None:
        self.error: Exception | None = None
        self.finished: Finished | None = None
        self.deaths = 0
        left = list(dies)

        def die(round: int) -> bool:
            if left and round == left[0]:
                left.pop(0)
                return True
            return False

        def work() -> None:
            while True:
                try:
                    self.finished = place.run(me, die=die, **settings)
                    return
                except Killed:
                    self.deaths += 1
                    time.sleep(pause)
                except Exception as error:
                    self.error = error
                    return

        self._thread = threading.Thread(target=work, daemon=True)
        self._thread.start()

    @property
    def over(self) -> bool:
        return not self._thread.is_alive()

    def wait(self, seconds: float = FOREVER) -> Running:
        self._thread.join(seconds)
        if self._thread.is_alive():
            raise TimeoutError("this party does not end")
        return self

    @property
    def result(self) -> Any:
        if self.error is not None:
            raise self.error
        assert self.finished is not None
        return self.finished.result


def run_all(place: Place, **settings: dict[str, Any]) -> dict[str, Running]:
    """Run the three parties to their ends; keywords are the settings of parties, by name."""
    started = {name: Running(place, name, **settings.get(name, {})) for name in NAMES}
    return {name: running.wait() for name, running in started.items()}
