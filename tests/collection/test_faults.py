"""A server that is killed at any moment: what it acknowledged stands, once, and what it did not can be sent again."""

from __future__ import annotations

import http.client
import json
import multiprocessing
import random
import resource
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import func, select

from graphveil.collection.service import Collector
from graphveil.collection.serving import Place, listening, server_of
from graphveil.collection.store import Store
from graphveil.collection.tables import REPORTS, opened
from graphveil.device.wire import report
from tests.collection.collections import Collection, begun, key, secret, url_of
from tests.collection.postgresql import Postgres, postgresql
from tests.on_device.signing import label

KILLS, PEOPLE, SENDERS = 50, 600, 3
#: Seconds after which what never ends is given up.
FOREVER = 300.0


def serve(url: str, port: int) -> None:
    """Serve a collection until this process is killed."""
    with listening(Place(port=port)) as own:
        server_of(Collector(Store(opened(url)), requests=1e6, burst=1e6), Place()).run(sockets=[own])


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Server:
    """A server in a process of its own; all of a test are forks of one that has imported everything."""

    def __init__(self, url: str) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([__name__])
        self.url, self.port = url, free_port()
        self.start()

    def start(self) -> None:
        self._process = self._context.Process(target=serve, args=(self.url, self.port), daemon=True)
        self._process.start()

    def limit(self, what: int, most: int) -> None:
        """Let it have so much of something, -1 for any."""
        assert self._process.pid is not None
        hard = resource.prlimit(self._process.pid, what)[1]
        resource.prlimit(self._process.pid, what, (most, hard))

    def kill(self) -> None:
        self._process.kill()
        self._process.join()


def answers_of(port: int, data: bytes) -> list[str] | None:
    """What a server says of reports, or None where it is gone before it has said it."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("POST", "/reports", data)
        told = json.loads(connection.getresponse().read())
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()
    return list(told["answers"]) if "answers" in told else [told["code"]]


def until(ready: Callable[[], bool]) -> None:
    end = time.monotonic() + FOREVER
    while not ready():
        assert time.monotonic() < end, "this never comes about"
        time.sleep(0.01)


def bodies(running: Collection) -> list[bytes]:
    """A report of nothing from everybody."""
    empty = bytes(-(-running.task.bits // 8))
    return [report(running.task.hash, 1, empty, secret(n), key(n)).to_bytes() for n in range(running.task.people)]


@pytest.mark.slow
def test_what_was_acknowledged_is_counted_once_through_kills(tmp_path: Path) -> None:
    """Senders go on to the next report when one is acknowledged, and send it again until it is."""
    running = begun(url_of(tmp_path), label(), people=PEOPLE, enrolled=PEOPLE)
    running.store.engine.dispose()  # no connection of ours may live on in a fork
    each, server = bodies(running), Server(url_of(tmp_path))
    acknowledged: Counter[int] = Counter()
    codes: Counter[str] = Counter()
    dice = random.Random(0)

    def send(numbers: range) -> None:
        for number in numbers:
            while not (told := answers_of(server.port, each[number])):
                time.sleep(0.01)
            codes.update(told)
            acknowledged[number] += told[0] in ("accepted", "again")

    senders = [threading.Thread(target=send, args=(range(k, PEOPLE, SENDERS),), daemon=True) for k in range(SENDERS)]
    for sender in senders:
        sender.start()
    for _ in range(KILLS):
        # Some kills strike at once, others after requests have been answered.
        goal = min(sum(acknowledged.values()) + dice.randrange(PEOPLE // KILLS), PEOPLE)
        until(lambda goal=goal: sum(acknowledged.values()) >= goal)  # type: ignore[misc]
        time.sleep(dice.random() * 0.02)
        server.kill()
        server.start()
    for sender in senders:
        sender.join(FOREVER)
    server.kill()
    assert set(codes) <= {"accepted", "again"} and len(acknowledged) == PEOPLE == sum(acknowledged.values())
    with opened(url_of(tmp_path)).connect() as connection:
        counted = connection.execute(select(REPORTS.c.number, func.count()).group_by(REPORTS.c.number)).all()
    assert sorted(map(tuple, counted)) == [(number, 1) for number in range(PEOPLE)]


@pytest.mark.slow
def test_a_postgresql_that_is_killed_and_started_again_has_what_was_acknowledged() -> None:
    """Killed twice under load; meanwhile the server answers, and nobody starts it again."""
    with postgresql(durable=True) as database:
        url = database.url("killed")
        running = begun(url, label(), people=PEOPLE, enrolled=PEOPLE)
        running.store.engine.dispose()
        each, server = bodies(running), Server(url)
        codes: Counter[str] = Counter()
        slowest = [0.0]

        def send(numbers: range) -> None:
            for number in numbers:
                told: list[str] | None = None
                while not told or told[0] not in ("accepted", "again"):
                    asked_at = time.monotonic()
                    told = answers_of(server.port, each[number])
                    slowest[0] = max(slowest[0], time.monotonic() - asked_at)
                    codes.update(told or ["nothing"])
                    time.sleep(0.0 if told and told[0] == "accepted" else 0.05)

        senders = [
            threading.Thread(target=send, args=(range(k, PEOPLE, SENDERS),), daemon=True) for k in range(SENDERS)
        ]
        until(lambda: answers_of(server.port, each[0]) is not None)
        for sender in senders:
            sender.start()
        for end in (database.kill, database.stop):
            before = codes["accepted"]
            until(lambda before=before: codes["accepted"] > before + PEOPLE // 10)  # type: ignore[misc]
            end()
            refused = codes["busy"]
            until(lambda refused=refused: codes["busy"] > refused)  # type: ignore[misc]
            until(lambda: starts(database))
        for sender in senders:
            sender.join(FOREVER)
        server.kill()
        # One may be counted as sent again: its answer was lost with the database that had stored it.
        assert set(codes) <= {"accepted", "again", "busy"} and codes["busy"] and slowest[0] < 20.0
        with opened(url).connect() as connection:
            numbers = connection.execute(select(REPORTS.c.number).order_by(REPORTS.c.number)).scalars().all()
        assert list(numbers) == list(range(PEOPLE))


def starts(database: Postgres) -> bool:
    """Start it, where what was killed has let go of its memory."""
    try:
        database.start()
    except subprocess.CalledProcessError:
        return False
    return True


def test_a_disk_that_is_full_takes_nothing_and_recovers(tmp_path: Path) -> None:
    """The system lets files grow no further: nothing is acknowledged that is not stored, and no restart is needed."""
    running = begun(url_of(tmp_path), label(), people=60, enrolled=60)
    running.store.engine.dispose()
    each, server = bodies(running), Server(url_of(tmp_path))
    until(lambda: answers_of(server.port, each[0]) is not None)
    server.limit(resource.RLIMIT_FSIZE, (tmp_path / "collection.db-wal").stat().st_size + (1 << 15))
    found = Counter(code for one in each for code in answers_of(server.port, one) or ["nothing"])
    assert set(found) == {"again", "accepted", "disk-full"}, found
    server.limit(resource.RLIMIT_FSIZE, -1)
    after = Counter(code for one in each for code in answers_of(server.port, one) or ["nothing"])
    assert after == {"again": found["accepted"] + 1, "accepted": found["disk-full"]}
    server.kill()
    with opened(url_of(tmp_path)).connect() as connection:
        assert connection.execute(select(func.count()).select_from(REPORTS)).scalar_one() == len(each)
