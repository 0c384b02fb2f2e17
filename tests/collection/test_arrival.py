"""Where a row lies tells nothing of when it came.

People enrol and report in an order that is drawn at random, apart from who they are. Each test of positions alarms
falsely once in a million: two tests of each of at most six kinds of position, each at `ALARM`.
"""

from __future__ import annotations

import random
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from scipy import stats
from sqlalchemy import select, text

from graphveil.collection.service.arrival import Arrival, forget
from graphveil.collection.service.service import Collector
from graphveil.collection.store.rewriting import empty_log
from graphveil.collection.store.store import HOUR, Enrolment, Store
from graphveil.collection.store.tables import ENROLMENTS, REPORTS
from graphveil.device.wire import report
from tests.collection.collections import Collection, begun, key, secret, token, url_of
from tests.collection.listening import served
from tests.collection.postgresql import Postgres
from tests.on_device.signing import label

PEOPLE = 200
ALARM = 1e-6 / 12
#: Where each person's rows lie: person -> position, by kind of position.
Positions = Mapping[str, Mapping[int, tuple[int, ...]]]


def alarms(positions: Mapping[int, tuple[int, ...]], order: Sequence[int]) -> bool:
    """Whether positions tell an order of arrival."""
    came = {number: place for place, number in enumerate(order)}
    lying = [came[number] for number in sorted(positions, key=lambda number: positions[number])]
    # Two that lie beside each other came in either order, each as often: whatever the layout, while it follows from
    # the people alone. This sees what happens within a page.
    pairs = list(zip(lying[::2], lying[1::2], strict=True))
    beside = stats.binomtest(sum(first < second for first, second in pairs), len(pairs)).pvalue
    along = stats.spearmanr(range(len(lying)), lying).pvalue
    return bool(min(beside, along) < ALARM)


def arrived(url: str, order: Sequence[int], *, people: int = PEOPLE) -> Store:
    """A collection whose people enrol, and then report, in this order; its epoch is open."""
    running = begun(url, label(), people=people, enrolled=0)
    store, task = running.store, running.task
    store.close_epoch()
    for number in order:
        assert isinstance(store.enrol(task, token(number), key(number)), Enrolment)
    store.open_epoch(b"n" * 16)
    empty = bytes(-(-task.bits // 8))
    for number in order:
        assert running.intake.take([report(task.hash, 2, empty, secret(number), key(number))]) == ["accepted"]
    return store


def marks(store: Store) -> dict[str, dict[int, bytes]]:
    """Bytes by which the rows of each person are found in a file."""
    with store.reader.connect() as connection:
        reports = connection.execute(select(REPORTS.c.number, REPORTS.c.digest)).all()
        enrolments = connection.execute(select(ENROLMENTS.c.number, ENROLMENTS.c.enrolment)).all()
    return {
        "reports": {number: bytes(digest) for number, digest in reports},
        "names": {number: bytes(name) for number, name in enrolments},
        "keys": {number: key(number) for number, _ in enrolments},
    }


def places(data: bytes, mark: bytes) -> tuple[int, ...]:
    offsets, at = [], data.find(mark)
    while at >= 0:
        offsets.append(at)
        at = data.find(mark, at + 1)
    return tuple(offsets)


def in_files(folder: Path, store: Store) -> dict[str, dict[int, tuple[int, ...]]]:
    """Where each person's rows lie in SQLite's own files: first and last place of each kind, table and index alike."""
    positions: dict[str, dict[int, tuple[int, ...]]] = {}
    for file in ("collection.db", "collection.db-wal"):
        data = (folder / file).read_bytes()
        for kind, each in marks(store).items():
            where = {number: places(data, mark) for number, mark in each.items()}
            present = {number: at for number, at in where.items() if at}
            if len(present) == len(each):
                positions[f"{file}: {kind}, first"] = {number: at[:1] for number, at in present.items()}
                positions[f"{file}: {kind}, last"] = {number: at[-1:] for number, at in present.items()}
    return positions


@pytest.fixture
def order() -> list[int]:
    numbers = list(range(PEOPLE))
    random.Random(16).shuffle(numbers)
    return numbers


def telling(columns: Positions, order: Sequence[int]) -> set[str]:
    return {kind for kind, positions in columns.items() if alarms(positions, order)}


@pytest.mark.slow  # processes, or many people
def test_sqlites_files_tell_no_order(tmp_path: Path, order: list[int]) -> None:
    """Of reports, names and keys; the log tells it of each of them before."""
    store = arrived(url_of(tmp_path), order)
    assert telling(in_files(tmp_path, store), order) >= {f"collection.db-wal: {kind}, first" for kind in marks(store)}
    assert forget(store)
    assert (tmp_path / "collection.db-wal").stat().st_size == 0
    positions = in_files(tmp_path, store)
    assert len(positions) == 6 and telling(positions, order) == set()


@pytest.mark.slow  # processes, or many people
def test_rows_lie_where_they_would_in_any_order(tmp_path: Path) -> None:
    """What follows from who took part alone tells nothing of when they did; with the log alone emptied it would."""
    before, after = [], []
    for folder, numbers in (("up", range(150)), ("down", range(149, -1, -1))):
        (tmp_path / folder).mkdir()
        store = arrived(url_of(tmp_path / folder), numbers, people=150)
        assert empty_log(store.engine)
        before.append(in_files(tmp_path / folder, store))
        assert forget(store)
        after.append(in_files(tmp_path / folder, store))
    assert all(before[0][kind] != before[1][kind] for kind in before[0]) and len(before[0]) == 6
    assert after[0] == after[1] != {}


def in_postgresql(postgres: Postgres, store: Store) -> dict[str, dict[int, tuple[int, ...]]]:
    """Where rows lie by what PostgreSQL tells, and by the bytes of its files."""
    positions: dict[str, dict[int, tuple[int, ...]]] = {}
    files = ("people", "enrolments", "reports", "enrolments_pkey", "enrolments_enrolment_key", "reports_pkey")
    with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for table in ("people", "enrolments", "reports"):
            query = text(f"SELECT number, ctid::text, xmin::text, xmax::text FROM {table} WHERE number < {PEOPLE}")
            for number, ctid, xmin, xmax in connection.execute(query):
                positions.setdefault(f"{table}: ctid", {})[number] = tuple(map(int, ctid.strip("()").split(",")))
                # With the number behind it, where all are the same.
                positions.setdefault(f"{table}: xmin", {})[number] = (int(xmin), number)
                positions.setdefault(f"{table}: xmax", {})[number] = (int(xmax), number)
        connection.execute(text("CHECKPOINT"))
        for file in files:
            path = connection.execute(text("SELECT pg_relation_filepath(:one)"), {"one": file}).scalar_one()
            data = (postgres.folder / "data" / path).read_bytes()
            for kind, each in marks(store).items():
                where = {number: places(data, mark) for number, mark in each.items()}
                if all(where.values()):
                    positions[f"{file}: bytes of {kind}"] = where
    return positions


@pytest.mark.slow  # processes, or many people
def test_postgresqls_rows_tell_no_order(postgres: Postgres, order: list[int]) -> None:
    store = arrived(postgres.url("arrival"), order)
    before = telling(in_postgresql(postgres, store), order)
    assert before >= {"reports: ctid", "reports: xmin", "enrolments: ctid", "enrolments: xmin", "people: xmax"}
    assert before >= {"reports: bytes of reports", "enrolments_enrolment_key: bytes of names"}
    assert forget(store)
    after = in_postgresql(postgres, store)
    assert set(after) >= before and telling(after, order) == set()
    # Of each row one copy, and none of those that stood there before.
    tables = [after[f"{table}: bytes of {kind}"] for table, kind in (("reports", "reports"), ("enrolments", "names"))]
    assert all(len(at) == 1 for where in tables for at in where.values())


def sent(running: Collection, numbers: Sequence[int]) -> None:
    assert set(running.intake.take([running.report(number, {}) for number in numbers])) == {"accepted"}


def left(store: Store) -> bool:
    """Whether rows lie where they came: of an open epoch, nothing is done about it where no size is small."""
    return not forget(store, small=0)


def test_an_hour_is_forgotten_when_it_is_over(url: str) -> None:
    """While the epoch is open, unless the database is large."""
    running, now = begun(url, label(), people=40, enrolled=40), [10.0 * HOUR]
    store = running.store
    look = Arrival(store, clock=lambda: now[0]).look
    Arrival(store, small=0, clock=lambda: now[0]).look()
    assert left(store)
    look()
    assert not left(store)
    sent(running, range(20))
    look()
    assert left(store)
    now[0] += HOUR
    look()
    assert not left(store)
    sent(running, range(20, 40))
    store.close_epoch()
    assert forget(store, small=0)
    numbers = store.frozen()[0].numbers
    assert list(numbers) == list(range(40))


def test_a_collector_that_ends_leaves_no_order(tmp_path: Path) -> None:
    running = begun(url_of(tmp_path), label(), people=20, enrolled=20)
    with served(Collector(running.store)) as url:
        reports = b"".join(running.report(number, {}).to_bytes() for number in range(20))
        with urllib.request.urlopen(f"{url}/reports", reports, timeout=30) as answer:
            assert answer.status in (200, 201)
    assert not left(running.store) and (tmp_path / "collection.db-wal").stat().st_size == 0
