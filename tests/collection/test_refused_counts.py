"""What a collector refuses is counted by reason, also what it never reads as a report or never looks at."""

from __future__ import annotations

import json
import socket
import threading
from collections import Counter

from sqlalchemy.exc import OperationalError

from graphveil.collection.service import Collector
from graphveil.collection.tally import Tally
from tests.collection.collections import begun, key, token
from tests.collection.faults import until
from tests.collection.listening import served
from tests.collection.test_metrics_text import read
from tests.collection.test_service import asked

KIND = {"Content-Type": "application/json"}


def counted(url: str) -> dict[str, float]:
    told = read(asked(f"{url}/metrics")[1].decode())
    return {labels[6:-1]: value for (name, labels), value in told.items() if name == "graphveil_refused_total"}


def test_what_cannot_be_read_is_counted_by_reason(url: str) -> None:
    running = begun(url)
    one, two = (running.report(number, {"label": "sad"}).to_bytes() for number in range(2))
    collector = Collector(running.store)
    with served(collector) as address:
        for body in (b"", one[:-1], b"\1" + one[1:], one + two[:9], one * 1001):
            asked(f"{address}/reports", body)
        with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), 5) as long:
            long.sendall(b"POST /reports HTTP/1.1\r\nhost: localhost\r\ncontent-length: 33554432\r\n\r\n")
            assert b" 413 " in long.recv(1 << 12)
        for wrong in ({"token": token(99).hex(), "key": key(3).hex()}, {"token": "zz", "key": key(3).hex()}):
            asked(f"{address}/enrolments", json.dumps(wrong).encode(), **KIND)
        expected = {"truncated": 3, "bad-version": 1, "too-many": 1, "too-large": 1, "bad-token": 1, "bad-enrolment": 1}
        # Written every second, and at the end.
        until(lambda: counted(address) == expected)
    assert running.store.refusals() == expected
    assert running.store.status()["received"] == 1
    running.store.engine.dispose()


def test_a_database_that_is_away_loses_no_count_and_threads_lose_none() -> None:
    stored, away = Counter[str](), [True]

    def store(counts: Counter[str]) -> None:
        if away[0]:
            raise OperationalError("", {}, Exception())
        stored.update(counts)

    tally = Tally(store)  # type: ignore[arg-type]

    def ask() -> None:
        for _ in range(500):
            tally.add("busy")
            tally.write()

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    away[0] = False
    for thread in threads:
        thread.join()
    tally.write()
    assert stored == {"busy": 2000}
