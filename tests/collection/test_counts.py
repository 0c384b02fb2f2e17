"""How a collection stands and what it refused is counted, without reading all rows, and told to a Prometheus."""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, func, select
from sqlalchemy.exc import OperationalError

from graphveil.collection.service.administration import Standing
from graphveil.collection.service.answers import exposition
from graphveil.collection.service.intake import Intake
from graphveil.collection.service.service import Collector, Tally
from graphveil.collection.store.store import Store, hashed
from graphveil.collection.store.tables import ENROLMENTS, EPOCHS, PEOPLE, REPORTS, opened
from tests.collection.collections import PEOPLE as MANY
from tests.collection.collections import Collection, begun, key, token, url_of
from tests.collection.listening import served
from tests.collection.test_service import fetch
from tests.on_device.signing import label
from tests.pages import page
from tests.waiting import in_threads


def require_right(running: Collection) -> None:
    """What is told is what the rows themselves would say."""
    with running.store.engine.connect() as connection:

        def many(table: Any, *where: Any) -> int:
            return connection.execute(select(func.count()).select_from(table).where(*where)).scalar_one()

        epoch = connection.execute(select(func.max(EPOCHS.c.epoch))).scalar() or 0
        received = many(REPORTS, REPORTS.c.epoch == epoch)
        rows = {"people": many(PEOPLE), "enrolled": many(ENROLMENTS), "epoch": epoch, "received": received}
    status = running.store.status()
    assert {name: status[name] for name in rows} == rows
    assert sum(hour["reports"] for hour in Standing(running.store, running.task).hours()) == received


@pytest.mark.slow  # processes, or many people
def test_counts_are_those_of_the_rows(url: str) -> None:
    """Over random reports, some of them twice, conflicts, three epochs and two processes' stores."""
    dice, running = random.Random(0), begun(url, label(), enrolled=MANY - 2)
    other = Store(opened(url))
    require_right(running)
    for epoch in range(3):
        for _ in range(12):
            words = [running.report(dice.randrange(MANY - 2), {"label": dice.choice(("sad", "glad"))}) for _ in "abc"]
            Intake((running.store, other)[dice.randrange(2)], running.task).take(words)
            require_right(running)
        # Once more with its own key, then with another one's, then somebody new.
        assert running.store.enrol(running.task, token(0), key(0)) is not None
        assert other.enrol(running.task, token(0), key(99)) is None
        if epoch < 2:
            assert other.enrol(running.task, token(MANY - 1 - epoch), key(50 + epoch)) is not None
            running = running.after(bytes([epoch]) * 16)
        require_right(running)
    other.engine.dispose()


@pytest.mark.parametrize("path", ["/metrics", "/admin/status", "/epoch"])
def test_nothing_that_is_asked_often_reads_all_rows(tmp_path: Path, path: str) -> None:
    """By the plan of each statement: of a table that grows with people, none is read from end to end."""
    running = begun(url_of(tmp_path), label())
    running.intake.take([running.report(number, {}) for number in range(5)])
    seen: list[tuple[str, Any]] = []

    def note(connection: Any, cursor: Any, statement: str, parameters: Any, context: Any, many: bool) -> None:
        seen.append((statement, parameters))

    running.store.keep("admin", hashed(b"let me in"))
    with served(Collector(running.store)) as address:
        event.listen(running.store.engine, "before_cursor_execute", note)
        assert fetch(address + path, Authorization="Bearer let me in")[0] == 200
        event.remove(running.store.engine, "before_cursor_execute", note)
    asks = [statement for statement in seen if statement[0].startswith("SELECT")]
    assert asks
    with running.store.engine.connect() as connection:
        for statement, parameters in asks:
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters).all()
            large = [line[3] for line in plan if re.match("SCAN (people|enrolments|reports)", line[3])]
            # The whole of a count of distinct people is asked once for each closed epoch, and kept.
            assert not large or "distinct" in statement.lower(), (statement, large)


def read(text: str) -> dict[str, float]:
    """Samples of the text form, each of a name whose kind was said before."""
    kinds = dict(re.findall(r"^# TYPE (\w+) (gauge|counter)$", text, re.M))
    samples = re.findall(r'^(\w+)((?:\{code="(?:[^"\\\n]|\\[\\"n])*"\})?) (\d+)$', text, re.M)
    assert text.endswith("\n") and text.count("\n") == 2 * len(kinds) + len(samples)
    assert all(kinds[name] == ("counter" if name.endswith("_total") else "gauge") for name, _, _ in samples)
    return {name.removeprefix("graphveil_") + labels: float(value) for name, labels, value in samples}


def test_a_server_tells_counts_in_the_text_form_and_names_nobody(tmp_path: Path) -> None:
    running = begun(url_of(tmp_path), enrolled=3)
    with served(Collector(running.store)) as url:
        fetch(f"{url}/reports", running.report(0, {"label": "sad"}).to_bytes())
        fetch(f"{url}/reports", running.report(1, {}).to_bytes()[:-1] + b"\0")
        status, body, headers = fetch(f"{url}/metrics")
    assert status == 200 and headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    expected = {"people": MANY, "enrolled": 3, "epoch": 1, "open": 1, "received": 1, 'refused_total{code="bad-tag"}': 1}
    assert read(body.decode()) == expected
    assert all(f"`graphveil_{name.partition('{')[0]}" in page("organise-collections") for name in expected)
    odd = {"people": 1, "enrolled": 0, "epoch": 0, "open": False, "received": 0, "refused": {'a"\\\n': 7}}
    assert read(exposition(odd))['refused_total{code="a\\"\\\\\\n"}'] == 7


def test_a_database_that_is_away_loses_no_count_and_threads_lose_none() -> None:
    stored, away = Counter[str](), [True]

    def store(counts: Counter[str]) -> None:
        if away[0]:
            raise OperationalError("", {}, Exception())
        stored.update(counts)

    tally = Tally(store)  # type: ignore[arg-type]

    def ask(_: int) -> None:
        for _ in range(500):
            tally.add("busy")
            tally.write()

    with in_threads(ask, range(4)):
        away[0] = False
    tally.write()
    assert stored == {"busy": 2000}
