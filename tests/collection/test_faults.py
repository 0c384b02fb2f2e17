"""A server that is killed at any moment: what it acknowledged stands, once, and what it did not can be sent again."""

from __future__ import annotations

import http.client
import json
import multiprocessing
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import uvicorn
from sqlalchemy import func, select

from graphveil.collection.service import Collector
from graphveil.collection.store import Store
from graphveil.collection.tables import REPORTS, opened
from graphveil.device.wire import report
from tests.collection.collections import Collection, begun, key, secret, url_of
from tests.collection.test_service import asked, served
from tests.on_device.signing import label

KILLS, PEOPLE, SENDERS = 50, 600, 3
#: Seconds after which what never ends is given up.
FOREVER = 300.0


def serve(url: str, port: int) -> None:
    """Serve a collection until this process is killed."""
    collector = Collector(Store(opened(url)), requests=1e6, burst=1e6)
    uvicorn.run(collector, host="127.0.0.1", port=port, log_level="critical", log_config=None, access_log=False)


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


def test_a_disk_that_is_full_takes_nothing_and_recovers(tmp_path: Path) -> None:
    """SQLite's own limit of pages stands for the disk: nothing is acknowledged that is not stored."""
    running = begun(url_of(tmp_path), label(), people=PEOPLE, enrolled=PEOPLE)
    each, collector = bodies(running), Collector(running.store, requests=1e6, burst=1e6)

    def pages(most: int) -> None:
        with running.store.engine.connect() as connection:
            connection.exec_driver_sql(f"PRAGMA max_page_count={most}")

    pages(1)  # as many as there are already, and no more
    with served(collector) as url:
        found: Counter[int] = Counter(asked(f"{url}/reports", one)[0] for one in each[:300])
        assert set(found) == {201, 507}
        pages(1 << 30)
        assert {asked(f"{url}/reports", one)[0] for one in each[:300]} == {200, 201}
    with running.store.engine.connect() as connection:
        assert connection.execute(select(func.count()).select_from(REPORTS)).scalar_one() == 300
