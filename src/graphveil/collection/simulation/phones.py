"""Made-up phones at a collector that runs on this machine: a rehearsal beside a device of one's own.

Everybody whose token is unused enrols, waits until the epoch opens, and answers with a graph's values. Their reports
are stored like any other, so phones work only with a collector on this machine.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit

from graphveil.collection.desk import TOKENS
from graphveil.collection.service.serving import Place
from graphveil.collection.service.tokens import read_tokens
from graphveil.collection.simulation.played import Cast, Client, Device, report_of, show_task, values_of
from graphveil.collection.task.drafts import refusals
from graphveil.device.errors import DeviceError
from graphveil.device.remote import Remote
from graphveil.device.task import Opening, Task
from graphveil.device.wire import number_of, read
from graphveil.errors import InputError
from graphveil.graphs.load import load_parts
from graphveil.graphs.value.parts import GraphParts
from graphveil.runtime.progress import Progress, ProgressCallback


def run_phones(
    folder: Path, data: str, url: str, cast: Cast, progress: ProgressCallback, tokens: Path | None = None
) -> dict[str, Any]:
    """Let everybody whose token is unused take part in one epoch; return how many enrolled, enrolled elsewhere,
    answered and sent again.

    Args:
        folder: of the organiser.
        data: whose nodes are the people, in the order of the tokens.
        url: of the collector.
        cast: clients, dropouts, retries, seed.
        progress: called with progress.
        tokens: their file; None: in the folder.

    Raises:
        InputError: the collector is on another machine, the data is of other people, or every token is used.
    """
    if not Place(urlsplit(url).hostname or "").is_local:
        raise InputError(f"{url} is another machine", where="--url", allowed="http://localhost:..., a rehearsal")
    with ExitStack() as stack, refusals(url):
        remote, graph = Remote(url), load_parts(data)
        tokens_by_number, task = _tokens(tokens or folder / TOKENS, graph.num_nodes), Task.of(remote.task())
        clients = [stack.enter_context(Client(name, command)) for name, command in cast.clients.items()]
        show_task(task, clients)
        phones = Phones(remote, graph, cast, clients, progress)
        return phones.answer(task, phones.enrol(tokens_by_number))


@dataclass(frozen=True)
class Phones:
    """Made-up phones.

    Args:
        graph: whose nodes the people are.
        clients: which they use in turn.
        wait: sleeps for seconds.
    """

    remote: Remote
    graph: GraphParts
    cast: Cast
    clients: Sequence[Client]
    progress: ProgressCallback
    wait: Callable[[float], None] = time.sleep

    def enrol(self, tokens: Sequence[str]) -> list[Device]:
        """Enrol everybody whose token, by number, is unused; InputError where all tokens are used."""
        devices: list[Device] = []
        for node, token in enumerate(tokens):
            key = os.urandom(32)
            enrolment = self._enrol(token, key)
            if enrolment is not None:
                devices.append(Device(node, *enrolment, self.clients[len(devices) % len(self.clients)], key))
            self.progress(Progress(node + 1, len(tokens), "enrolling"))
        if not devices:
            raise InputError("no token is left", remedy="phones keep nothing: begin another collection")
        return devices

    def answer(self, task: Task, devices: Sequence[Device]) -> dict[str, Any]:
        """Wait for the devices' first epoch, and answer in it; return the counts.

        Args:
            devices: as they enrolled.
        """
        opening, draws = self._await_opening(task, devices[0].joined), Random(self.cast.seed)
        kinds, counts = [field.kind for field in task.fields], Counter[str]()
        for index, device in enumerate(devices):
            if draws.random() >= self.cast.dropouts:
                report = read(report_of(task, opening, device, values_of(self.graph, device.node, kinds)))[0]
                counts.update(self.remote.send(report) for _ in range(2 if draws.random() < self.cast.retries else 1))
            self.progress(Progress(index + 1, len(devices), "answering"))
        elsewhere = task.people - len(devices)
        totals = {"answered": counts["accepted"], "again": counts["again"]}
        return {"phones": len(devices), "elsewhere": elsewhere, **totals}

    def _enrol(self, token: str, key: bytes) -> tuple[int, int] | None:
        """Return number and first epoch, or None where somebody else has used the token."""
        while True:
            try:
                return self.remote.enrol(token, key.hex())
            except DeviceError as error:
                if error.code == "bad-token":
                    return None
                # All phones here share one address, whose requests are limited.
                if error.code != "too-often":
                    raise
            self.wait(1.0)

    def _await_opening(self, task: Task, epoch: int) -> str:
        for seconds in count():
            try:
                data = self.remote.opening()
                if Opening.of(data, task).epoch >= epoch:
                    return data.decode()
            except DeviceError as error:
                if error.code != "no-opening":
                    raise
            self.progress(Progress(seconds, 0, "waiting for the round to open"))
            self.wait(1.0)
        raise AssertionError("seconds never end")


def _tokens(path: Path, people: int) -> list[str]:
    try:
        # By number and not by line: an organiser's own file may list people in any order.
        tokens = [token.hex() for _, token in sorted(read_tokens(path), key=lambda row: number_of(row[1]))]
    except OSError as error:
        remedy = "make them: `graphveil collect enrol FOLDER`, or name the file that holds them: --tokens FILE"
        raise InputError(f"{path} holds no tokens", remedy=remedy) from error
    if len(tokens) != people:
        raise InputError(f"{len(tokens):,} tokens, and {people:,} nodes", where=str(path))
    return tokens


#: The program of `clients/js`, as built there.
LINES = Path(__file__).with_name("lines.mjs")


def commands_of(names: str, js: Path | None = None) -> dict[str, Sequence[str]]:
    """Return the command that starts each client; InputError for another name, one twice, or a missing program.

    Args:
        names: python, js or both, with a comma.
        js: a program to use in place of our JavaScript client.
    """
    clients = [name.strip() for name in names.split(",")]
    for name in clients:
        if name not in ("python", "js"):
            raise InputError(f"unknown client '{name}'", where="--clients", allowed="python, js")
    if len(set(clients)) < len(clients):
        raise InputError(f"{names!r} names a client twice", where="--clients", allowed="python, js, or python,js")
    return {
        name: _javascript(js or LINES) if name == "js" else [sys.executable, "-m", "graphveil.device", "lines"]
        for name in clients
    }


def _javascript(program: Path) -> Sequence[str]:
    node = shutil.which("node")
    if node is None:
        raise InputError("Node.js is not installed", where="--clients js", remedy="install Node.js 20 or later")
    if not program.is_file():
        raise InputError(f"{program} is no file", where="--js", remedy="leave the option out: our client is installed")
    return [node, str(program)]
