"""The state of a collection for its organiser: counts, refusals and their reasons, and how to train."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import distinct, exists, func, select

from graphveil.collection.service.refusal_codes import ORGANISER, REFUSAL_CODES
from graphveil.collection.store.store import Store
from graphveil.collection.store.tables import COUNTS, EPOCHS, REPORTS
from graphveil.device.task import Task, short_key
from graphveil.device.telling import decimal


@dataclass(frozen=True)
class Standing:
    """The state of a collection, as the administration shows it."""

    store: Store
    task: Task
    clock: Callable[[], float] = time.time
    _counted: dict[int, int] = field(default_factory=dict, repr=False)

    def facts(self) -> dict[str, Any]:
        """Return what the organiser's page shows, apart from what depends on the server's folder."""
        task, status = self.task, self.store.status()
        refused = [{**_explained(code), "count": count} for code, count in sorted(status.pop("refused").items())]
        words = {"name": task.name, "organiser": task.organiser, "purpose": task.purpose, "contact": task.contact}
        return {
            **words,
            "task": task.hash.hex(),
            "signed_by": short_key(task.key),
            "asked": [{"kind": part.kind, "epsilon": decimal(part.epsilon)} for part in task.fields],
            "guarantee": list(task.guarantee),
            "public": list(task.public),
            "opens": task.opens,
            "closes": task.closes,
            "now": int(self.clock()),
            "least": task.least,
            **status,
            **self.report_counts(status["epoch"], status["received"]),
            "hours": self.hours(),
            "answered": self.answered(),
            "epochs": [digest.hex() for _, digest in self.store.closed()],
            "scrubbed": self.store.is_scrubbed,
            "refused": refused,
        }

    def hours(self) -> list[dict[str, int]]:
        """Return how many reports came in each hour of the last epoch; finer times are stored nowhere."""
        last = select(func.max(EPOCHS.c.epoch)).scalar_subquery()
        mine = (COUNTS.c.kind == "received") & (COUNTS.c.epoch == last)
        query = select(COUNTS.c.hour, func.sum(COUNTS.c.count)).where(mine)
        with self.store.reader.connect() as connection:
            rows = connection.execute(query.group_by(COUNTS.c.hour).order_by(COUNTS.c.hour)).all()
        return [{"hour": hour * 3600, "reports": int(count)} for hour, count in rows]

    def report_counts(self, epoch: int, received: int) -> dict[str, int]:
        """Return how many reports of an epoch hold an answer, as an export counts them, and how many are empty.

        Args:
            received: its reports.
        """
        empty = self.store.empty(epoch)
        return {"received": received - empty, "empty": empty}

    def answered(self) -> int:
        """Return how many people an export would count: whose last report of all closed epochs holds an answer."""
        closed = len(self.store.closed())
        # Counted once: closed epochs do not change, and ten million reports take seconds.
        if closed not in self._counted:
            frozen = select(EPOCHS.c.epoch).where(EPOCHS.c.hash.is_not(None))
            query = select(func.count(distinct(REPORTS.c.number))).where(REPORTS.c.epoch.in_(frozen))
            with self.store.reader.connect() as connection:
                people = int(connection.execute(query).scalar_one())
            epochs = range(1, closed + 1)
            # Most collections have no empty report, and skip the search.
            has_empty = any(self.store.empty(epoch) for epoch in epochs)
            self._counted[closed] = people - (_empty_in(self.store, self.task, epochs) if has_empty else 0)
        return self._counted[closed]


def _empty_in(store: Store, task: Task, epochs: Sequence[int]) -> int:
    """Return how many people's last report of some epochs is empty: all zeros, which no report with an answer is."""
    later = REPORTS.alias()
    follows = exists().where(
        later.c.number == REPORTS.c.number, later.c.epoch.in_(epochs), later.c.epoch > REPORTS.c.epoch
    )
    is_empty = REPORTS.c.body == bytes(-(-task.bits // 8))
    query = select(func.count()).select_from(REPORTS).where(REPORTS.c.epoch.in_(epochs), is_empty, ~follows)
    with store.reader.connect() as connection:
        return int(connection.execute(query).scalar_one())


def training(task: Task, folder: Path) -> list[str]:
    """Return the commands that train on an export of a task.

    Args:
        folder: of the export.
    """
    data, more = shlex.quote(str(folder)), {True: " --edges edges.parquet", False: ""}
    return [f"graphveil train {method} {data}{more[edges]} --out {method}-run" for method, edges in _methods(task)]


def _methods(task: Task) -> Iterator[tuple[str, bool]]:
    """Yield the methods that read the fields of a task, and whether they read public edges."""
    # Imported here: training loads far more than collecting.
    from graphveil.collection.export.learning import LABELS_ALONE, WITH_FEATURES, WITH_LISTS

    kinds = {task_field.kind for task_field in task.fields}
    if "label" not in kinds or "degree" in kinds:
        return
    names = WITH_LISTS if "links" in kinds else WITH_FEATURES if "features" in kinds else LABELS_ALONE
    yield from ((name, names is not WITH_LISTS) for name in names)


def _explained(code: str) -> Mapping[str, str]:
    # The organiser reads what the organiser can do; the person reads what the person can do.
    entry, to_do = REFUSAL_CODES[code], ORGANISER.get(code, "")
    return {"code": code, "says": entry.sentence, "means": entry.means, "to_do": to_do[:1].upper() + to_do[1:]}
