"""A whole collection played over the network on this machine: organiser, collector, and a device for each person.

Everything but the export is thrown away: keys, tokens, secrets and the database exist only for the play, under a task
of its own, so that no made-up report can ever count in the collection that it tries out.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from graphveil.collection.desk import TOKENS, Desk, require_extra
from graphveil.collection.service.door import Receive, Scope, Send
from graphveil.collection.service.service import Collector
from graphveil.collection.service.serving import Place, address, listening, server_of
from graphveil.collection.task.drafts import TASK, Draft, read_draft, refusals, write_draft
from graphveil.device.remote import Remote
from graphveil.device.task import Task
from graphveil.device.wire import read
from graphveil.errors import InputError
from graphveil.files.outputs import Output
from graphveil.files.writing import whole_file
from graphveil.graphs.load import load_parts
from graphveil.graphs.value.parts import GraphParts, SparseRows
from graphveil.runtime.progress import Progress, ProgressCallback

#: The window of a play's task.
_WINDOW = {"opens": "2026-01-01", "closes": "2099-01-01"}
#: The file of public edges.
_EDGES = "edges.parquet"


@dataclass(frozen=True)
class Cast:
    """Who plays.

    Args:
        people: how many enrol; None: all.
        clients: commands that answer lines of the standard, by name, used in turn.
        dropouts: share of people who enrol and never answer.
        retries: share of those who answer whose acknowledgement is lost, and who send again.
        seed: of who does what; it never changes noise.
        epochs: how many.
        changed: share whose values change in each epoch after the first.
        late: share who enrol after the first epoch.
    """

    people: int | None
    clients: Mapping[str, Sequence[str]]
    dropouts: float = 0.1
    retries: float = 0.1
    seed: int = 0
    epochs: int = 1
    changed: float = 0.0
    late: float = 0.0

    def of(self, people: int) -> int:
        """Return how many enrol of so many people."""
        return people if self.people is None else self.people


@dataclass(frozen=True)
class Device:
    """A person's device in a play; number and joined are the collector's, secret and key its own."""

    node: int
    number: int
    joined: int
    client: Client
    key: bytes = field(repr=False)
    secret: bytes = field(default_factory=lambda: os.urandom(32), repr=False)


class Client:
    """A program that answers lines of the standard.

    Raises:
        InputError: it does not start.
    """

    def __init__(self, name: str, command: Sequence[str]) -> None:
        self.name = name
        try:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        except OSError as error:
            raise InputError(f"{command[0]} does not start ({error.strerror})", where=f"--clients {name}") from error

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        # Closing its input ends it; its remaining output is discarded.
        self._process.communicate()

    def ask(self, **line: object) -> dict[str, Any]:
        """Return the program's answer to a line; InputError where it refuses, or has ended."""
        assert self._process.stdin is not None and self._process.stdout is not None
        reply = ""
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(line) + "\n")
            self._process.stdin.flush()
            reply = self._process.stdout.readline()
        result: dict[str, Any] = json.loads(reply) if reply else {"error": "it has ended"}
        if "error" in result:
            raise InputError(f"the client '{self.name}' refuses {line['op']} ({result['error']})")
        return result


class SpreadAddresses:
    """A collector to which each connection comes from an address of its own, as those of phones do."""

    def __init__(self, inner: Collector) -> None:
        self._inner = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # All clients are on this machine, and the requests of one address are limited.
        if scope["type"] == "http" and scope.get("client"):
            port = int(scope["client"][1])
            scope = {**scope, "client": (f"10.0.{port >> 8}.{port & 255}", port)}
        await self._inner(scope, receive, send)


def play(
    folder: Path, data: str, cast: Cast, progress: ProgressCallback, *, out: Output | None = None
) -> dict[str, Any]:
    """Play a collection from enrolment to export; return how many enrolled, dropped out, answered and sent again, by
    client; the refusals; the hash of the epoch.

    Args:
        folder: with the draft of the task, signed or not; it is not changed.
        data: whose nodes are the people.
        progress: called with progress.
        out: where to write the export; None: nowhere.

    Raises:
        InputError: the draft has no price, or other people than the data.
    """
    require_extra()
    draft, graph = read_draft(folder), load_parts(data)
    _require_fit(draft, graph, cast, data)
    start = time.monotonic()
    # In a temporary folder: a play's secrets are worth nothing, but look like real ones.
    with tempfile.TemporaryDirectory() as play_folder, ExitStack() as stack:
        desk = _signed(draft, Path(play_folder), cast)
        clients = [stack.enter_context(Client(name, command)) for name, command in cast.clients.items()]
        with served(desk) as url:
            stage = _Stage(desk, Remote(url), graph, cast, progress)
            facts = stage.play(clients)
        facts["refused"] = desk.status()["refused"]
        if out is not None:
            facts["folder"] = out.write(desk.export)["folder"]
            facts |= _with_edges(draft, graph, out.path)
    return {"simulation": True, "data": data, **facts, "seconds": round(time.monotonic() - start, 3)}


@contextmanager
def served(desk: Desk) -> Iterator[str]:
    """Run the collector of a signed task in a thread of this process; yield its address."""
    place = Place(port=0)
    with desk.store() as store, listening(place) as listener:
        server = server_of(SpreadAddresses(Collector(store)), place)
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        try:
            yield address(listener, place)
        finally:
            server.should_exit = True
            thread.join()


def values_of(graph: GraphParts, node: int, kinds: Sequence[str]) -> dict[str, object]:
    """Return a person's own values, by kind of field; an unknown label is left out.

    Args:
        kinds: of the task's fields.
    """
    # The only function that reads the values: its result goes to one device, and to nobody else.
    values: dict[str, object] = {}
    if "features" in kinds:
        values["features"] = _row(graph.x, node).tolist()
    if "label" in kinds and graph.y[node] >= 0:
        values["label"] = graph.schema.classes[int(graph.y[node])]
    if "links" in kinds or "degree" in kinds:
        # Edges are sorted by their first ends, so a person's list is one slice.
        first, last = np.searchsorted(graph.edge_index[0], [node, node + 1])
        values["links"] = graph.edge_index[1, first:last].tolist()
    return values


def _row(x: np.ndarray | SparseRows, node: int) -> np.ndarray:
    if not isinstance(x, SparseRows):
        return np.asarray(x[node])
    row = np.zeros(x.shape[1], np.float32)
    part = slice(x.starts[node], x.starts[node + 1])
    row[x.columns[part]] = x.values[part]
    return row


def _with_edges(draft: Draft, graph: GraphParts, out: Path) -> dict[str, str]:
    """Write edges by ids, for `graphveil train METHOD FOLDER --edges FILE`, beside the export where they are public."""
    import polars

    if draft.prices.links is not None or draft.prices.degree is not None or "edges" in graph.schema.private:
        return {}
    source, target = graph.edge_index
    # The arrays hold both directions; one row is enough for an undirected edge.
    listed = np.ones(len(source), np.bool_) if graph.schema.directed else source < target
    names = np.array(draft.subject.ids, dtype=np.object_)
    table = polars.DataFrame({"source": names[source[listed]].tolist(), "target": names[target[listed]].tolist()})
    with whole_file(out / _EDGES) as file:
        table.write_parquet(file)
    return {"edges": str(out / _EDGES)}


def _require_fit(draft: Draft, graph: GraphParts, cast: Cast, data: str) -> None:
    people = len(draft.subject.ids)
    # Numbers and not ids are compared: ids of a task are texts, and those of a graph may be numbers.
    if graph.num_nodes != people:
        raise InputError(f"{data} has {graph.num_nodes:,} nodes, and the task is for {people:,} people")
    if cast.of(people) > people:
        raise InputError(f"--people {cast.people:,}", allowed=f"1 to {people:,}, the people of the task")
    if not draft.asks:
        raise InputError("price missing", where=TASK, remedy="fill in what is asked, and at which epsilon")
    if draft.prices.label is not None and graph.y.ndim == 2:
        raise InputError(f"{data} has several labels a node", allowed="one class a person")


def _signed(draft: Draft, folder: Path, cast: Cast) -> Desk:
    """Return a desk whose task has the same fields, is marked as a simulation, and is another task by its nonce."""
    words = replace(draft.words, name=f"simulation of {draft.words.name}")
    texts = {name: getattr(words, name) or "(simulation)" for name in ("name", "organiser", "purpose", "contact")}
    # The window is open in any case: a collection is tried out before it begins.
    least = min(draft.least or 1, cast.of(len(draft.subject.ids)))
    write_draft(folder, draft.subject, {**texts, **_WINDOW, "least": least, "public": list(words.public)}, draft.prices)
    desk = Desk(folder)
    desk.sign()
    desk.enrol()
    return desk


@dataclass(frozen=True)
class _Stage:
    """Plays a collection, whose desk has a signed task and whose remote serves it."""

    desk: Desk
    remote: Remote
    graph: GraphParts
    cast: Cast
    progress: ProgressCallback

    def play(self, clients: Sequence[Client]) -> dict[str, Any]:
        """Play all epochs; return the counts, and the hash of the last epoch."""
        task, counts = Task.of(self.remote.task()), Counter[str]()
        show_task(task, clients)
        # The node whose values each person has: at first their own; a change lasts until the next one.
        source_of, devices, hash = {node: node for node in range(task.people)}, list[Device](), ""
        for epoch, nodes in enumerate(self._arrivals(task.people)):
            # All enrol before the first answer, as in a real collection: the nonce is drawn after the last token.
            devices += self._enrol(nodes, clients, len(devices))
            if epoch:
                # Some of those who took part before get the values of somebody else.
                draws = Random(self.cast.seed + 1000 * epoch)
                for device in devices:
                    if device.joined <= epoch and draws.random() < self.cast.changed:
                        source_of[device.node] = draws.randrange(task.people)
                        counts["changed"] += 1
            self.desk.open()
            counts += self._answer(task, devices, source_of, epoch)
            hash = self.desk.close()["hash"]
        by_client = {client.name: counts[f"by {client.name}"] for client in clients}
        # With several epochs a person may answer one and not the next: the export says how many never answered.
        extra = {"epochs": self.cast.epochs, "changed": counts["changed"]}
        if self.cast.epochs == 1:
            extra = {"dropped": len(devices) - sum(by_client.values())}
        answers = {"answered": counts["accepted"], "again": counts["again"]}
        return {"enrolled": len(devices), **extra, **answers, "clients": by_client, "hash": hash}

    def _arrivals(self, people: int) -> list[list[int]]:
        """Return the nodes that enrol before each epoch."""
        nodes = sorted(Random(self.cast.seed).sample(range(people), self.cast.of(people)))
        if self.cast.epochs == 1:
            return [nodes]
        draws = Random(self.cast.seed + 2)
        late = {node for node in nodes if draws.random() < self.cast.late}
        first = [node for node in nodes if node not in late]
        return [first, sorted(late), *([] for _ in range(self.cast.epochs - 2))]

    def _enrol(self, nodes: Sequence[int], clients: Sequence[Client], before: int) -> Iterator[Device]:
        with (self.desk.folder / TOKENS).open(newline="", encoding="utf-8") as file:
            tokens = [row["token"] for row in csv.DictReader(file)]
        for index, node in enumerate(nodes):
            key = os.urandom(32)
            with refusals("enrolment"):
                number, joined = self.remote.enrol(tokens[node], key.hex())
            yield Device(node, number, joined, clients[(before + index) % len(clients)], key)
            self.progress(Progress(index + 1, len(nodes), "enrolling"))

    def _answer(self, task: Task, devices: Sequence[Device], source_of: Mapping[int, int], epoch: int) -> Counter[str]:
        opening, draws = self.remote.opening().decode(), Random(self.cast.seed + 1 + 1000 * epoch)
        kinds, counts = [task_field.kind for task_field in task.fields], Counter[str]()
        for index, device in enumerate(devices):
            # A person who drops out has enrolled and sends nothing: their report is missing, not zero.
            if draws.random() >= self.cast.dropouts:
                values = values_of(self.graph, source_of[device.node], kinds)
                links = values.get("links")
                # With somebody else's values a person could be linked to themselves.
                if isinstance(links, list):
                    values["links"] = [node for node in links if node != device.node]
                report = report_of(task, opening, device, values)
                # Byte for byte the same: without an acknowledgement a device sends again, and is counted once.
                times = 2 if draws.random() < self.cast.retries else 1
                with refusals("report"):
                    counts.update(self.remote.send(read(report)[0]) for _ in range(times))
                counts[f"by {device.client.name}"] += 1
            self.progress(Progress(index + 1, len(devices), "answering"))
        return counts


def show_task(task: Task, clients: Sequence[Client]) -> None:
    """Send a task to clients, each of which checks signature, hash and thresholds itself."""
    for client in clients:
        client.ask(op="task", data=task.data.decode(), expected=task.hash.hex())


def report_of(task: Task, opening: str, device: Device, values: Mapping[str, object]) -> bytes:
    """Return the report that a device's program makes of a person's values.

    Args:
        opening: the signed one.
        values: see `values_of`.
    """
    task_line = {"task": task.hash.hex()}
    secret = device.secret.hex()
    opened = device.client.ask(op="opening", **task_line, data=opening, joined=device.joined)
    person = {"number": device.number, "nonce": opened["nonce"], "secret": secret}
    body = device.client.ask(op="answer", **task_line, **person, values=values)["body"]
    report_line = {"epoch": opened["epoch"], "body": body, "secret": secret, "key": device.key.hex()}
    return bytes.fromhex(device.client.ask(op="report", **task_line, **report_line)["data"])
