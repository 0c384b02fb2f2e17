"""Small collections for tests, in a SQLite file or in PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sqlalchemy import select

from graphveil.collection.export.export import export
from graphveil.collection.service.intake import Intake
from graphveil.collection.store.store import Store
from graphveil.collection.store.tables import REPORTS, opened
from graphveil.device import Opening, Report, Task, answer
from graphveil.device.people.people import ids_hash
from graphveil.device.reporting import Enrolled
from graphveil.device.wire import report
from tests.on_device.signing import label, links, opening_of, task_of

PEOPLE = 12
IDS = [f"person {number}" for number in range(PEOPLE)]
#: The databases of collections that were begun; each test closes its own.
BEGUN: list[Store] = []


@dataclass(frozen=True)
class Collection:
    """A task, its database, and everybody's device."""

    task: Task
    store: Store
    devices: tuple[Enrolled, ...]
    opening: Opening

    @property
    def intake(self) -> Intake:
        return Intake(self.store, self.task)

    def after(self, nonce: bytes) -> Collection:
        """The collection with its next epoch open, the last one closed."""
        self.store.close_epoch()
        self.store.open_epoch(nonce)
        return replace(self, opening=opening_of(self.task, *self.opening.nonces, nonce))

    def exported(self, folder: Path) -> Path:
        """The folder of its export, the last epoch closed."""
        self.store.close_epoch()
        export(self.store, folder)
        return folder

    def report(self, number: int, values: Mapping[str, object]) -> Report:
        """What a person's device sends."""
        who = self.devices[number]
        person = self.task.person(number, self.opening.nonce(who.joined))
        body = answer(self.task, person, values, who.secret).body
        return report(self.task.hash, self.opening.epoch, body, who.secret, who.key)


def token(number: int) -> bytes:
    return b"token" + number.to_bytes(16, "big")


def secret(number: int) -> bytes:
    return b"secret" + number.to_bytes(26, "big")


def key(number: int) -> bytes:
    return b"key" + number.to_bytes(29, "big")


def stored(store: Store) -> list[tuple[int, int, bytes]]:
    """Number, epoch and body of each report."""
    columns = REPORTS.c.number, REPORTS.c.epoch, REPORTS.c.body
    with store.engine.connect() as connection:
        rows = connection.execute(select(*columns).order_by(REPORTS.c.number, REPORTS.c.epoch)).all()
    return [(row.number, row.epoch, bytes(row.body)) for row in rows]


def url_of(folder: Path) -> str:
    return f"sqlite:///{folder / 'collection.db'}"


def begun(url: str, *fields: dict[str, Any], enrolled: int = PEOPLE, **changes: Any) -> Collection:
    """A collection whose first epoch is open, with as many people enrolled."""
    task_fields = fields or (label(), links(PEOPLE))
    people = changes.get("people", PEOPLE)
    ids = [f"person {number}" for number in range(people)]
    task, store = task_of(*task_fields, **{"people": people, "ids": ids_hash(ids), **changes}), Store(opened(url))
    BEGUN.append(store)
    store.begin(task, ((person, token(number)) for number, person in enumerate(ids)))
    devices = []
    for number in range(enrolled):
        who = store.enrol(task, token(number), key(number))
        assert who is not None and who.number == number
        devices.append(Enrolled(number, who.joined, secret(number), key(number)))
    nonce = bytes(range(16))
    store.open_epoch(nonce)
    return Collection(task, store, tuple(devices), opening_of(task, nonce))
