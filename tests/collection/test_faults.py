"""A server that is killed at any moment: what it acknowledged stands, once, and what it did not can be sent again."""

from __future__ import annotations

import random
import resource
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
from sqlalchemy import select

from graphveil.collection.store.store import Store
from graphveil.collection.store.tables import REPORTS, opened
from tests.collection.collections import begun, stored, url_of
from tests.collection.faults import SENDERS, Round, Server, answers_of, bodies, serving
from tests.collection.postgresql import Postgres, postgresql
from tests.on_device.signing import label
from tests.waiting import in_threads, until

KILLS, PEOPLE = 50, 600


@pytest.mark.slow
def test_what_was_acknowledged_is_counted_once_through_kills(tmp_path: Path) -> None:
    trial = Round(url_of(tmp_path), KILLS, PEOPLE)
    trial.run(random.Random(0))
    assert trial.faults() == [] and trial.acknowledged.total() == PEOPLE


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
                codes_of: list[str] | None = None
                while not codes_of or codes_of[0] not in ("accepted", "again"):
                    asked_at = time.monotonic()
                    codes_of = answers_of(server.port, each[number])
                    slowest[0] = max(slowest[0], time.monotonic() - asked_at)
                    codes.update(codes_of or ["nothing"])
                    time.sleep(0.0 if codes_of and codes_of[0] == "accepted" else 0.05)

        until(lambda: answers_of(server.port, each[0]) is not None)
        with in_threads(send, [range(k, PEOPLE, SENDERS) for k in range(SENDERS)]):
            for end in (database.kill, database.stop):
                before = codes["accepted"]
                until(lambda before=before: codes["accepted"] > before + PEOPLE // 10)
                end()
                refused = codes["busy"]
                until(lambda refused=refused: codes["busy"] > refused)
                until(lambda: starts(database))
        server.kill()
        # One may be counted as sent again: its answer was lost with the database that had stored it.
        assert set(codes) <= {"accepted", "again", "busy"} and codes["busy"] and slowest[0] < 20.0
        engine = opened(url)
        with engine.connect() as connection:
            numbers = connection.execute(select(REPORTS.c.number).order_by(REPORTS.c.number)).scalars().all()
        engine.dispose()
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
    with serving(url_of(tmp_path), 60) as (server, each):
        server.limit(resource.RLIMIT_FSIZE, (tmp_path / "collection.db-wal").stat().st_size + (1 << 15))
        codes = Counter(code for report in each for code in answers_of(server.port, report) or ["nothing"])
        assert set(codes) == {"again", "accepted", "disk-full"}, codes
        server.limit(resource.RLIMIT_FSIZE, -1)
        after = Counter(code for report in each for code in answers_of(server.port, report) or ["nothing"])
        assert after == {"again": codes["accepted"] + 1, "accepted": codes["disk-full"]}
    assert len(stored(Store(opened(url_of(tmp_path))))) == len(each)
