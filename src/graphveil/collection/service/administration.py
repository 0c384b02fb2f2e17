"""The organiser's routes of a collector, in JSON, with the administration's token in the header Authorization.

GET  /admin/status                                        see `Standing`
GET  /admin/expected?neighbours=10&alike=0.8              see `expected`
POST /admin/open   /admin/close
POST /admin/export   {"folder": NAME}                     a folder beside the collection's files
GET  /admin/export                                        the same as a zip
POST /admin/tokens   {"id": ID}                           a new token for somebody who lost theirs
"""

from __future__ import annotations

import hmac
import shlex
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, BinaryIO

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import StreamingResponse
from fastapi.security import HTTPBearer
from sqlalchemy import distinct, exists, func, select

from graphveil.collection.desk import KEY, Desk
from graphveil.collection.export.export import FILES, export
from graphveil.collection.service.answers import problem
from graphveil.collection.service.arrival import forget
from graphveil.collection.service.limits import Buckets, Rate
from graphveil.collection.service.models import Exporting, Losing
from graphveil.collection.service.openapi import add_routes
from graphveil.collection.service.refusal_codes import ORGANISER, REFUSAL_CODES
from graphveil.collection.service.tokens import replace_token
from graphveil.collection.store.store import Store, hashed
from graphveil.collection.store.tables import COUNTS, EPOCHS, REPORTS
from graphveil.collection.task.expected import Surroundings, expected
from graphveil.device.task import Task, short_key
from graphveil.device.telling import decimal
from graphveil.errors import InputError, MissingExtraError
from graphveil.files.writing import partial_folder

#: Wrong tokens from one address: enough for somebody who mistypes, not for somebody who guesses.
WRONG_TOKEN_RATE = Rate(each_second=0.1, burst=10.0)
#: Documents the header; `_admitted` reads it.
_BEARER = HTTPBearer(auto_error=False, description="The administrator's token: the file admin-token.")


class Refused(Exception):
    """A request is refused with a code of `answers.STATUS`, and further members of the problem."""

    def __init__(self, code: str, **members: str) -> None:
        super().__init__(code)
        self.code, self.members = code, members

    def response(self) -> Response:
        status, headers, body = problem(self.code, **self.members)
        return Response(body, status, {name.decode(): value.decode() for name, value in headers})


class Administration:
    """The organiser's part of a collector.

    Args:
        desk: the organiser's folder, where the collector may use it.
        has_room: whether the disk has room.
        wrong_tokens: how often an address may send a wrong token; None: as `WRONG_TOKEN_RATE`.
    """

    def __init__(
        self,
        store: Store,
        task: Task,
        desk: Desk | None,
        has_room: Callable[[], bool],
        wrong_tokens: Buckets | None = None,
    ) -> None:
        self._store, self._task, self._desk, self._has_room = store, task, desk, has_room
        self._standing = Standing(store, task)
        self._wrong_tokens = wrong_tokens or WRONG_TOKEN_RATE.buckets()

    def routes(self) -> APIRouter:
        """Return the routes, all of which require the token."""
        routes = APIRouter(dependencies=[Depends(self._admitted), Depends(_BEARER)])
        add_routes(
            routes,
            {
                "GET /admin/status": self._status,
                "GET /admin/expected": self._expected,
                "POST /admin/open": self._open,
                "POST /admin/close": self._close,
                "POST /admin/export": self._export,
                "GET /admin/export": self._download,
                "POST /admin/tokens": self._token,
            },
        )
        return routes

    def _status(self) -> dict[str, Any]:
        folder = Path("collected") if self._desk is None else self._desk.folder / "collected"
        has_key = self._desk is not None and (self._desk.folder / KEY).is_file()
        of_server = {"key": has_key, "open_command": self._command, "train": training_commands(self._task, folder)}
        return {**self._standing.facts(), **of_server, "folder": None if self._desk is None else str(self._desk.folder)}

    def _expected(
        self,
        neighbours: Annotated[float, Query(gt=0, le=10_000)] = 10.0,
        alike: Annotated[float, Query(ge=0, le=1)] = 0.8,
    ) -> dict[str, Any]:
        status = self._store.status()
        counts = self._standing.report_counts(status["epoch"], status["received"])
        answered = max(self._standing.answered(), counts["received"])
        return {"answered": answered, **expected(self._task, answered, Surroundings(neighbours, alike))}

    def _open(self) -> dict[str, Any]:
        if self._desk is None or not (self._desk.folder / KEY).is_file():
            # The key is best kept elsewhere, and then the epoch is opened there.
            raise Refused("no-key", detail="the organiser's key is not on this server", command=self._command)
        with _refused_now():
            return self._desk.open()

    @property
    def _command(self) -> str:
        folder = "FOLDER" if self._desk is None else shlex.quote(str(self._desk.folder))
        return f"graphveil collect open {folder} --key organiser.key"

    def _close(self) -> dict[str, Any]:
        with _refused_now():
            epoch, digest = self._store.close_epoch()
        return {"epoch": epoch, "hash": digest.hex(), "order_forgotten": forget(self._store)}

    def _export(self, exporting: Exporting) -> dict[str, Any]:
        self._require_room()
        with _refused_now():
            if self._desk is None:
                raise InputError("this collector has no folder of its own", remedy="download the export")
            out = self._desk.folder / exporting.folder
            return {**self._desk.export(out), "train": training_commands(self._task, out)}

    def _download(self) -> StreamingResponse:
        self._require_room()
        # Beside the collection's files, whose disk is watched; the system's temporary folder may be in memory.
        parent = Path(tempfile.gettempdir()) if self._desk is None else self._desk.folder
        # The folder is removed at the end of the block, and the open file is all that is left: an interrupted download
        # leaves nothing behind. What a killed process leaves is removed by the next export, of either kind: nobody
        # holds its lock any more. For its owner alone: a temporary folder is open to everybody on the machine.
        with partial_folder(parent / "export", owner_only=True) as partial:
            with _refused_now():
                export(self._store, partial / "collected")
            zipped = partial / "collected.zip"
            # Noise cannot be compressed.
            with zipfile.ZipFile(zipped, "w", zipfile.ZIP_STORED) as file:
                for name in FILES:
                    file.write(partial / "collected" / name, f"collected/{name}")
            packed = zipped.open("rb")
        headers = {"content-disposition": 'attachment; filename="collected.zip"', "cache-control": "no-store"}
        return StreamingResponse(_parts(packed), media_type="application/zip", headers=headers)

    def _token(self, losing: Losing) -> dict[str, str]:
        with _refused_now():
            return replace_token(self._store, losing.id)

    def _require_room(self) -> None:
        if not self._has_room():
            raise Refused("disk-full")

    def _admitted(self, request: Request) -> None:
        address = request.client.host if request.client else ""
        stored = self._store.setting("admin")
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        # In constant time, and of hashes: the duration says nothing about the token.
        if stored is None or not hmac.compare_digest(stored, hashed(token.encode())):
            # 160 random bits cannot be guessed. The right token is always accepted: otherwise strangers behind the
            # organiser's address could lock the organiser out.
            raise Refused("not-admitted" if self._wrong_tokens.take(address) else "too-often")


@contextmanager
def _refused_now() -> Iterator[None]:
    """Turn an error that the collection's present state causes into the refusal `not-now`, with its reason."""
    try:
        yield
    except (InputError, MissingExtraError) as error:
        raise Refused("not-now", detail=str(error)) from error


def _parts(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while part := file.read(1 << 20):
            yield part


@dataclass(frozen=True)
class Standing:
    """The state of a collection, as the administration shows it."""

    store: Store
    task: Task
    clock: Callable[[], float] = time.time
    # People who answered, by the number of closed epochs.
    _answered: dict[int, int] = field(default_factory=dict, repr=False)

    def facts(self) -> dict[str, Any]:
        """Return what the organiser's page shows, apart from what depends on the server's folder."""
        task, status = self.task, self.store.status()
        refused = [{**_explanation(code), "count": count} for code, count in sorted(status.pop("refused").items())]
        texts = {"name": task.name, "organiser": task.organiser, "purpose": task.purpose, "contact": task.contact}
        return {
            **texts,
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
            "epochs": [digest.hex() for _, digest in self.store.closed_epochs()],
            "scrubbed": self.store.is_scrubbed,
            "refused": refused,
        }

    def hours(self) -> list[dict[str, int]]:
        """Return how many reports came in each hour of the last epoch; finer times are stored nowhere."""
        last = select(func.max(EPOCHS.c.epoch)).scalar_subquery()
        is_counted = (COUNTS.c.kind == "received") & (COUNTS.c.epoch == last)
        query = select(COUNTS.c.hour, func.sum(COUNTS.c.count)).where(is_counted)
        with self.store.reader.connect() as connection:
            rows = connection.execute(query.group_by(COUNTS.c.hour).order_by(COUNTS.c.hour)).all()
        return [{"hour": hour * 3600, "reports": int(count)} for hour, count in rows]

    def report_counts(self, epoch: int, received: int) -> dict[str, int]:
        """Return how many reports of an epoch hold an answer, as an export counts them, and how many are empty.

        Args:
            received: how many came, empty or not.
        """
        empty = self.store.empty_count(epoch)
        return {"received": received - empty, "empty": empty}

    def answered(self) -> int:
        """Return how many people an export would count: whose last report of all closed epochs holds an answer."""
        closed = len(self.store.closed_epochs())
        # Counted once: closed epochs do not change, and to count ten million reports takes seconds.
        if closed not in self._answered:
            frozen = select(EPOCHS.c.epoch).where(EPOCHS.c.hash.is_not(None))
            query = select(func.count(distinct(REPORTS.c.number))).where(REPORTS.c.epoch.in_(frozen))
            with self.store.reader.connect() as connection:
                people = int(connection.execute(query).scalar_one())
            epochs = range(1, closed + 1)
            # Most collections have no empty report, and skip the search.
            has_empty = any(self.store.empty_count(epoch) for epoch in epochs)
            self._answered[closed] = people - (_empty_in(self.store, self.task, epochs) if has_empty else 0)
        return self._answered[closed]


def _empty_in(store: Store, task: Task, epochs: Sequence[int]) -> int:
    """Return how many people's last report of some epochs is empty: all zeros, which no report with an answer is."""
    later = REPORTS.alias()
    follows = exists().where(
        later.c.number == REPORTS.c.number, later.c.epoch.in_(epochs), later.c.epoch > REPORTS.c.epoch
    )
    is_empty = REPORTS.c.body == bytes(task.body_bytes)
    query = select(func.count()).select_from(REPORTS).where(REPORTS.c.epoch.in_(epochs), is_empty, ~follows)
    with store.reader.connect() as connection:
        return int(connection.execute(query).scalar_one())


def training_commands(task: Task, folder: Path) -> list[str]:
    """Return the commands that train on an export of a task.

    Args:
        folder: of the export.
    """
    # Imported here: training loads far more than collecting.
    from graphveil.collection.export.learning import LABELS_ALONE, WITH_FEATURES, WITH_LISTS

    kinds = {task_field.kind for task_field in task.fields}
    if "label" not in kinds or "degree" in kinds:
        return []
    names = WITH_LISTS if "links" in kinds else WITH_FEATURES if "features" in kinds else LABELS_ALONE
    data = shlex.quote(str(folder)) + ("" if names is WITH_LISTS else " --edges edges.parquet")
    return [f"graphveil train {method} {data} --out {method}-run" for method in names]


def _explanation(code: str) -> Mapping[str, str]:
    # The organiser reads what the organiser can do; the person reads what the person can do.
    entry, to_do = REFUSAL_CODES[code], ORGANISER.get(code, "")
    return {"code": code, "says": entry.sentence, "means": entry.means, "to_do": to_do[:1].upper() + to_do[1:]}
