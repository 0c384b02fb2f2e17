"""Reports in which everything was left out: stored as any other, and nobody's answer, so an export does not count them.

Such a body is all zeros, and no other one is: see `graphveil.device.reports.answer`.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import exists, func, select

from graphveil.collection.store.store import Store
from graphveil.collection.store.tables import REPORTS
from graphveil.device.task import Task


def empty_in(store: Store, task: Task, epochs: Sequence[int]) -> int:
    """Return of how many people the last report of some epochs says nothing.

    Args:
        store: of the collection. task: its task. epochs: their numbers.
    """
    later = REPORTS.alias()
    follows = exists().where(
        later.c.number == REPORTS.c.number, later.c.epoch.in_(epochs), later.c.epoch > REPORTS.c.epoch
    )
    is_empty = REPORTS.c.body == bytes(-(-task.bits // 8))
    query = select(func.count()).select_from(REPORTS).where(REPORTS.c.epoch.in_(epochs), is_empty, ~follows)
    with store.reader.connect() as connection:
        return int(connection.execute(query).scalar_one())
