"""The organiser's routes of a collector, in JSON, with the administration's token in the header Authorization.

GET  /admin/status                                        see `standing`
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
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import StreamingResponse
from fastapi.security import HTTPBearer

from graphveil.collection.desk import KEY, Desk
from graphveil.collection.export.export import FILES, export
from graphveil.collection.service.answers import problem
from graphveil.collection.service.arrival import forget
from graphveil.collection.service.limits import Buckets, Rate
from graphveil.collection.service.models import Exporting, Losing
from graphveil.collection.service.openapi import add
from graphveil.collection.service.standing import Standing, training
from graphveil.collection.service.tokens import replaced
from graphveil.collection.store.store import Store, hashed
from graphveil.collection.task.expected import Surroundings, expected
from graphveil.device.task import Task
from graphveil.errors import InputError, MissingExtraError
from graphveil.files.writing import partial_folder

#: Wrong tokens from one address: enough for somebody who mistypes, not for somebody who guesses.
WRONG_TOKENS = Rate(0.1, 10.0)
#: Documents the header; `_admitted` reads it.
_BEARER = HTTPBearer(auto_error=False, description="The administration's token: the file admin-token.")


class Refused(Exception):
    """A request is refused with a code of `answers.STATUS`, and further members of the problem."""

    def __init__(self, code: str, **more: str) -> None:
        super().__init__(code)
        self.code, self.more = code, more

    def answer(self) -> Response:
        """Return the refusal as a problem document."""
        status, headers, body = problem(self.code, **self.more)
        return Response(body, status, {name.decode(): value.decode() for name, value in headers})


class Administration:
    """The organiser's part of a collector.

    Args:
        desk: the organiser's folder, where the collector may use it. room: whether the disk has room.
        wrong: how often an address may send a wrong token.
    """

    def __init__(
        self, store: Store, task: Task, desk: Desk | None, room: Callable[[], bool], wrong: Buckets | None = None
    ) -> None:
        self._store, self._task, self._desk, self._room = store, task, desk, room
        self._standing = Standing(store, task)
        self._wrong = wrong or WRONG_TOKENS.buckets()

    def routes(self) -> APIRouter:
        """Return the routes, all of which require the token."""
        routes = APIRouter(dependencies=[Depends(self._admitted), Depends(_BEARER)])
        add(
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
        own = {"key": has_key, "open_command": self._command, "train": training(self._task, folder)}
        return {**self._standing.facts(), **own, "folder": None if self._desk is None else str(self._desk.folder)}

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
        with _now():
            return self._desk.open()

    @property
    def _command(self) -> str:
        folder = "FOLDER" if self._desk is None else shlex.quote(str(self._desk.folder))
        return f"graphveil collect open {folder} --key organiser.key"

    def _close(self) -> dict[str, Any]:
        with _now():
            epoch, digest = self._store.close_epoch()
        return {"epoch": epoch, "hash": digest.hex(), "order_forgotten": forget(self._store)}

    def _export(self, exporting: Exporting) -> dict[str, Any]:
        self._require_room()
        with _now():
            if self._desk is None:
                raise InputError("this collector has no folder of its own", remedy="download the export")
            out = self._desk.folder / exporting.folder
            return {**self._desk.export(out), "train": training(self._task, out)}

    def _download(self) -> StreamingResponse:
        self._require_room()
        # Beside the collection's files, whose disk is watched; the system's temporary folder may be in memory.
        beside = Path(tempfile.gettempdir()) if self._desk is None else self._desk.folder
        # Afterwards only the open file holds it: an interrupted download leaves nothing behind. What a killed process
        # leaves is removed by the next export, of either kind: nobody holds its lock any more.
        with partial_folder(beside / "export") as partial:
            with _now():
                export(self._store, partial / "collected")
            packed = _zipped(partial).open("rb")
        named = {"content-disposition": 'attachment; filename="collected.zip"', "cache-control": "no-store"}
        return StreamingResponse(_parts(packed), media_type="application/zip", headers=named)

    def _token(self, losing: Losing) -> dict[str, str]:
        with _now():
            return replaced(self._store, losing.id)

    def _require_room(self) -> None:
        if not self._room():
            raise Refused("disk-full")

    def _admitted(self, request: Request) -> None:
        address = request.client.host if request.client else ""
        stored = self._store.setting("admin")
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        # In constant time, and of hashes: the duration says nothing about the token.
        if stored is None or not hmac.compare_digest(stored, hashed(token.encode())):
            # 160 random bits cannot be guessed. The right token is always accepted: otherwise strangers behind the
            # organiser's address could lock the organiser out.
            raise Refused("not-admitted" if self._wrong.take(address) else "too-often")


@contextmanager
def _now() -> Iterator[None]:
    """Turn what cannot be done in the present state into an answer that says why."""
    try:
        yield
    except (InputError, MissingExtraError) as error:
        raise Refused("not-now", detail=str(error)) from error


def _parts(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while part := file.read(1 << 20):
            yield part


def _zipped(folder: Path) -> Path:
    """Pack the export in a folder; return the path of the zip."""
    packed = folder / "collected.zip"
    # Noise cannot be compressed.
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as file:
        for name in FILES:
            file.write(folder / "collected" / name, f"collected/{name}")
    return packed
