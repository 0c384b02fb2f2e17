"""What loads a collector in `collector.py` and `kills.py`: a collection, its servers, and clients that keep time.

python benchmarks/collector_load.py serve URL PORT      our collector
python benchmarks/collector_load.py plain URL PORT      a JSON route that commits each request
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import os
import resource
import socket
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import uvloop
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import insert

from graphveil.collection.store.store import Store
from graphveil.collection.store.tables import COUNTS, ENROLMENTS, opened
from graphveil.collection.task.declare import Prices, Words, signed_task, task_facts
from graphveil.device.task import Task
from graphveil.device.wire import VERSION, enrolment_id
from graphveil.graphs import GraphSchema

COLUMNS, CLASSES, AT_ONCE = 1_433, 4, 1 << 14
HERE = Path(__file__).parent


def key(number: int) -> bytes:
    """Return the key of a person's device."""
    return b"key" + number.to_bytes(29, "big")


def collection(url: str, people: int) -> Task:
    """Begin a collection of 1,433 features and a label, epsilon 1 each, with everybody enrolled and an epoch open."""
    ids = [str(number) for number in range(people)]
    names = tuple(f"f{place}" for place in range(COLUMNS))
    schema = GraphSchema("load", COLUMNS, 0.0, 1.0, tuple("abcd"), False, ("features", "labels"), "made up for a load")
    prices, words = Prices(features="1", label="1"), Words(name="load", organiser="o", purpose="p", contact="c")
    facts = task_facts(schema, names, ids, prices, words, opens=0, closes=1 << 33, least=5)
    task, store = signed_task(facts, Ed25519PrivateKey.generate()), Store(opened(url))
    store.begin(task, ((item, number.to_bytes(20, "big")) for number, item in enumerate(ids)))
    for first in range(0, people, AT_ONCE):
        columns = ENROLMENTS.columns.keys()
        rows = [(n, enrolment_id(task.hash, key(n)), key(n), 1) for n in range(first, min(people, first + AT_ONCE))]
        with store.engine.begin() as connection:
            # As the driver takes them: this is not what is measured.
            reply = rows if connection.dialect.positional else [dict(zip(columns, row, strict=True)) for row in rows]
            connection.exec_driver_sql(str(insert(ENROLMENTS).compile(store.engine)), reply)
    with store.engine.begin() as connection:
        # What enrolling one by one would have counted.
        connection.execute(insert(COUNTS), {"kind": "enrolled", "epoch": 1, "hour": 0, "writer": 0, "count": people})
    store.open_epoch(bytes(16))
    store.engine.dispose()
    return task


@dataclass(frozen=True)
class Maker:
    """Makes reports with right tags, as cheaply as they can be made.

    Args:
        task: of the collection.
    """

    task: Task

    def report(self, number: int) -> bytes:
        """Return a person's report."""
        # A flag and a bit of the features, a flag and two bits of the label: every such byte is an answer.
        body = bytes([0b10100000 | (number & 1) << 6 | (number >> 1 & 3) << 3])
        who, id = enrolment_id(self.task.hash, key(number)), b"report" + number.to_bytes(10, "big")
        reply = bytes([VERSION]) + self.task.hash + id + who + b"\0\0\0\1" + body
        return reply + hmac.digest(key(number), reply + b"\0\0\0\1", "sha256")

    def plain(self, number: int) -> dict[str, Any]:
        """Return the same for the plain server."""
        body = f"{number & 7:02x}"
        return {"number": number, "body": body, "tag": hmac.digest(key(number), body.encode(), "sha256").hex()}


def requests(maker: Maker, numbers: Iterable[int], size: int, *, plain: bool = False) -> Iterator[bytes]:
    """Yield HTTP requests of as many reports each."""
    part: list[int] = []
    head = "POST /reports HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/{}\r\ncontent-length: {}\r\n\r\n"
    for number in [*numbers] if not isinstance(numbers, np.ndarray) else numbers:
        part.append(int(number))
        if len(part) == size:
            if plain:
                body = json.dumps({"reports": [maker.plain(item) for item in part]}).encode()
            else:
                body = b"".join([maker.report(item) for item in part])
            yield head.format("json" if plain else "octet-stream", len(body)).encode() + body
            part = []


class Connection(asyncio.Protocol):
    """One connection that asks one thing at a time."""

    def __init__(self) -> None:
        self.data, self.answer = b"", asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        """Keep the transport."""
        self.transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        """Tell whoever waits."""
        if not self.answer.done():
            self.answer.set_exception(ConnectionError("closed"))

    def data_received(self, data: bytes) -> None:
        """Gather an answer."""
        self.data += data
        head, separator, body = self.data.partition(b"\r\n\r\n")
        if not separator:
            return
        at = head.lower().find(b"content-length:")
        done = body.endswith(b"0\r\n\r\n") if at < 0 else len(body) >= int(head[at + 15 :].split(b"\r\n", 1)[0])
        if done and not self.answer.done():
            self.answer.set_result((int(head[9:12]), body))
            self.data = b""

    async def ask(self, data: bytes) -> tuple[int, bytes]:
        """Send a request; return status and body."""
        self.answer = asyncio.get_running_loop().create_future()
        self.transport.write(data)
        return await self.answer


@dataclass
class Seen:
    """What clients saw: seconds of each request, codes of each report, from when to when."""

    seconds: list[float] = field(default_factory=list)
    codes: Counter[str] = field(default_factory=Counter)
    wall: float = 0.0
    cpu: float = 0.0

    def percentile(self, which: float) -> float:
        """Return milliseconds."""
        return float(np.percentile(self.seconds, which)) * 1e3


def codes_of(status: int, body: bytes) -> Counter[str]:
    """Return how many reports were answered how; a plain request by its status."""
    start = body.find(b"{")
    reply = json.loads(body[start : body.rfind(b"}") + 1]) if start >= 0 else {}
    if "answers" in reply:
        return Counter(reply["answers"])
    return Counter([reply.get("code", str(status))])


async def _load(port: int, bodies: Iterator[bytes], connections: int, rate: float | None) -> Seen:
    seen, loop = Seen(), asyncio.get_running_loop()
    start, numbers = time.perf_counter(), iter(range(1 << 62))

    async def work() -> None:
        _, item = await loop.create_connection(Connection, "127.0.0.1", port)
        for data in bodies:
            # From when it was due, not from when it could be sent: waiting for a late server counts.
            due = start + next(numbers) / rate if rate else time.perf_counter()
            if (wait := due - time.perf_counter()) > 0:
                await asyncio.sleep(wait)
            reply = await item.ask(data)
            seen.seconds.append(time.perf_counter() - due)
            seen.codes.update(codes_of(*reply))
        item.transport.close()

    cpu = time.process_time()
    await asyncio.gather(*(work() for _ in range(connections)))
    seen.wall, seen.cpu = time.perf_counter() - start, time.process_time() - cpu
    return seen


def load(port: int, bodies: Iterator[bytes], connections: int, rate: float | None = None) -> Seen:
    """Send requests over some connections: as fast as they are answered, or as many a second."""
    return uvloop.run(_load(port, bodies, connections, rate))


def free_port() -> int:
    """Return a port that is free."""
    with socket.socket() as item:
        item.bind(("127.0.0.1", 0))
        return int(item.getsockname()[1])


def usage(process: int) -> tuple[float, float]:
    """Return the CPU seconds of a process so far, and the most memory it had, in MB."""
    ticks = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    most = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    return (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK"), most / 1024


@contextmanager
def server(kind: str, url: str, files: int | None = None) -> Iterator[tuple[int, int]]:
    """Run a server; give its port and its process; `files` bounds its descriptors."""
    port = free_port()
    process = subprocess.Popen([sys.executable, __file__, kind, url, str(port), *([str(files)] if files else [])])
    try:
        while socket.socket().connect_ex(("127.0.0.1", port)):
            assert process.poll() is None, "the server ended"
            time.sleep(0.05)
        yield port, process.pid
    finally:
        process.terminate()
        process.wait()


def _serve(url: str, port: int) -> None:
    from graphveil.collection.service.service import Collector
    from graphveil.collection.service.serving import Place, listening, run, server_of

    place = Place(port=port)
    with listening(place) as own:
        run(server_of(Collector(Store(opened(url)), requests=1e9, burst=1e9), place), own)


def _plain(url: str, port: int) -> None:
    import uvicorn
    from fastapi import FastAPI
    from pydantic import BaseModel

    class Report(BaseModel):
        number: int
        body: str
        tag: str

    class Reports(BaseModel):
        reports: list[Report]

    connection = sqlite3.connect(url.removeprefix("sqlite:///"), check_same_thread=False)
    connection.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;")
    connection.execute("CREATE TABLE plain (number INTEGER PRIMARY KEY, digest BLOB, body TEXT)")
    app = FastAPI()

    async def take(bodies: Reports) -> dict[str, list[str]]:
        answers = []
        for item in bodies.reports:
            right = hmac.compare_digest(item.tag, hmac.digest(key(item.number), item.body.encode(), "sha256").hex())
            row = (item.number, hashlib.sha256(item.body.encode()).digest()[:16], item.body)
            done = right and connection.execute("INSERT OR IGNORE INTO plain VALUES (?, ?, ?)", row).rowcount
            answers.append("accepted" if done else "refused")
        connection.commit()
        return {"answers": answers}

    # Types that were made here: the framework looks for their names in the module.
    take.__annotations__["asked"] = Reports
    app.post("/reports")(take)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="critical", access_log=False)


if __name__ == "__main__":
    if len(sys.argv) == 5:
        resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[4]),) * 2)
    {"serve": _serve, "plain": _plain}[sys.argv[1]](sys.argv[2], int(sys.argv[3]))
