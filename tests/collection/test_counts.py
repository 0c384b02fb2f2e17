"""How a collection stands is told without counting millions of rows anew, and is what they would say."""

from __future__ import annotations

import random
from typing import Any

import pytest
from sqlalchemy import event, func, select

from graphveil.collection.intake import Intake
from graphveil.collection.service import Collector
from graphveil.collection.standing import Standing
from graphveil.collection.store import Store, hashed
from graphveil.collection.tables import ENROLMENTS, EPOCHS, PEOPLE, REPORTS, opened
from tests.collection.collections import PEOPLE as MANY
from tests.collection.collections import Collection, begun, key, token, url_of
from tests.collection.listening import served
from tests.collection.test_service import asked
from tests.on_device.signing import label


def counted(store: Store) -> dict[str, int]:
    """The same numbers, of the rows themselves."""
    with store.engine.connect() as connection:

        def many(table: Any, *where: Any) -> int:
            return connection.execute(select(func.count()).select_from(table).where(*where)).scalar_one()

        epoch = connection.execute(select(func.max(EPOCHS.c.epoch))).scalar() or 0
        return {
            "people": many(PEOPLE), "enrolled": many(ENROLMENTS), "epoch": epoch,
            "received": many(REPORTS, REPORTS.c.epoch == epoch),
        }  # fmt: skip


def told(store: Store) -> dict[str, int]:
    return {name: value for name, value in store.status().items() if name not in ("open", "refused")}


def require_right(running: Collection) -> None:
    assert told(running.store) == counted(running.store)
    hours = Standing(running.store, running.task).hours()
    assert sum(one["reports"] for one in hours) == counted(running.store)["received"]


@pytest.mark.slow  # processes, or many people
def test_counts_are_those_of_the_rows(url: str) -> None:
    """Over random reports, some of them twice, conflicts, three epochs and two processes' stores."""
    dice, running = random.Random(0), begun(url, label(), enrolled=MANY - 2)
    other = Store(opened(url))
    require_right(running)
    for epoch in range(3):
        for _ in range(12):
            words = [running.report(dice.randrange(MANY - 2), {"label": dice.choice(("sad", "glad"))}) for _ in "abc"]
            taken = (running.store, other)[dice.randrange(2)]
            Intake(taken, running.task).take(words)
            require_right(running)
        # Once more with its own key, then with another one's, then somebody new.
        assert running.store.enrol(running.task, token(0), key(0)) is not None
        assert other.enrol(running.task, token(0), key(99)) is None
        if epoch < 2:
            assert other.enrol(running.task, token(MANY - 1 - epoch), key(50 + epoch)) is not None
            running = running.after(bytes([epoch]) * 16)
        require_right(running)
    assert counted(running.store)["enrolled"] == MANY
    other.engine.dispose()
    running.store.engine.dispose()


@pytest.mark.parametrize("path", ["/metrics", "/admin/status", "/epoch"])
def test_nothing_that_is_asked_often_reads_all_rows(tmp_path: Any, path: str) -> None:
    """By the plan of each statement: of a table that grows with people, none is read from end to end."""
    running = begun(url_of(tmp_path), label())
    running.intake.take([running.report(number, {}) for number in range(5)])
    seen: list[tuple[str, Any]] = []

    def note(connection: Any, cursor: Any, statement: str, parameters: Any, context: Any, many: bool) -> None:
        seen.append((statement, parameters))

    running.store.keep("admin", hashed(b"let me in"))
    with served(Collector(running.store)) as address:
        event.listen(running.store.engine, "before_cursor_execute", note)
        assert asked(address + path, Authorization="Bearer let me in")[0] == 200
        event.remove(running.store.engine, "before_cursor_execute", note)
    asks = [one for one in seen if one[0].startswith("SELECT")]
    assert asks
    with running.store.engine.connect() as connection:
        for statement, parameters in asks:
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters).all()
            read = [line[3] for line in plan if line[3].startswith("SCAN")]
            large = [line for line in read if line.split()[1] in ("people", "enrolments", "reports")]
            # The whole of a count of distinct people is asked once for each closed epoch, and kept.
            assert not large or "distinct" in statement.lower(), (statement, large)
