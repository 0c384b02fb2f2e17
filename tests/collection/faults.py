"""Servers in processes of their own that are killed at any moment, and clients that send until they are told.

`test_faults.py` kills 50 times, `benchmarks/kills.py` as often as it is told.
"""

from __future__ import annotations

import http.client
import json
import multiprocessing
import random
import resource
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from sqlalchemy import select

from graphveil.collection.service.service import Collector
from graphveil.collection.service.serving import Place, listening, server_of
from graphveil.collection.store.store import Store
from graphveil.collection.store.tables import REPORTS, opened
from graphveil.device.wire import read, report
from tests.collection.collections import Collection, begun, key, secret
from tests.federation.ports import free_ports
from tests.on_device.signing import label
from tests.waiting import in_threads, until

SENDERS = 3


def serve(url: str, place: Place) -> None:
    """Serve a collection until this process is killed."""
    with listening(place) as own:
        server_of(Collector(Store(opened(url)), requests=1e6, burst=1e6), place).run(sockets=[own])


class Server:
    """A server in a process of its own; all of a test are forks of one that has imported everything."""

    def __init__(self, url: str, place: Place | None = None) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([__name__])
        self.url, self.port = url, free_ports(1)[0]
        self._place = replace(place or Place(), port=self.port)
        self.start()

    def start(self) -> None:
        self._process = self._context.Process(target=serve, args=(self.url, self._place), daemon=True)
        self._process.start()

    def limit(self, what: int, most: int) -> None:
        """Let it have so much of something, -1 for any."""
        assert self._process.pid is not None
        hard = resource.prlimit(self._process.pid, what)[1]
        resource.prlimit(self._process.pid, what, (most, hard))

    @property
    def memory(self) -> float:
        """Of the process, in MB, as the system counts it."""
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        return pages * resource.getpagesize() / 1e6

    def kill(self) -> None:
        self._process.kill()
        self._process.join()


def answers_of(port: int, data: bytes) -> list[str] | None:
    """What a server says of reports, or None where it is gone before it has said it."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("POST", "/reports", data)
        answer = json.loads(connection.getresponse().read())
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()
    return list(answer["answers"]) if "answers" in answer else [answer["code"]]


def bodies(running: Collection) -> list[bytes]:
    """A report of nothing from everybody."""
    empty = bytes(-(-running.task.bits // 8))
    return [report(running.task.hash, 1, empty, secret(n), key(n)).to_bytes() for n in range(running.task.people)]


@contextmanager
def serving(url: str, people: int) -> Iterator[tuple[Server, list[bytes]]]:
    """A server that answers, in a process of its own, and a report of everybody."""
    running = begun(url, label(), people=people, enrolled=people)
    running.store.engine.dispose()  # no connection of ours may live on in a fork
    each, server = bodies(running), Server(url)
    until(lambda: answers_of(server.port, each[0]) is not None)
    yield server, each
    server.kill()


@dataclass
class Round:
    """One collection whose server is killed some times."""

    url: str
    kills: int
    people: int

    def __post_init__(self) -> None:
        self.acknowledged: Counter[int] = Counter()
        self.codes: Counter[str] = Counter()

    def run(self, dice: random.Random) -> None:
        """Kill a server while senders send each report until it is acknowledged, and then the next one."""
        running = begun(self.url, label(), people=self.people, enrolled=self.people)
        running.store.engine.dispose()  # no connection of ours may live on in a fork
        self.each, self.server = bodies(running), Server(self.url)
        shares = [range(first, self.people, SENDERS) for first in range(SENDERS)]
        with in_threads(self._send, shares):
            for _ in range(self.kills):
                self._kill(dice)
        self.server.kill()

    def faults(self) -> list[str]:
        """Return what is wrong: what was acknowledged and is not there once, as it was sent."""
        wrong = [f"{code}: {count}" for code, count in self.codes.items() if code not in ("accepted", "again")]
        with opened(self.url).connect() as connection:
            rows = connection.execute(select(REPORTS.c.number, REPORTS.c.body)).all()
        rows_of = Counter(row.number for row in rows)
        wrong += [
            f"{n} acknowledged {self.acknowledged[n]} times" for n in range(self.people) if self.acknowledged[n] != 1
        ]
        wrong += [f"{n} kept {rows_of[n]} times" for n in range(self.people) if rows_of[n] != 1]
        wrong += [f"{n} kept otherwise" for n, body in rows if body != read(self.each[n])[0].body]
        return wrong

    def _send(self, numbers: range) -> None:
        for number in numbers:
            while not (codes := answers_of(self.server.port, self.each[number])):
                time.sleep(0.01)
            self.codes.update(codes)
            self.acknowledged[number] += codes[0] in ("accepted", "again")

    def _kill(self, dice: random.Random) -> None:
        # Some kills strike at once, others after requests have been answered.
        done = self.acknowledged.total()
        goal = min(done + dice.randrange(self.people // self.kills), self.people)
        until(lambda: self.acknowledged.total() >= goal)
        time.sleep(dice.random() * 0.02)
        self.server.kill()
        self.server.start()
